"""A host of its own, as far as its network goes: python3 netns.py SETUP COMMAND...

In a new network namespace (loopback only) with what SETUP, a JSON object, asks for: `port` (TCP, answers "hello"),
`abstract` (a socket's name), `dns` (name -> IPv4 address, served at 127.0.0.1:53), `https` ([port, certificate, key]).
COMMAND runs as a child; its status is ours. `log` is a file that gets a line for each connection.
"""

from __future__ import annotations

import ctypes
import fcntl
import http.server
import json
import socket
import ssl
import struct
import subprocess
import sys
import threading

CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS = 0x8914


def bring_up_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", 0x41))


def serve(target, *arguments) -> None:
    threading.Thread(target=target, args=arguments, daemon=True).start()


def accept(listener: socket.socket, name: str, log: str) -> None:
    while True:
        connection, _ = listener.accept()
        with open(log, "a") as f:
            f.write(name + "\n")
        connection.sendall(b"hello")
        connection.close()


def answer_dns(server: socket.socket, names: dict[str, str]) -> None:
    while True:
        query, client = server.recvfrom(512)
        at, labels = 12, []
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode())
            at += query[at] + 1
        question = query[12 : at + 5]
        kind = int.from_bytes(query[at + 1 : at + 3], "big")
        address = names.get(".".join(labels)) if kind == 1 else None
        record = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton(address) if address else b""
        head = query[:2] + b"\x81\x80\0\1" + (b"\0\1" if address else b"\0\0") + b"\0\0\0\0"
        server.sendto(head + question + record, client)


class Quiet(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello over TLS")

    def log_message(self, *_args: object) -> None:
        pass


def main(setup: dict, command: list[str]) -> int:
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    bring_up_loopback()
    log = setup.get("log", "/dev/null")
    if "port" in setup:
        serve(accept, socket.create_server(("127.0.0.1", setup["port"])), "tcp", log)
    if "abstract" in setup:
        s = socket.socket(socket.AF_UNIX)
        s.bind("\0" + setup["abstract"])
        s.listen()
        serve(accept, s, "abstract", log)
    if "dns" in setup:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind(("127.0.0.1", 53))
        serve(answer_dns, s, setup["dns"])
    if "https" in setup:
        port, certificate, key = setup["https"]
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Quiet)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        serve(server.serve_forever)
    return subprocess.call(command)


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1]), sys.argv[2:]))
