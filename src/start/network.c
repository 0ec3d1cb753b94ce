// What jobs with the host's network need of the host's /etc: copied once, at the start, by who may
// read it. Links are followed (resolv.conf often leads to /run), so that a copy has no way out.
// nsswitch.conf is not among them: it names modules of the host's libc. Nor is what not everybody
// on the host may read: then it is no business of a job's either.
#include "base/fd.h"
#include "start/internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

enum { FILE_MAX_BYTES = 1 << 20 };

// The first that is there. Where distributions keep what their `update-ca-certificates` or
// `update-ca-trust` makes of all authorities, an operator's own included.
static const struct {
    const char *to, *from[5];
} files[] = {
    {"net/resolv.conf", {"/etc/resolv.conf"}},
    {"net/hosts", {"/etc/hosts"}},
    {"net/ca",
     {"/etc/ssl/certs/ca-certificates.crt",                // Debian, Ubuntu, Arch, Alpine
      "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // Fedora, RHEL, Amazon Linux
      "/etc/ssl/ca-bundle.pem",                            // SUSE
      "/etc/ssl/cert.pem"}},
};

// 0; -ENOENT: not there, or not what it should be.
static int copy_file(const char *from, const char *to)
{
    struct stat st;
    AUTO_CLOSE int in = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (in < 0 || fstat(in, &st) || !S_ISREG(st.st_mode) || !(st.st_mode & S_IROTH) ||
        st.st_size > FILE_MAX_BYTES) {
        return -ENOENT;
    }
    AUTO_CLOSE int out = open(to, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
    if (out < 0) {
        return -errno;
    }
    for (size_t left = FILE_MAX_BYTES; left > 0;) {
        ssize_t n = sendfile(out, in, NULL, left);
        if (n <= 0) {
            return n < 0 ? -errno : 0;
        }
        left -= (size_t)n;
    }
    return 0;
}

int child_network(struct start *s)
{
    if (!s->record.seat.allow_host_network) {
        return 0;
    }
    if (mkdir("net", 0755) || mount("tmpfs", "net", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
                                    "size=4m,nr_inodes=16,mode=755")) {
        return start_fail(s, -errno, "files for the host's network");
    }
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        int e = -ENOENT;
        for (size_t k = 0; k < ARRAY_LEN(files[i].from) && files[i].from[k] && e == -ENOENT; k++) {
            e = copy_file(files[i].from[k], files[i].to);
        }
        if (e && e != -ENOENT) {
            return start_fail(s, e, "files for the host's network: %s", files[i].to);
        }
    }
    return 0;
}
