#include "kernel/net.h"

#include "base/fd.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

int net_loopback_up(void)
{
    struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    AUTO_CLOSE int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s < 0) {
        return -errno;
    }
    return ioctl(s, SIOCSIFFLAGS, &r) ? -errno : 0;
}
