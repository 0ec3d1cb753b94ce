// files.h: a session's files for whom they belong to, while its own programs may be at work in the
// same tree: looked at, read, written whole, moved, removed. Everything beneath the workspace's
// descriptor (path.h), and only regular files and folders of the workspace's own uid.
//
// Paths are normalised and relative, "." the workspace itself: what job_path() gives.
// Answers: 0; a positive files_refusal, which is the caller's to hear; or -errno.
// A program of the session that changes things meanwhile gets its own entries mixed up, or a
// refusal to whom asks; never anything outside its workspace.
#ifndef ISLE_WORKSPACE_FILES_H
#define ISLE_WORKSPACE_FILES_H

#include "codec/sha256.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct files {
    int root;  // the workspace; not owned
    uid_t uid; // whom everything in it belongs to
};

enum files_refusal {
    FILES_AGAIN = 1, // no refusal: there is more to do, call again
    FILES_MISSING,
    FILES_EXISTS,
    FILES_LINK,
    FILES_OUTSIDE,
    FILES_FOLDER,
    FILES_NO_FOLDER,
    FILES_SPECIAL,
    FILES_FOREIGN,
    FILES_ROOT,
    FILES_NAME,
    FILES_NOT_EMPTY,
    FILES_INTO_ITSELF,
    FILES_TOO_BIG,
    FILES_FULL,
    FILES_MISMATCH,
    FILES_CHANGED,
    FILES_BUSY, // a program has it open for writing
};

// What is wrong with a path, to be put behind it: "is a folder". Static text.
const char *files_refusal_text(enum files_refusal r);

struct files_file {
    int fd; // for reading, offset 0; owned by the caller
    uint64_t size_bytes;
    uint32_t mode; // permission bits
    int64_t mtime_ms;
    struct stat looked; // as it was when it was opened
};

// Opens a regular file of at most max_bytes. Not more than size_bytes should be read: a file may
// grow for ever.
int files_open(const struct files *f, const char *path, uint64_t max_bytes, struct files_file *ret);

// Opens a folder, for listing.h and zip.h. Descriptor in *ret, owned by the caller.
int files_open_folder(const struct files *f, const char *path, int *ret);

// True when the file is still the one that was opened, unwritten since. By times and size, so what
// is written within one tick of the kernel's clock (4 ms) after the opening may be missed.
bool files_unchanged(const struct files_file *file);

// The content's hash, a bounded piece at a time; the descriptor's offset stays.
struct files_hash {
    const struct files_file *file;
    uint64_t at;
    struct sha256 sha;
};
void files_hash_begin(struct files_hash *h, const struct files_file *file);
// Reads up to max_bytes more. 1: done, *ret is set; 0: call again; -ESTALE: it was written to
// meanwhile, there is no such content; or another -errno.
int files_hash_step(struct files_hash *h, uint64_t max_bytes, char ret[SHA256_HEX]);

struct files_move_options {
    bool make_folders; // above `to`
    bool replace;      // a file that is there, or an empty folder by a folder
    bool *about_to;    // may be NULL: whether what is wrong is wrong with `to`
};
// A file or a folder gets another name, at once. Links and others' entries are refused.
int files_move(const struct files *f, const char *from, const char *to,
               const struct files_move_options *o);

// A name that nobody can guess: ".isle-", 32 random digits, end (at most 9 characters). 0 or
// -errno.
enum { FILES_RANDOM_NAME = 48 };
int files_random_name(char ret[FILES_RANDOM_NAME], const char *end);

// An empty file without a name on `folder`'s file system, for reading and writing: gone with its
// last descriptor. 0 or -errno.
int files_spool(int folder, int *ret);

struct files_remove_options {
    // May be -1: then only empty folders go. Else a folder of the caller's outside of the workspace
    // and on the same mount (else FILES_OUTSIDE): a folder with content is moved there under a
    // random name, which is atomic, and is to be removed there by and by (tree.h).
    int trash;
    char *trashed;                     // FILES_RANDOM_NAME bytes: that name, or ""; may be NULL
    const struct files_file *expected; // may be NULL: only if it is still this file, unwritten
};
// A file, a link (never what it points to), a FIFO, a folder. Anybody's.
int files_remove(const struct files *f, const char *path, const struct files_remove_options *o);

enum files_condition {
    FILES_ANY,   // a new file, or in the place of the old one
    FILES_NEW,   // no such name yet
    FILES_MATCH, // in the place of the file whose content has the hash if_match
};

struct files_write_options {
    enum files_condition condition;
    const char *if_match; // 64 lower-case digits; read at files_write_begin() only
    uint32_t mode;        // permission bits; 0: those of the old file, or 0644
    uint64_t max_bytes;   // of content: what the limits leave
    bool make_folders;
    bool quick; // no hash, and not forced to the disk: a crash of the machine may take it
    int parts;  // a folder of the caller's on the same mount, for what is not whole yet; stays open
                // until the end. 0: beside the file's place
};

// A file that is written under a random name and put in its place whole, or not at all.
// It points into itself: not to be moved in memory.
struct files_write {
    uint64_t bytes;          // of content so far
    char sha256[SHA256_HEX]; // of the content, once it is committed
    bool replaced;           // there was a file of that name when it began
    int64_t more_bytes;      // that the disk takes since it is committed, folders not counted
    // inner
    struct files files;
    int parent, fd, parts; // parts: or parent
    struct stat self;
    char temp[FILES_RANDOM_NAME], name[NAME_MAX + 1], if_match[SHA256_HEX];
    enum files_condition condition;
    uint64_t max_bytes;
    struct sha256 sha;
    struct files_file old;
    struct files_hash old_hash;
    bool quick, synced;
};

// Refuses early what can be known early. Nothing is to be dropped after a failure.
int files_write_begin(struct files_write *w, const struct files *f, const char *path,
                      const struct files_write_options *o);
// FILES_TOO_BIG over max_bytes; FILES_FULL when the file system is (disk.h: disk_floor()).
int files_write_add(struct files_write *w, const void *data, size_t len);
// On disk when it answers 0. FILES_AGAIN: the old content is being hashed, call again. The first
// call waits for the disk (fsync(2)): as long as that takes for what was added, so a big file
// belongs on a thread of its own. FILES_CHANGED: a program of the session replaced it meanwhile.
// With FILES_MATCH, what a program writes in the microseconds between look and rename is lost.
int files_write_commit(struct files_write *w);
// Instead of files_write_commit(): in the place of the file that `old` is (files_open()), if it
// still holds these bytes and no program can write to it any more. FILES_CHANGED: it was written to
// or replaced meanwhile; FILES_BUSY; in both cases it stays.
// How: the two change places (rename(2), RENAME_EXCHANGE), so that nobody can open the old one any
// more; then a read lease (fcntl(2), F_SETLEASE), which there is none for what is open for writing,
// and a look at its bytes; if that fails they change back. Lost is a write only where one program
// writes to the old file and another one to the new one in the microseconds in between, or where
// the file system has no leases or the file other names.
int files_write_commit_over(struct files_write *w, const struct files_file *old, const void *data,
                            size_t len);
// The file that was there, where If-Match has it open, else -1: the caller's to close, which takes
// its time where somebody has removed a large one. Harmless as files_write_drop() is.
int files_write_take_old(struct files_write *w);
// Releases; what is not committed vanishes. Harmless on a zeroed, finished or failed one.
void files_write_drop(struct files_write *w);

#endif
