// The file library on real hostile workspaces: what belongs to a session is read, written, moved
// and removed; everything else is refused by name, also while a program swaps entries.
#include "place.h"

#include "workspace/files.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

enum { OWNER = 61234 }; // of the workspace; this is root

static struct files the_files(const struct place *p)
{
    assert_int_equal(fchown(p->ws, OWNER, OWNER), 0);
    return (struct files){p->ws, OWNER};
}

// A file of the session's.
static void own(struct place *p, const char *name, const char *text)
{
    place_write(p->ws, name, text, strlen(text));
    assert_int_equal(fchownat(p->ws, name, OWNER, OWNER, 0), 0);
}

static void own_folder(struct place *p, const char *name)
{
    assert_int_equal(mkdirat(p->ws, name, 0755), 0);
    assert_int_equal(fchownat(p->ws, name, OWNER, OWNER, 0), 0);
}

static void expect(struct place *p, const char *name, const char *text)
{
    char got[64] = "";
    assert_true(fd_read_at(p->ws, name, got, sizeof got) >= 0);
    assert_string_equal(got, text);
}

static int open_it(const struct files *f, const char *path)
{
    struct files_file file = {.fd = -1};
    int e = files_open(f, path, 1000, &file);
    assert_int_equal(e == 0, file.fd >= 0);
    fd_close(file.fd);
    return e;
}

static void hash_of(const struct files *f, const char *path, char ret[SHA256_HEX])
{
    struct files_file file;
    struct files_hash h;
    int e;
    assert_int_equal(files_open(f, path, UINT64_MAX, &file), 0);
    files_hash_begin(&h, &file);
    while ((e = files_hash_step(&h, 1, ret)) == 0) {
    }
    assert_int_equal(e, 1);
    close(file.fd);
}

static int write_with(const struct files *f, const char *path, const char *text,
                      const struct files_write_options *o)
{
    struct files_write w = {0};
    int e = files_write_begin(&w, f, path, o);
    if (!e) {
        e = files_write_add(&w, text, strlen(text));
    }
    while (!e && (e = files_write_commit(&w)) == FILES_AGAIN) {
        e = 0;
    }
    files_write_drop(&w);
    files_write_drop(&w);
    return e;
}

// How many entries the workspace's root has: nothing temporary may stay.
static int entries(const struct place *p)
{
    int n = 0;
    DIR *d = fdopendir(openat(p->ws, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    while (readdir(d)) {
        n++;
    }
    closedir(d);
    return n - 2;
}

static void a_file_opens_with_its_hash(void **state)
{
    struct place *p = *state;
    struct files f = the_files(p);
    struct files_file file;
    char hex[SHA256_HEX];
    own_folder(p, "out");
    own(p, "out/a", "abc");
    assert_int_equal(fchmodat(p->ws, "out/a", 0, 0), 0); // root reads it all the same
    assert_int_equal(files_open(&f, "out/a", 3, &file), 0);
    assert_int_equal(file.size_bytes, 3);
    assert_int_equal(file.mode, 0);
    assert_true(file.mtime_ms / 1000 - time(NULL) < 5);
    close(file.fd);
    assert_int_equal(files_open(&f, "out/a", 2, &file), FILES_TOO_BIG);
    hash_of(&f, "out/a", hex); // FIPS 180-4's example
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void what_is_no_file_of_the_session_is_refused(void **state)
{
    struct place *p = *state;
    struct files f = the_files(p);
    own(p, "real", "x");
    own_folder(p, "folder");
    place_write(p->ws, "roots", "x", 1);
    assert_int_equal(linkat(p->outer, "secret", p->ws, "hard", 0), 0);
    assert_int_equal(mkfifoat(p->ws, "fifo", 0666), 0);
    assert_int_equal(symlinkat("real", p->ws, "inside"), 0);
    assert_int_equal(symlinkat("/etc/shadow", p->ws, "outside"), 0);
    assert_int_equal(symlinkat("..", p->ws, "up"), 0);
    assert_int_equal(symlinkat("/proc/self/root", p->ws, "magic"), 0);
    AUTO_CLOSE int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "/proc/self/fd/%d/socket", p->ws);
    assert_int_equal(bind(s, (struct sockaddr *)&a, sizeof a), 0);
    static const struct {
        const char *path;
        int open, write, move;
    } cases[] = {
        {"missing", FILES_MISSING, 0, FILES_MISSING},
        {"folder", FILES_FOLDER, FILES_FOLDER, 0},
        {"roots", FILES_FOREIGN, FILES_FOREIGN, FILES_FOREIGN},
        {"hard", FILES_FOREIGN, FILES_FOREIGN, FILES_FOREIGN},
        {"fifo", FILES_SPECIAL, FILES_SPECIAL, FILES_SPECIAL},
        {"socket", FILES_SPECIAL, FILES_SPECIAL, FILES_SPECIAL},
        {"inside", FILES_LINK, FILES_LINK, FILES_LINK},
        {"outside", FILES_LINK, FILES_LINK, FILES_LINK},
        {"up/secret", FILES_LINK, FILES_NO_FOLDER, FILES_NO_FOLDER},
        {"magic/etc/passwd", FILES_LINK, FILES_NO_FOLDER, FILES_NO_FOLDER},
        {"real/x", FILES_NO_FOLDER, FILES_NO_FOLDER, FILES_NO_FOLDER},
        {"..", FILES_OUTSIDE, FILES_OUTSIDE, FILES_OUTSIDE},
        {"../secret", FILES_OUTSIDE, FILES_OUTSIDE, FILES_OUTSIDE},
        {"/etc/passwd", FILES_OUTSIDE, FILES_NAME, FILES_NAME},
        {".", FILES_FOLDER, FILES_ROOT, FILES_ROOT},
    };
    const struct files_write_options any = {.max_bytes = 100};
    const struct files_move_options plain = {0};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("%s\n", cases[i].path);
        assert_int_equal(open_it(&f, cases[i].path), cases[i].open);
        assert_int_equal(files_move(&f, cases[i].path, "moved", &plain), cases[i].move);
        if (!cases[i].move) {
            assert_int_equal(files_move(&f, "moved", cases[i].path, &plain), 0);
        }
        assert_int_equal(write_with(&f, cases[i].path, "new", &any), cases[i].write);
    }
    expect(p, "real", "x");
    assert_int_equal(faccessat(p->ws, "hard", F_OK, 0), 0);
    char text[16];
    assert_int_equal(fd_read_at(p->outer, "secret", text, sizeof text), 6);
    assert_string_equal(text, "secret");
}

static void a_device_is_not_even_opened(void **state)
{
    struct place *p = *state;
    struct files f = the_files(p);
    if (mknodat(p->ws, "null", S_IFCHR | 0666, 1 << 8 | 3)) {
        skip();
    }
    assert_int_equal(open_it(&f, "null"), FILES_SPECIAL);
}

static void what_is_not_whole_lies_where_the_caller_says(void **state)
{
    struct place *p = *state;
    struct files f = the_files(p);
    struct files_write w = {0};
    assert_int_equal(mkdirat(p->outer, "parts", 0700), 0);
    AUTO_CLOSE int parts = openat(p->outer, "parts", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct files_write_options o = {.max_bytes = 100, .parts = parts};
    assert_int_equal(files_write_begin(&w, &f, "f", &o), 0);
    assert_int_equal(files_write_add(&w, "text", 4), 0);
    assert_int_equal(entries(p), 0);
    assert_int_equal(faccessat(parts, w.temp, F_OK, 0), 0);
    assert_int_equal(files_write_commit(&w), 0);
    expect(p, "f", "text");
    files_write_drop(&w);
    assert_int_equal(files_write_begin(&w, &f, "g", &o), 0);
    files_write_drop(&w);
    assert_int_equal(unlinkat(p->outer, "parts", AT_REMOVEDIR), 0); // empty again
}

static void a_folder_that_came_there_stays_the_sessions(void **state)
{
    struct place *p = *state;
    struct files f = the_files(p);
    struct files_write w;
    assert_int_equal(mkdirat(p->outer, "parts", 0700), 0);
    AUTO_CLOSE int parts = openat(p->outer, "parts", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct files_write_options o = {.max_bytes = 100, .parts = parts};
    char name[FILES_RANDOM_NAME];
    assert_int_equal(files_write_begin(&w, &f, "f", &o), 0);
    memcpy(name, w.temp, sizeof name);
    assert_int_equal(unlinkat(parts, name, 0), 0);
    own_folder(p, "d");
    own(p, "d/in", "kept");
    assert_int_equal(renameat(p->ws, "d", parts, name), 0);
    files_write_drop(&w);
    assert_int_equal(unlinkat(p->outer, "parts", AT_REMOVEDIR), 0); // nothing is left there
    assert_int_equal(renameat(p->ws, name, p->ws, "d"), 0);
    expect(p, "d/in", "kept");
}

static void a_spool_has_no_name(void **state)
{
    struct place *p = *state;
    int fd = -1;
    char text[8] = "";
    assert_int_equal(files_spool(p->ws, &fd), 0);
    assert_int_equal(entries(p), 0);
    assert_int_equal(pwrite(fd, "text", 4, 0), 4);
    assert_int_equal(pread(fd, text, sizeof text, 0), 4);
    close(fd);
}

static void a_file_is_written_whole(void **state)
{
    struct place *p = *state;
    struct files f = the_files(p);
    struct stat st;
    struct files_write_options o = {.max_bytes = 5, .make_folders = true, .mode = 06750};
    assert_int_equal(write_with(&f, "a/b/new", "12345", &o), 0);
    expect(p, "a/b/new", "12345");
    assert_int_equal(fstatat(p->ws, "a/b/new", &st, 0), 0);
    assert_int_equal(st.st_uid, OWNER);
    assert_int_equal(st.st_mode & 07777, 0750);
    assert_int_equal(fstatat(p->ws, "a/b", &st, 0), 0);
    assert_int_equal(st.st_uid, OWNER);
    o.mode = 0;
    assert_int_equal(write_with(&f, "a/b/new", "new", &o), 0);
    assert_int_equal(fstatat(p->ws, "a/b/new", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0750);
    assert_int_equal(write_with(&f, "a/b/new", "123456", &o), FILES_TOO_BIG);
    expect(p, "a/b/new", "new");
    o.condition = FILES_NEW;
    assert_int_equal(write_with(&f, "a/b/new", "x", &o), FILES_EXISTS);
    assert_int_equal(write_with(&f, "second", "x", &o), 0);
    assert_int_equal(entries(p), 2);
}

static void a_hard_link_keeps_its_content(void **state)
{
    struct place *p = *state;
    struct files f = the_files(p);
    own(p, "one", "old");
    assert_int_equal(linkat(p->ws, "one", p->ws, "two", 0), 0);
    const struct files_write_options o = {.max_bytes = 5};
    assert_int_equal(write_with(&f, "one", "new", &o), 0);
    expect(p, "one", "new");
    expect(p, "two", "old");
}

static void a_match_is_of_the_content(void **state)
{
    struct place *p = *state;
    struct files f = the_files(p);
    char hex[SHA256_HEX];
    own(p, "a", "old");
    hash_of(&f, "a", hex);
    struct files_write_options o = {.max_bytes = 5, .condition = FILES_MATCH, .if_match = hex};
    assert_int_equal(write_with(&f, "none", "x", &o), FILES_MISSING);
    assert_int_equal(write_with(&f, "a", "new", &o), 0);
    assert_int_equal(write_with(&f, "a", "newer", &o), FILES_MISMATCH);
    expect(p, "a", "new");
    assert_int_equal(entries(p), 1);
}

static void what_is_put_in_the_temporary_place_is_found_out(void **state)
{
    struct place *p = *state;
    struct files f = the_files(p);
    struct files_write w;
    const struct files_write_options o = {.max_bytes = 5};
    assert_int_equal(files_write_begin(&w, &f, "a", &o), 0);
    assert_int_equal(files_write_add(&w, "mine", 4), 0);
    assert_int_equal(unlinkat(p->ws, w.temp, 0), 0);
    assert_int_equal(symlinkat("../secret", p->ws, w.temp), 0);
    assert_int_equal(files_write_commit(&w), FILES_CHANGED);
    files_write_drop(&w);
    assert_int_equal(open_it(&f, "a"), FILES_LINK);
}

// ---- over the file that was read

struct over {
    struct files f;
    struct files_file old;
    struct files_write w;
    char data[16];
};

// "a" has been read; a new content is ready.
static void begin_over(struct over *o, struct place *p)
{
    const struct files_write_options options = {.max_bytes = 100, .quick = true};
    *o = (struct over){.f = the_files(p)};
    own(p, "a", "old");
    assert_int_equal(fchmodat(p->ws, "a", 0750, 0), 0);
    assert_int_equal(files_open(&o->f, "a", 100, &o->old), 0);
    assert_int_equal(pread(o->old.fd, o->data, sizeof o->data, 0), 3);
    assert_int_equal(files_write_begin(&o->w, &o->f, "a", &options), 0);
    assert_int_equal(files_write_add(&o->w, "new one", 7), 0);
}

static int end_over(struct over *o)
{
    int e = files_write_commit_over(&o->w, &o->old, o->data, 3);
    files_write_drop(&o->w);
    close(o->old.fd);
    return e;
}

static void over_what_was_read(void **state)
{
    struct place *p = *state;
    struct over o;
    struct stat st;
    begin_over(&o, p);
    AUTO_CLOSE int reader = openat(p->ws, "a", O_RDONLY | O_CLOEXEC); // is in nobody's way
    assert_int_equal(end_over(&o), 0);
    expect(p, "a", "new one");
    assert_int_equal(fstatat(p->ws, "a", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0750);
    assert_true(st.st_uid == OWNER && st.st_gid == OWNER);
    assert_int_equal(entries(p), 1);
    char left[4] = "";
    assert_int_equal(pread(reader, left, 3, 0), 3);
    assert_string_equal(left, "old");
}

static void over_a_changed_one(void **state)
{
    struct place *p = *state;
    struct over o;
    struct stat before, after;
    begin_over(&o, p);
    own(p, "a", "longer");
    assert_int_equal(end_over(&o), FILES_CHANGED);
    expect(p, "a", "longer");
    // of the same length, and of the same time as far as anybody can tell
    begin_over(&o, p);
    assert_int_equal(fstat(o.old.fd, &before), 0);
    own(p, "a", "odd");
    const struct timespec times[] = {before.st_atim, before.st_mtim};
    assert_int_equal(utimensat(p->ws, "a", times, 0), 0);
    assert_int_equal(end_over(&o), FILES_CHANGED);
    expect(p, "a", "odd");
    assert_int_equal(fstatat(p->ws, "a", &after, 0), 0);
    assert_true(after.st_ino == before.st_ino && after.st_uid == OWNER);
    // another one in its place, none, a folder
    begin_over(&o, p);
    own(p, "b", "old");
    assert_int_equal(renameat(p->ws, "b", p->ws, "a"), 0);
    assert_int_equal(end_over(&o), FILES_CHANGED);
    begin_over(&o, p);
    assert_int_equal(unlinkat(p->ws, "a", 0), 0);
    assert_int_equal(end_over(&o), FILES_CHANGED);
    begin_over(&o, p);
    assert_int_equal(unlinkat(p->ws, "a", 0), 0);
    own_folder(p, "a");
    assert_int_equal(end_over(&o), FILES_CHANGED);
    assert_int_equal(entries(p), 1);
    assert_int_equal(unlinkat(p->ws, "a", AT_REMOVEDIR), 0);
}

static void over_one_that_is_open_for_writing(void **state)
{
    struct place *p = *state;
    struct over o;
    struct stat st;
    begin_over(&o, p);
    AUTO_CLOSE int writer = openat(p->ws, "a", O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_int_equal(end_over(&o), FILES_BUSY);
    assert_int_equal(fd_write_all(writer, "er", 2), 0);
    expect(p, "a", "older");
    assert_int_equal(fstatat(p->ws, "a", &st, 0), 0);
    assert_int_equal(st.st_uid, OWNER);
    assert_int_equal(entries(p), 1);
    // where it has another name its owner is left alone: only its bytes are looked at
    assert_int_equal(unlinkat(p->ws, "a", 0), 0);
    begin_over(&o, p);
    assert_int_equal(linkat(p->ws, "a", p->ws, "b", 0), 0);
    assert_int_equal(end_over(&o), 0);
    expect(p, "a", "new one");
    expect(p, "b", "old");
}

static void a_hash_of_what_changes_is_none(void **state)
{
    struct place *p = *state;
    struct files f = the_files(p);
    struct files_file file;
    struct files_hash h;
    char hex[SHA256_HEX];
    own(p, "a", "old");
    assert_int_equal(files_open(&f, "a", 10, &file), 0);
    files_hash_begin(&h, &file);
    own(p, "a", "longer");
    assert_int_equal(files_hash_step(&h, 100, hex), -ESTALE);
    close(file.fd);
}

static void moves(void **state)
{
    struct place *p = *state;
    struct files f = the_files(p);
    own(p, "a", "a");
    own(p, "b", "b");
    own_folder(p, "d");
    struct files_move_options o = {0};
    assert_int_equal(files_move(&f, "a", "b", &o), FILES_EXISTS);
    assert_int_equal(files_move(&f, "a", "x/y/a", &o), FILES_MISSING);
    assert_int_equal(files_move(&f, "d", "d/e", &o), FILES_INTO_ITSELF);
    o.replace = true;
    assert_int_equal(files_move(&f, "a", "b", &o), 0);
    expect(p, "b", "a");
    assert_int_equal(files_move(&f, "b", "d", &o), FILES_FOLDER);
    assert_int_equal(files_move(&f, ".", "e", &o), FILES_ROOT);
    o.make_folders = true;
    assert_int_equal(files_move(&f, "b", "x/y/b", &o), 0);
    expect(p, "x/y/b", "a");
}

static void folders(void **state)
{
    struct place *p = *state;
    struct files f = the_files(p);
    int fd = -1;
    own_folder(p, "a");
    own_folder(p, "a/b");
    assert_int_equal(files_open_folder(&f, "a/b", &fd), 0);
    close(fd);
    assert_int_equal(files_open_folder(&f, ".", &fd), 0);
    close(fd);
    own(p, "file", "x");
    assert_int_equal(files_open_folder(&f, "file", &fd), FILES_NO_FOLDER);
    assert_int_equal(files_open_folder(&f, "none", &fd), FILES_MISSING);
    assert_int_equal(files_open_folder(&f, "..", &fd), FILES_OUTSIDE);
    assert_int_equal(mkdirat(p->ws, "roots", 0755), 0);
    assert_int_equal(files_open_folder(&f, "roots", &fd), FILES_FOREIGN);
    assert_int_equal(symlinkat("..", p->ws, "up"), 0);
    assert_int_equal(files_open_folder(&f, "up/w", &fd), FILES_LINK);
    assert_int_equal(files_open_folder(&f, "up", &fd), FILES_NO_FOLDER);
}

static void removal(void **state)
{
    struct place *p = *state;
    struct files f = the_files(p);
    struct files_file file;
    assert_int_equal(mkdirat(p->outer, "trash", 0700), 0);
    AUTO_CLOSE int trash = openat(p->outer, "trash", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct files_remove_options o = {.trash = -1};
    own(p, "a", "a");
    assert_int_equal(files_open(&f, "a", 10, &file), 0);
    own(p, "a", "changed");
    o.expected = &file;
    assert_int_equal(files_remove(&f, "a", &o), FILES_CHANGED);
    o.expected = NULL;
    close(file.fd);
    assert_int_equal(files_remove(&f, "a", &o), 0);
    assert_int_equal(files_remove(&f, "a", &o), FILES_MISSING);
    assert_int_equal(symlinkat("../secret", p->ws, "link"), 0);
    assert_int_equal(files_remove(&f, "link", &o), 0);
    assert_int_equal(faccessat(p->outer, "secret", F_OK, 0), 0);
    own_folder(p, "d");
    own_folder(p, "d/e");
    own_folder(p, "d/e/f");
    assert_int_equal(files_remove(&f, "d/e/f", &o), 0);
    assert_int_equal(files_remove(&f, "d", &o), FILES_NOT_EMPTY);
    assert_int_equal(fchmodat(p->ws, "d", 0, 0), 0);
    o.trash = trash;
    assert_int_equal(files_remove(&f, "d", &o), 0);
    assert_int_equal(files_remove(&f, ".", &o), FILES_ROOT);
    assert_int_equal(entries(p), 0);
    assert_int_equal(tree_empty(trash), 0);
}

// The session's program: "a" is in turn a file, a link to the secret and a folder's name, and "d" a
// folder and a link out of the workspace.
static void swap_for_ever(const struct place *p)
{
    if (setgid(OWNER) || setuid(OWNER)) {
        _exit(1);
    }
    for (int made = 0; made >= 0;) {
        unlinkat(p->ws, "a", 0);
        made += !symlinkat("../secret", p->ws, "a");
        unlinkat(p->ws, "d/x", 0);
        unlinkat(p->ws, "d", AT_REMOVEDIR);
        made += !symlinkat("..", p->ws, "d");
        unlinkat(p->ws, "a", 0);
        close(openat(p->ws, "a", O_CREAT | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600));
        unlinkat(p->ws, "d", 0);
        mkdirat(p->ws, "d", 0700);
        close(openat(p->ws, "d/x", O_CREAT | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600));
    }
}

static void read_one(const struct files *f, const char *path)
{
    struct files_file file;
    char text[16] = "";
    if (files_open(f, path, 1000, &file) == 0) {
        assert_true(fd_read_full(file.fd, text, sizeof text - 1) >= 0);
        assert_string_not_equal(text, "secret");
        close(file.fd);
    }
}

static void nothing_outside_is_touched_while_entries_are_swapped(void **state)
{
    struct place *p = *state;
    struct files f = the_files(p);
    const struct files_write_options o = {.max_bytes = 5, .make_folders = true};
    const struct files_remove_options gone = {.trash = -1};
    const struct files_move_options over = {.replace = true};
    assert_int_equal(fchmod(p->outer, 0755), 0);
    pid_t pid = fork();
    if (pid == 0) {
        swap_for_ever(p);
    }
    while (faccessat(p->ws, "d/x", F_OK, 0)) { // it has begun
        usleep(1000);
    }
    int written = 0;
    int rounds = getenv("ISLE_LONG") ? 10000 : 400;
    for (int i = 0; i < rounds; i++) {
        read_one(&f, "a");
        read_one(&f, "d/secret");
        written += write_with(&f, "d/secret", "new", &o) == 0;
        write_with(&f, "a", "new", &o);
        files_move(&f, "d/secret", "d/moved", &over);
        files_remove(&f, "d/moved", &gone);
        write_with(&f, "d/made/file", "new", &o);
        files_remove(&f, "d/made", &gone);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    char text[16];
    assert_int_equal(fd_read_at(p->outer, "secret", text, sizeof text), 6);
    assert_string_equal(text, "secret");
    assert_int_equal(faccessat(p->outer, "made", F_OK, 0), -1);
    assert_int_equal(faccessat(p->outer, "moved", F_OK, 0), -1);
    print_message("%d of %d written\n", written, rounds);
}

int main(void)
{
    if (geteuid() != 0) {
        return 77; // files of another uid are the matter here
    }
    const struct CMUnitTest tests[] = {
        PLACE_TEST(a_file_opens_with_its_hash),
        PLACE_TEST(what_is_no_file_of_the_session_is_refused),
        PLACE_TEST(a_device_is_not_even_opened),
        PLACE_TEST(what_is_not_whole_lies_where_the_caller_says),
        PLACE_TEST(a_folder_that_came_there_stays_the_sessions),
        PLACE_TEST(a_spool_has_no_name),
        PLACE_TEST(a_file_is_written_whole),
        PLACE_TEST(a_hard_link_keeps_its_content),
        PLACE_TEST(a_match_is_of_the_content),
        PLACE_TEST(what_is_put_in_the_temporary_place_is_found_out),
        PLACE_TEST(over_what_was_read),
        PLACE_TEST(over_a_changed_one),
        PLACE_TEST(over_one_that_is_open_for_writing),
        PLACE_TEST(a_hash_of_what_changes_is_none),
        PLACE_TEST(moves),
        PLACE_TEST(folders),
        PLACE_TEST(removal),
        PLACE_TEST(nothing_outside_is_touched_while_entries_are_swapped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
