// msg.h: one record with descriptors over a Unix SEQPACKET or STREAM socket (unix(7), SCM_RIGHTS).
#ifndef ISLE_BASE_MSG_H
#define ISLE_BASE_MSG_H

#include <stddef.h>
#include <sys/types.h>

enum { MSG_MAX_FDS = 24 };

// Sends len bytes and n descriptors (the caller keeps them). 0 or -errno; never SIGPIPE.
// flags: MSG_DONTWAIT or 0.
int msg_send(int sock, const void *data, size_t len, const int *fds, int n, int flags);

// Receives one record. Bytes, 0 at the end, -errno. ret_fds[0..max) become descriptors (CLOEXEC,
// owned by the caller) or -1; surplus ones are closed. A record longer than len is -EMSGSIZE, its
// descriptors closed. Where there is no room for the descriptors that came, they are lost,
// ret_fds[0] is -EMFILE, and the record is told all the same. ret_pid (may be NULL): the sender's
// pid where SO_PASSCRED is on, else untouched.
ssize_t msg_recv(int sock, void *ret_data, size_t len, int *ret_fds, int max, pid_t *ret_pid,
                 int flags);

#endif
