#include "fixture.h"

#include "base/fd.h"
#include "base/tree.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

int fixture_root = -1;
static char root_path[64];

int fixture_setup(void **state)
{
    (void)state;
    snprintf(root_path, sizeof root_path, "/tmp/isle-host-XXXXXX");
    if (!mkdtemp(root_path)) {
        return -1;
    }
    fixture_root = open(root_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fixture_root < 0 ? -1 : 0;
}

int fixture_teardown(void **state)
{
    (void)state;
    int e = tree_empty(fixture_root);
    fixture_root = fd_close(fixture_root);
    return e || rmdir(root_path) ? -1 : 0;
}

void fixture_folder(const char *path)
{
    char part[512];
    snprintf(part, sizeof part, "%s", path);
    for (char *slash = part; slash; *slash++ = '/') {
        slash = strchr(slash, '/');
        if (slash) {
            *slash = '\0';
        }
        assert_true(!mkdirat(fixture_root, part, 0755) || errno == EEXIST);
        if (!slash) {
            break;
        }
    }
}

void fixture_put(const char *path, const char *text)
{
    char folder[512];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash) {
        *slash = '\0';
        fixture_folder(folder);
    }
    AUTO_CLOSE int fd = openat(fixture_root, path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}
