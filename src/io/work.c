#include "io/work.h"

#include "base/fd.h"
#include "base/hash.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

enum { MAX_THREADS = 16 };

struct list {
    struct work *first, *last;
};

struct closing {
    struct work work;
    struct work_pool *pool;
    struct closing *next;
    int fd;
};

struct work_pool {
    struct loop *loop;
    struct loop_watch told; // of the event descriptor
    unsigned waiting;       // the loop's: queued, `done` not called
    unsigned max, started;  // threads
    struct closing *closings;
    pthread_t threads[MAX_THREADS];
    pthread_mutex_t lock;
    pthread_cond_t wake;
    // under the lock
    struct list todo, todo_background, over;
    unsigned n_todo;             // in both lists
    unsigned idle;               // threads that wait
    unsigned running_background; // pieces
    struct work *running[MAX_THREADS];
    bool stop;
};

uint64_t work_owner(const char *tenant) { return tenant ? hash_bytes(tenant, strlen(tenant)) : 0; }

static void list_add(struct list *l, struct work *w)
{
    w->next = NULL;
    *(l->last ? &l->last->next : &l->first) = w;
    l->last = w;
}

static struct work *list_take(struct list *l)
{
    struct work *w = l->first;
    if (w) {
        l->first = w->next;
        l->last = l->first ? l->last : NULL;
    }
    return w;
}

// ---- on the threads

// All of so many but one, which is left to others; the only one is not.
static unsigned but_one(unsigned threads) { return threads > 1 ? threads - 1 : 1; }

static unsigned running_of(const struct work_pool *p, uint64_t owner, bool background_only)
{
    unsigned n = 0;
    for (unsigned i = 0; i < p->max; i++) {
        const struct work *w = p->running[i];
        n += w && w->owner == owner && (w->background || !background_only);
    }
    return n;
}

// Has its owner as many threads as he may have, or as many of those of the background?
static bool has_enough(const struct work_pool *p, const struct work *w, unsigned running)
{
    const unsigned most = but_one(p->max);
    return w->owner &&
           (running >= most || (w->background && running_of(p, w->owner, true) >= but_one(most)));
}

// The oldest of the owner with the fewest running: who queues a thousand keeps nobody waiting.
static struct work *list_take_fair(const struct work_pool *p, struct list *l)
{
    struct work *best = NULL, *before_best = NULL, *before = NULL;
    unsigned fewest = MAX_THREADS + 1;
    for (struct work *w = l->first; w && fewest > 0; before = w, w = w->next) {
        unsigned n = running_of(p, w->owner, false);
        if (n < fewest && !has_enough(p, w, n)) {
            fewest = n;
            best = w;
            before_best = before;
        }
    }
    if (best) {
        *(before_best ? &before_best->next : &l->first) = best->next;
        l->last = l->last == best ? before_best : l->last;
    }
    return best;
}

// With the lock: the next piece, or NULL while there is none that this thread may take.
static struct work *take(struct work_pool *p)
{
    struct work *w = list_take_fair(p, &p->todo);
    if (!w && p->running_background < but_one(p->max)) {
        w = list_take_fair(p, &p->todo_background);
    }
    if (w) {
        p->n_todo--;
        p->running_background += w->background;
    }
    return w;
}

static struct work **free_place(struct work_pool *p)
{
    unsigned i = 0;
    while (p->running[i]) { // there are as many as threads
        i++;
    }
    return &p->running[i];
}

static void run(struct work_pool *p, struct work *w)
{
    struct work **place = free_place(p);
    *place = w;
    pthread_mutex_unlock(&p->lock);
    w->run(w);
    pthread_mutex_lock(&p->lock);
    *place = NULL;
    p->running_background -= w->background;
    list_add(&p->over, w);
    uint64_t one = 1;
    ssize_t n = write(p->told.fd, &one, sizeof one); // a full counter would wake the loop as well
    (void)n;
}

static void *thread_main(void *arg)
{
    struct work_pool *p = arg;
    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        struct work *w = take(p);
        if (w) {
            run(p, w);
            continue;
        }
        p->idle++;
        pthread_cond_wait(&p->wake, &p->lock);
        p->idle--;
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

// ---- on the loop's thread

static void hand_back(struct list *l)
{
    for (struct work *w = list_take(l); w; w = list_take(l)) {
        w->queued = false;
    }
}

static void call_done(struct loop_watch *watch, uint32_t events)
{
    (void)events;
    struct work_pool *p = watch->ctx;
    uint64_t count;
    ssize_t n = read(watch->fd, &count, sizeof count); // EAGAIN: nothing new
    (void)n;
    pthread_mutex_lock(&p->lock);
    struct list over = p->over;
    p->over = (struct list){0};
    pthread_mutex_unlock(&p->lock);
    for (struct work *w = list_take(&over); w; w = list_take(&over)) {
        w->queued = false;
        p->waiting--;
        w->done(w); // may queue it again, or free it, or stop the pool
        if (p->stop) {
            hand_back(&over);
        }
    }
}

int work_pool_new(struct loop *l, unsigned threads, struct work_pool **ret)
{
    if (threads == 0 || threads > MAX_THREADS) {
        return -EINVAL;
    }
    struct work_pool *p = calloc(1, sizeof *p);
    AUTO_CLOSE int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!p || fd < 0) {
        int e = p ? -errno : -ENOMEM;
        free(p);
        return e;
    }
    p->loop = l;
    p->max = threads;
    p->told = LOOP_WATCH_INIT(call_done, p);
    int e = loop_add(l, &p->told, fd, EPOLLIN);
    if (e) {
        free(p);
        return e;
    }
    (void)fd_take(&fd); // the watch's
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    *ret = p;
    return 0;
}

// Signals are the loop's.
static int start_thread(struct work_pool *p)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int e = pthread_create(&p->threads[p->started], NULL, thread_main, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    p->started += e == 0;
    return -e;
}

int work_queue(struct work_pool *p, struct work *w)
{
    if (p->stop) { // set by this thread only
        return -ESHUTDOWN;
    }
    pthread_mutex_lock(&p->lock);
    bool more = p->idle <= p->n_todo && p->started < p->max;
    pthread_mutex_unlock(&p->lock);
    if (more && start_thread(p) && p->started == 0) {
        return -EAGAIN;
    }
    w->queued = true;
    p->waiting++;
    pthread_mutex_lock(&p->lock);
    list_add(w->background ? &p->todo_background : &p->todo, w);
    p->n_todo++;
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
    return 0;
}

unsigned work_waiting(const struct work_pool *p) { return p->waiting; }

static void close_run(struct work *w)
{
    struct closing *c = w->ctx;
    c->fd = fd_close(c->fd);
}

static void close_done(struct work *w)
{
    struct closing *c = w->ctx;
    struct closing **at = &c->pool->closings;
    while (*at != c) {
        at = &(*at)->next;
    }
    *at = c->next;
    free(c);
}

void work_close(struct work_pool *p, int fd, uint64_t owner)
{
    struct stat st;
    bool large = p && fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
                 st.st_blocks > (st.st_nlink == 0 ? 0 : WORK_CLOSE_BYTES / 512);
    struct closing *c = large ? malloc(sizeof *c) : NULL;
    if (c) {
        *c = (struct closing){.pool = p, .next = p->closings, .fd = fd};
        c->work = (struct work){
            .run = close_run, .done = close_done, .ctx = c, .background = true, .owner = owner};
        if (work_queue(p, &c->work) == 0) {
            p->closings = c;
            return;
        }
        free(c);
    }
    fd_close(fd);
}

void work_pool_stop(struct work_pool *p)
{
    if (!p || p->stop) {
        return;
    }
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->started; i++) {
        pthread_join(p->threads[i], NULL);
    }
    hand_back(&p->todo);
    hand_back(&p->todo_background);
    hand_back(&p->over);
    p->waiting = p->n_todo = 0;
    int fd = p->told.fd;
    loop_remove(p->loop, &p->told);
    fd_close(fd);
}

void work_pool_free(struct work_pool *p)
{
    if (!p) {
        return;
    }
    work_pool_stop(p);
    while (p->closings) {
        fd_close(p->closings->fd);
        close_done(&p->closings->work);
    }
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
