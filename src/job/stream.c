#include "job/stream.h"

#include "base/fd.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

void stream_close(struct stream *s)
{
    if (s->fd >= 0) {
        loop_remove(s->loop, &s->watch);
        s->fd = fd_close(s->fd);
    }
}

// One read. False when there is nothing (more).
static bool take(struct stream *s)
{
    ssize_t n = read(s->fd, s->chunk, STREAM_CHUNK_BYTES);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        return errno == EINTR;
    }
    if (n <= 0) {
        stream_close(s);
        return false;
    }
    const char *piece;
    size_t len;
    output_add(&s->out, s->chunk, (size_t)n, &piece, &len);
    if (len > 0) {
        s->live(s->ctx, s, piece, len);
    }
    return true;
}

static void ready(struct loop_watch *w, uint32_t events)
{
    (void)events;
    take(w->ctx);
}

int stream_open(struct stream *s, struct loop *loop, struct buf *kept, char *chunk, int *ret_theirs)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC)) {
        return -errno;
    }
    s->loop = loop;
    s->chunk = chunk;
    s->watch = LOOP_WATCH_INIT(ready, s);
    output_init(&s->out, kept);
    s->fd = ends[0];
    AUTO_CLOSE int theirs = ends[1];
    // The job's uid is not ours, and programs open /dev/stdout anew. Who cannot see the descriptor
    // cannot see the pipe.
    fchmod(theirs, 0622);
    // Our end only: it is another open file than the job's, which stays blocking.
    int e = fcntl(s->fd, F_SETFL, O_NONBLOCK) ? -errno : loop_add(loop, &s->watch, s->fd, EPOLLIN);
    if (e) {
        stream_close(s);
        return e;
    }
    *ret_theirs = fd_take(&theirs);
    return 0;
}

void stream_hold(struct stream *s, bool hold)
{
    if (s->fd < 0) {
        return;
    }
    if (hold) { // no watch at all: a hang-up would be told again and again
        loop_remove(s->loop, &s->watch);
    } else if (s->watch.fd < 0 && loop_add(s->loop, &s->watch, s->fd, EPOLLIN)) {
        stream_close(s);
    }
}

void stream_drain(struct stream *s)
{
    // What is in the pipe now: a job chooses its size, and with O_DIRECT (pipe(7)) how little each
    // read gives, down to one byte.
    int bytes = 0;
    if (s->fd >= 0 && ioctl(s->fd, FIONREAD, &bytes)) {
        bytes = 0;
    }
    uint64_t until = s->out.total + (uint64_t)bytes;
    while (s->fd >= 0 && s->out.total < until && take(s)) {
    }
    stream_close(s);
    const char *piece = "";
    size_t len = 0;
    if (s->out.kept) {
        output_end(&s->out, &piece, &len);
    }
    if (len > 0) {
        s->live(s->ctx, s, piece, len);
    }
}
