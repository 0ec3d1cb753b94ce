#include "io/pump.h"

#include "base/fd.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { CHUNK_BYTES = 64 * 1024 };

void pump_stop(struct pump *p)
{
    if (!p->loop) {
        return;
    }
    loop_remove(p->loop, &p->source);
    loop_remove(p->loop, &p->sink);
    p->from = fd_close(p->from);
    p->to = fd_close(p->to);
    free(p->chunk);
    p->chunk = NULL;
    p->loop = NULL;
}

// One read of a source that is ready. False when the copy is over.
static bool take(struct pump *p)
{
    ssize_t n = read(p->from, p->chunk, CHUNK_BYTES);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return true;
    }
    if (n <= 0) { // the end; a read error looks like one to the job
        pump_stop(p);
        return false;
    }
    p->len = (size_t)n;
    p->offset = 0;
    return true;
}

// False when the copy is over.
static bool give(struct pump *p)
{
    while (p->offset < p->len) {
        ssize_t n = write(p->to, p->chunk + p->offset, p->len - p->offset);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == EAGAIN) {
            return true;
        }
        if (n < 0) { // nobody reads any more
            pump_stop(p);
            return false;
        }
        p->offset += (size_t)n;
    }
    p->len = p->offset = 0;
    return true;
}

// Waits for what is missing: bytes, or room. A watch on hang-up alone would spin on a source whose
// writer is gone, so the side that is not wanted is not watched.
static void wait_next(struct pump *p)
{
    bool full = p->offset < p->len;
    int e = 0;
    if (full || p->always_ready) {
        loop_remove(p->loop, &p->source);
        e = p->sink.fd < 0 ? loop_add(p->loop, &p->sink, p->to, EPOLLOUT) : 0;
    } else {
        loop_remove(p->loop, &p->sink);
        e = p->source.fd < 0 ? loop_add(p->loop, &p->source, p->from, EPOLLIN) : 0;
    }
    if (e) {
        pump_stop(p);
    }
}

static void source_ready(struct loop_watch *w, uint32_t events)
{
    struct pump *p = w->ctx;
    (void)events;
    if (take(p) && give(p)) {
        wait_next(p);
    }
}

static void sink_ready(struct loop_watch *w, uint32_t events)
{
    struct pump *p = w->ctx;
    (void)events;
    if (p->offset == p->len && p->always_ready && !take(p)) {
        return;
    }
    if (give(p)) {
        wait_next(p);
    }
}

int pump_start(struct pump *p, struct loop *loop, int from, int to)
{
    *p = (struct pump){.loop = loop, .from = from, .to = to};
    p->source = LOOP_WATCH_INIT(source_ready, p);
    p->sink = LOOP_WATCH_INIT(sink_ready, p);
    p->chunk = malloc(CHUNK_BYTES);
    int e = p->chunk ? loop_add(loop, &p->source, from, EPOLLIN) : -ENOMEM;
    if (e == -EPERM) { // epoll_ctl(2): a file or /dev/null, always ready
        p->always_ready = true;
        e = loop_add(loop, &p->sink, to, EPOLLOUT);
    }
    if (e) {
        pump_stop(p);
    }
    return e;
}

int pump_pipe(struct pump *p, struct loop *loop, int from, int *ret)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC)) {
        int e = -errno;
        close(from);
        return e;
    }
    AUTO_CLOSE int reader = ends[0];
    int e = fchmod(reader, 0644) || fcntl(ends[1], F_SETFL, O_NONBLOCK) ? -errno : 0;
    if (e) {
        close(ends[1]);
        close(from);
        return e;
    }
    e = pump_start(p, loop, from, ends[1]);
    if (!e) {
        *ret = fd_take(&reader);
    }
    return e;
}
