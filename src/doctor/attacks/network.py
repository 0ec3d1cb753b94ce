# The host's network: a listener on its loopback, one under an abstract name, raw and odd families.
import socket

through = []
port, name = params.get("port"), params.get("abstract")
for host in ("127.0.0.1", "::1") if port else ():
    try:
        socket.create_connection((host, port), 0.2).close()
        through.append(f"reached {host}:{port}")
    except OSError:
        pass
if name:
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.connect("\0" + name)
            through.append("reached an abstract socket of the host")
    except OSError:
        pass
if not params.get("network"):
    for address in ("192.0.2.1", "169.254.169.254"):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            try:
                s.connect((address, 53))  # sends nothing: asks for a route
                through.append("has a route to " + address)
            except OSError:
                pass
AF_PACKET, AF_VSOCK, AF_NETLINK, AF_ALG = 17, 40, 16, 38
odd = [(AF_PACKET, socket.SOCK_RAW), (AF_VSOCK, socket.SOCK_STREAM), (AF_NETLINK, socket.SOCK_RAW)]
for family, kind in [*odd, (AF_ALG, 5), (socket.AF_INET, socket.SOCK_RAW), (socket.AF_INET6, socket.SOCK_RAW)]:
    try:
        socket.socket(family, kind).close()
        through.append(f"made a socket of family {family}, type {kind}")
    except OSError:
        pass
return through
