#include "faulty.h"

#include <sqlite3.h>
#include <string.h>

struct faulty faulty = {.countdown = -1};

struct file {
    sqlite3_file base; // first
    int is_log;
    sqlite3_file *real; // behind this struct
};

static sqlite3_vfs *below;

static sqlite3_file *real_of(sqlite3_file *f) { return ((struct file *)f)->real; }

static int fails(void)
{
    atomic_fetch_add(&faulty.calls, 1);
    if (atomic_load(&faulty.countdown) < 0) {
        return 0;
    }
    if (atomic_load(&faulty.countdown) > 0 && atomic_fetch_sub(&faulty.countdown, 1) > 1) {
        return 0;
    }
    return atomic_load(&faulty.code);
}

static int f_close(sqlite3_file *f) { return real_of(f)->pMethods->xClose(real_of(f)); }
static int f_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
    return real_of(f)->pMethods->xRead(real_of(f), to, n, at);
}
static int f_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
    int code = fails();
    return code ? code : real_of(f)->pMethods->xWrite(real_of(f), from, n, at);
}
static int f_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    int code = fails();
    return code ? code : real_of(f)->pMethods->xTruncate(real_of(f), size);
}
static int f_sync(sqlite3_file *f, int flags)
{
    int code = fails();
    if (code) {
        return code == SQLITE_FULL ? SQLITE_IOERR_FSYNC : code;
    }
    atomic_fetch_add(&faulty.syncs, ((struct file *)f)->is_log);
    return real_of(f)->pMethods->xSync(real_of(f), flags);
}
static int f_size(sqlite3_file *f, sqlite3_int64 *ret)
{
    return real_of(f)->pMethods->xFileSize(real_of(f), ret);
}
static int f_lock(sqlite3_file *f, int how) { return real_of(f)->pMethods->xLock(real_of(f), how); }
static int f_unlock(sqlite3_file *f, int how)
{
    return real_of(f)->pMethods->xUnlock(real_of(f), how);
}
static int f_reserved(sqlite3_file *f, int *ret)
{
    return real_of(f)->pMethods->xCheckReservedLock(real_of(f), ret);
}
static int f_control(sqlite3_file *f, int op, void *arg)
{
    return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}
static int f_sector(sqlite3_file *f) { return real_of(f)->pMethods->xSectorSize(real_of(f)); }
static int f_device(sqlite3_file *f)
{
    return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}
static int f_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **ret)
{
    return real_of(f)->pMethods->xShmMap(real_of(f), page, size, extend, ret);
}
static int f_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
    return real_of(f)->pMethods->xShmLock(real_of(f), offset, n, flags);
}
static void f_shm_barrier(sqlite3_file *f) { real_of(f)->pMethods->xShmBarrier(real_of(f)); }
static int f_shm_unmap(sqlite3_file *f, int remove)
{
    return real_of(f)->pMethods->xShmUnmap(real_of(f), remove);
}

static const sqlite3_io_methods methods = {
    2,        f_close,   f_read,     f_write,       f_truncate,  f_sync,
    f_size,   f_lock,    f_unlock,   f_reserved,    f_control,   f_sector,
    f_device, f_shm_map, f_shm_lock, f_shm_barrier, f_shm_unmap,
};

static int f_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
    (void)vfs;
    struct file *own = (struct file *)f;
    own->real = (sqlite3_file *)(void *)(own + 1);
    own->is_log = (flags & SQLITE_OPEN_WAL) != 0;
    memset(own->real, 0, (size_t)below->szOsFile);
    int code = below->xOpen(below, name, own->real, flags, ret_flags);
    f->pMethods = own->real->pMethods ? &methods : NULL;
    return code;
}

void faulty_install(void)
{
    static sqlite3_vfs vfs;
    below = sqlite3_vfs_find(NULL);
    vfs = *below;
    vfs.szOsFile = (int)sizeof(struct file) + below->szOsFile;
    vfs.zName = "faulty";
    vfs.pNext = NULL;
    vfs.xOpen = f_open;
    sqlite3_vfs_register(&vfs, 1);
}
