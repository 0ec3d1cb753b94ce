// Descriptors, sealed memory, records with descriptors.
#include "base/fd.h"
#include "base/msg.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cmocka.h>

static bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

static void closes_and_forgets(void **state)
{
    (void)state;
    int kept, closed;
    {
        AUTO_CLOSE int a = open("/dev/null", O_RDONLY | O_CLOEXEC);
        AUTO_CLOSE int b = open("/dev/null", O_RDONLY | O_CLOEXEC);
        closed = a;
        kept = fd_take(&b);
        assert_int_equal(b, -1);
    }
    assert_false(is_open(closed));
    assert_true(is_open(kept));
    errno = 7;
    assert_int_equal(fd_close(kept), -1);
    assert_int_equal(errno, 7);
}

static void a_folder_is_no_program(void **state)
{
    (void)state;
    char folder[] = "/tmp/isle-fd-XXXXXX";
    assert_non_null(mkdtemp(folder));
    AUTO_CLOSE int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO_CLOSE int fd = openat(dir, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(mkdirat(dir, "folder", 0755), 0);
    assert_int_equal(symlinkat("file", dir, "link"), 0);
    assert_false(fd_is_program(dir, "none"));
    assert_false(fd_is_program(dir, "folder"));
    assert_false(fd_is_program(dir, "link"));
    assert_int_equal(fchmod(fd, 0755), 0);
    assert_true(fd_is_program(dir, "link"));
    assert_int_equal(unlinkat(dir, "link", 0), 0);
    assert_int_equal(unlinkat(dir, "file", 0), 0);
    assert_int_equal(unlinkat(dir, "folder", AT_REMOVEDIR), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void sealed_memory_stays_as_it_is(void **state)
{
    (void)state;
    AUTO_CLOSE int fd = fd_sealed("test", "hello", 5);
    assert_true(fd >= 0);
    char text[10];
    assert_int_equal(fd_read_full(fd, text, sizeof text), 5);
    assert_memory_equal(text, "hello", 5);
    assert_int_equal(pwrite(fd, "x", 1, 0), -1);
    assert_int_equal(ftruncate(fd, 100), -1);
    assert_int_equal(ftruncate(fd, 1), -1);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
}

static void reads_and_writes_control_files(void **state)
{
    (void)state;
    char folder[] = "/tmp/isle-test-XXXXXX", text[8];
    assert_non_null(mkdtemp(folder));
    AUTO_CLOSE int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(fd_write_at(dir, "f", "1"), -ENOENT);
    AUTO_CLOSE int fd = openat(dir, "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(fd_write_num_at(dir, "f", UINT64_MAX), 0);
    assert_int_equal(fd_read_at(dir, "f", text, sizeof text), 7); // cut, and ended
    assert_string_equal(text, "1844674");
    assert_int_equal(symlinkat("f", dir, "l"), 0);
    assert_int_equal(fd_write_at(dir, "l", "1"), -ELOOP);
    assert_int_equal(fd_read_at(dir, "none", text, sizeof text), -ENOENT);
    assert_string_equal(text, "");
    assert_int_equal(unlinkat(dir, "f", 0) | unlinkat(dir, "l", 0) | rmdir(folder), 0);
}

static void records_carry_descriptors(void **state)
{
    (void)state;
    int pair[2], got[4];
    char text[16];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    AUTO_CLOSE int memory = fd_sealed("test", "abc", 3);
    const int fds[] = {memory, memory};
    assert_int_equal(msg_send(pair[0], "hi", 2, fds, 2, 0), 0);
    assert_int_equal(msg_recv(pair[1], text, sizeof text, got, 4, NULL, 0), 2);
    assert_true(is_open(got[0]) && is_open(got[1]));
    assert_int_equal(fcntl(got[0], F_GETFD), FD_CLOEXEC);
    assert_int_equal(got[2], -1);
    close(got[0]);
    close(got[1]);

    // more than asked for: the surplus is closed, not leaked
    assert_int_equal(msg_send(pair[0], "hi", 2, fds, 2, 0), 0);
    assert_int_equal(msg_recv(pair[1], text, sizeof text, got, 1, NULL, 0), 2);
    int next = dup(got[0]);
    assert_int_equal(next, got[0] + 1);
    close(next);
    close(got[0]);

    // a record too long for its place is refused, its descriptors closed
    assert_int_equal(msg_send(pair[0], "0123456789abcdefg", 17, fds, 1, 0), 0);
    assert_int_equal(msg_recv(pair[1], text, sizeof text, got, 4, NULL, 0), -EMSGSIZE);
    assert_int_equal(got[0], -1);

    assert_int_equal(msg_send(pair[0], "x", 1, fds, MSG_MAX_FDS + 1, 0), -EINVAL);
    assert_int_equal(msg_recv(pair[1], text, sizeof text, got, 4, NULL, MSG_DONTWAIT), -EAGAIN);
    close(pair[0]);
    assert_int_equal(msg_recv(pair[1], text, sizeof text, got, 4, NULL, 0), 0);
    assert_int_equal(msg_send(pair[1], "x", 1, NULL, 0, 0), -EPIPE); // and no signal
    close(pair[1]);
}

static void the_senders_pid_is_the_kernels_word(void **state)
{
    (void)state;
    int pair[2], on = 1, got[1];
    char text[4];
    pid_t pid = 0;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
    assert_int_equal(msg_send(pair[0], "x", 1, NULL, 0, 0), 0);
    assert_int_equal(msg_recv(pair[1], text, sizeof text, got, 1, &pid, 0), 1);
    assert_int_equal(pid, getpid());
    close(pair[0]);
    close(pair[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closes_and_forgets),
        cmocka_unit_test(a_folder_is_no_program),
        cmocka_unit_test(sealed_memory_stays_as_it_is),
        cmocka_unit_test(reads_and_writes_control_files),
        cmocka_unit_test(records_carry_descriptors),
        cmocka_unit_test(the_senders_pid_is_the_kernels_word),
    };
    return cmocka_run_group_tests_name("fd", tests, NULL, NULL);
}
