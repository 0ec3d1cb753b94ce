#include "workspace/zip.h"

#include "base/buf.h"
#include "base/fd.h"
#include "io/work.h"
#include "workspace/disk.h"
#include "workspace/listing.h"
#include "workspace/names.h"
#include "workspace/path.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <zlib.h>

enum {
    PIECE_BYTES = 32 * 1024,
    OUT_BYTES = 160 * 1024, // what one piece of work may make
    LOOKS = 500,            // entries that are skipped in one piece of work
    LEVEL = 6,
    VERSION_PLAIN = 20,
    VERSION_ZIP64 = 45,
    MADE_BY_UNIX = 3 << 8,
    FLAG_DESCRIPTOR = 1 << 3,
    FLAG_UTF8 = 1 << 11,
    STORED = 0,
    DEFLATED = 8,
};

// Sizes and offsets from here on have 64 bits. Below 4 GB by more than deflate may add.
static const uint64_t BIG = UINT64_C(0xf0000000);
static const uint32_t ALL32 = UINT32_MAX;
static const uint64_t MAX_COUNT = 0xfffe;

enum state { ENTRIES, CONTENT, DIRECTORY, TAIL, DONE };

struct zip {
    struct zip_options o;
    struct zip_count count;
    enum state state;
    struct listing listing;
    struct buf out; // made, not given yet
    size_t given;
    uint64_t made_bytes; // of the archive, with what is in out
    uint64_t directory_at, spooled_bytes, spool_read;
    z_stream deflate;
    unsigned char piece[PIECE_BYTES];
    struct member {
        int fd;
        struct buf name;
        bool folder, big;
        uint32_t mode, crc, stamp; // stamp: MS-DOS date and time
        uint64_t at, left, size, packed;
    } member;
};

// Little-endian.
static void put(struct buf *b, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        buf_putc(b, (char)(value >> (8 * i)));
    }
}

// In UTC; 1980 to 2107.
static uint32_t dos_stamp(time_t at)
{
    struct tm t;
    if (!gmtime_r(&at, &t) || t.tm_year < 80) {
        return 1 << 21 | 1 << 16; // the first of January 1980
    }
    uint32_t year = t.tm_year > 207 ? 127 : (uint32_t)(t.tm_year - 80);
    return year << 25 | (uint32_t)(t.tm_mon + 1) << 21 | (uint32_t)t.tm_mday << 16 |
           (uint32_t)t.tm_hour << 11 | (uint32_t)t.tm_min << 5 | (uint32_t)t.tm_sec / 2;
}

static uint32_t flags_of(const struct member *m)
{
    return FLAG_UTF8 | (m->folder ? 0 : FLAG_DESCRIPTOR);
}

static void put_local_header(struct buf *b, const struct member *m)
{
    put(b, 0x04034b50, 4);
    put(b, m->big ? VERSION_ZIP64 : VERSION_PLAIN, 2);
    put(b, flags_of(m), 2);
    put(b, m->folder ? STORED : DEFLATED, 2);
    put(b, m->stamp, 4);
    put(b, 0, 4); // the checksum and the sizes follow the content
    put(b, m->big ? ALL32 : 0, 4);
    put(b, m->big ? ALL32 : 0, 4);
    put(b, m->name.len, 2);
    put(b, m->big ? 20 : 0, 2);
    buf_add(b, m->name.data, m->name.len);
    if (m->big) {
        put(b, 1, 2);
        put(b, 16, 2);
        put(b, 0, 8);
        put(b, 0, 8);
    }
}

static void put_descriptor(struct buf *b, const struct member *m)
{
    int width = m->big ? 8 : 4;
    put(b, 0x08074b50, 4);
    put(b, m->crc, 4);
    put(b, m->packed, width);
    put(b, m->size, width);
}

static void put_directory_entry(struct buf *b, const struct member *m)
{
    bool far = m->at >= BIG;
    int extra = (m->big ? 16 : 0) + (far ? 8 : 0);
    put(b, 0x02014b50, 4);
    put(b, MADE_BY_UNIX | VERSION_ZIP64, 2);
    put(b, m->big || far ? VERSION_ZIP64 : VERSION_PLAIN, 2);
    put(b, flags_of(m), 2);
    put(b, m->folder ? STORED : DEFLATED, 2);
    put(b, m->stamp, 4);
    put(b, m->crc, 4);
    put(b, m->big ? ALL32 : m->packed, 4);
    put(b, m->big ? ALL32 : m->size, 4);
    put(b, m->name.len, 2);
    put(b, extra ? (uint64_t)extra + 4 : 0, 2);
    put(b, 0, 2); // comment
    put(b, 0, 2); // disk
    put(b, 0, 2); // inner attributes
    put(b, m->mode << 16 | (m->folder ? 0x10 : 0), 4);
    put(b, far ? ALL32 : m->at, 4);
    buf_add(b, m->name.data, m->name.len);
    if (extra) {
        put(b, 1, 2);
        put(b, (uint64_t)extra, 2);
    }
    if (m->big) {
        put(b, m->size, 8);
        put(b, m->packed, 8);
    }
    if (far) {
        put(b, m->at, 8);
    }
}

static void put_tail(struct buf *b, const struct zip *z, uint64_t end)
{
    uint64_t n = z->count.entries;
    bool far = n > MAX_COUNT || z->directory_at >= BIG || z->spooled_bytes >= BIG;
    if (far) {
        put(b, 0x06064b50, 4);
        put(b, 44, 8);
        put(b, MADE_BY_UNIX | VERSION_ZIP64, 2);
        put(b, VERSION_ZIP64, 2);
        put(b, 0, 8); // disks
        put(b, n, 8);
        put(b, n, 8);
        put(b, z->spooled_bytes, 8);
        put(b, z->directory_at, 8);
        put(b, 0x07064b50, 4);
        put(b, 0, 4);
        put(b, end, 8);
        put(b, 1, 4);
    }
    put(b, 0x06054b50, 4);
    put(b, 0, 4); // disks
    put(b, far ? UINT16_MAX : n, 2);
    put(b, far ? UINT16_MAX : n, 2);
    put(b, far ? ALL32 : z->spooled_bytes, 4);
    put(b, far ? ALL32 : z->directory_at, 4);
    put(b, 0, 2);
}

int zip_begin(int folder, const struct zip_options *o, struct zip **ret)
{
    struct zip *z = calloc(1, sizeof *z);
    if (!z) {
        return -ENOMEM;
    }
    *z = (struct zip){.o = *o, .out = BUF_INIT(OUT_BYTES)};
    z->member = (struct member){.fd = -1, .name = BUF_INIT(UINT16_MAX)};
    int e = listing_begin(&z->listing, folder, true, NULL);
    // negative: no header of zlib's around the content
    if (!e && deflateInit2(&z->deflate, LEVEL, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY)) {
        e = -ENOMEM;
    }
    if (e) {
        zip_end(z, NULL, 0);
        return e;
    }
    *ret = z;
    return 0;
}

void zip_end(struct zip *z, struct work_pool *pool, uint64_t owner)
{
    if (z) {
        listing_end(&z->listing);
        deflateEnd(&z->deflate); // refuses one that was not begun
        work_close(pool, z->member.fd, owner);
        buf_free(&z->member.name);
        buf_free(&z->out);
        free(z);
    }
}

// The member is whole: its line of the directory goes to the spool.
static int end_member(struct zip *z)
{
    AUTO_BUF struct buf line = BUF_INIT(2 * UINT16_MAX);
    z->member.fd = fd_close(z->member.fd);
    put_directory_entry(&line, &z->member);
    int e = line.error ? line.error : disk_spool(z->o.spool, line.data, line.len);
    z->spooled_bytes += line.len;
    z->count.entries++;
    z->state = ENTRIES;
    return e;
}

// Names for every system that may unpack it: no "\" and no ":" either.
static int name_member(struct member *m, const struct listing_entry *entry)
{
    bool escaped;
    buf_clear(&m->name);
    int e = names_escape(&m->name, entry->path, strlen(entry->path), "\\:", &escaped);
    return m->folder && !e ? buf_putc(&m->name, '/') : e;
}

// 1: there is a member to write; 0: not this one; -errno.
static int open_member(struct zip *z, const struct listing_entry *entry)
{
    struct member *m = &z->member;
    struct stat st = entry->st;
    m->folder = S_ISDIR(st.st_mode);
    bool wanted = (m->folder || S_ISREG(st.st_mode)) && st.st_uid == z->o.uid && !entry->unfit;
    if (wanted && !m->folder) {
        m->fd = path_open(entry->folder, entry->name, O_RDONLY, 0);
        wanted = m->fd >= 0 && !fstat(m->fd, &st) && S_ISREG(st.st_mode) && st.st_uid == z->o.uid;
    }
    if (!wanted) {
        m->fd = fd_close(m->fd);
        z->count.left_out++;
        return 0;
    }
    if (z->count.entries == z->o.max_entries) {
        return -E2BIG;
    }
    m->left = m->folder ? 0 : (uint64_t)st.st_size;
    if (m->left > z->o.max_bytes - z->count.content_bytes) {
        return -EFBIG;
    }
    m->big = m->left >= BIG;
    m->mode = st.st_mode & (S_IFMT | 0777);
    m->stamp = dos_stamp(st.st_mtim.tv_sec);
    m->crc = 0;
    m->size = m->packed = 0;
    m->at = z->made_bytes;
    int e = name_member(m, entry);
    return e ? e : 1;
}

static int next_member(struct zip *z)
{
    struct listing_entry entry;
    int e = 0;
    for (int i = 0; i < LOOKS && !e; i++) {
        e = listing_next(&z->listing, &entry);
        if (e <= 0) {
            z->state = DIRECTORY;
            z->directory_at = z->made_bytes;
            return e;
        }
        e = open_member(z, &entry);
    }
    if (e <= 0) {
        return e;
    }
    put_local_header(&z->out, &z->member);
    if (z->member.folder) {
        return end_member(z);
    }
    z->state = CONTENT;
    deflateReset(&z->deflate);
    return 0;
}

// One piece of the content.
static int pack(struct zip *z)
{
    struct member *m = &z->member;
    size_t want = m->left < PIECE_BYTES ? (size_t)m->left : PIECE_BYTES;
    ssize_t n = want ? read(m->fd, z->piece, want) : 0;
    if (n < 0) {
        return -errno;
    }
    m->left = n ? m->left - (uint64_t)n : 0; // 0: it has become shorter
    m->size += (uint64_t)n;
    m->crc = (uint32_t)crc32(m->crc, z->piece, (uInt)n);
    z->count.content_bytes += (uint64_t)n;
    z->deflate.next_in = z->piece;
    z->deflate.avail_in = (uInt)n;
    int done;
    do {
        unsigned char packed[8192];
        z->deflate.next_out = packed;
        z->deflate.avail_out = sizeof packed;
        done = deflate(&z->deflate, m->left ? Z_NO_FLUSH : Z_FINISH);
        size_t len = sizeof packed - z->deflate.avail_out;
        m->packed += len;
        buf_add(&z->out, packed, len);
    } while (z->deflate.avail_out == 0 && !z->out.error);
    if (m->left) {
        return 0;
    }
    if (done != Z_STREAM_END) {
        return -EIO;
    }
    put_descriptor(&z->out, m);
    return end_member(z);
}

static int give_directory(struct zip *z)
{
    ssize_t n = pread(z->o.spool, z->piece, PIECE_BYTES, (off_t)z->spool_read);
    if (n < 0) {
        return -errno;
    }
    z->spool_read += (uint64_t)n;
    if (n == 0) {
        z->state = z->spool_read == z->spooled_bytes ? TAIL : DONE;
        return z->state == TAIL ? 0 : -EIO;
    }
    return buf_add(&z->out, z->piece, (size_t)n);
}

static int work(struct zip *z)
{
    static int (*const by_state[])(struct zip *) = {
        [ENTRIES] = next_member, [CONTENT] = pack, [DIRECTORY] = give_directory};
    size_t before = z->out.len;
    int e = 0;
    if (z->state == TAIL) {
        put_tail(&z->out, z, z->made_bytes);
        z->state = DONE;
    } else {
        e = by_state[z->state](z);
    }
    z->made_bytes += z->out.len - before;
    return e ? e : z->out.error;
}

ssize_t zip_next(struct zip *z, void *ret_data, size_t size)
{
    if (z->given == z->out.len) {
        buf_clear(&z->out);
        z->given = 0;
        if (z->state == DONE) {
            return 0;
        }
        int e = work(z);
        if (e) {
            return e == -EAGAIN ? -EIO : e;
        }
    }
    size_t n = z->out.len - z->given;
    n = n < size ? n : size;
    if (n == 0) {
        return -EAGAIN;
    }
    memcpy(ret_data, z->out.data + z->given, n);
    z->given += n;
    return (ssize_t)n;
}

struct zip_count zip_count(const struct zip *z)
{
    struct zip_count c = z->count;
    c.archive_bytes = z->made_bytes;
    return c;
}

const struct zip_ops zip_ops = {zip_begin, zip_next, zip_end};
