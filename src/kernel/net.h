// net.h: the network namespace of a sandbox.
#ifndef ISLE_KERNEL_NET_H
#define ISLE_KERNEL_NET_H

// Brings the loopback interface of this network namespace up. 0 or -errno. Async-signal-safe.
int net_loopback_up(void);

#endif
