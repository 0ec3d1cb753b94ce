// Replays a corpus as an ordinary test: every file as it is, cut short at each of its first bytes,
// and with single bits and bytes changed. No randomness: a failure comes back.
#include "base/fd.h"
#include "fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>

enum { MAX_FILE = 1 << 16, CHANGES = 4000 };

static uint64_t step(uint64_t x) // splitmix64
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

// On the heap and of that very size, so that a sanitizer sees a read past it.
static void feed(const uint8_t *data, size_t len)
{
    uint8_t *copy = malloc(len ? len : 1);
    MUST(copy);
    memcpy(copy, data, len);
    LLVMFuzzerTestOneInput(copy, len);
    free(copy);
}

static void replay(uint8_t *data, size_t len)
{
    feed(data, len);
    for (size_t cut = 0; cut < len && cut < 512; cut++) {
        feed(data, cut);
    }
    uint64_t x = len;
    for (int i = 0; i < CHANGES && len > 0; i++) {
        uint8_t kept[4];
        size_t at[4];
        size_t n = 1 + (size_t)i % 4;
        for (size_t k = 0; k < n; k++) {
            x = step(x);
            at[k] = (size_t)(x >> 16) % len;
            kept[k] = data[at[k]];
            data[at[k]] = (uint8_t)(x & 256 ? x : data[at[k]] ^ (1u << (x & 7)));
        }
        feed(data, len);
        while (n-- > 0) {
            data[at[n]] = kept[n];
        }
    }
}

int main(int argc, char **argv)
{
    static uint8_t data[MAX_FILE];
    int files = 0;
    for (int i = 1; i < argc; i++) {
        DIR *d = opendir(argv[i]);
        MUST(d);
        for (struct dirent *e; (e = readdir(d));) {
            if (e->d_name[0] == '.') {
                continue;
            }
            AUTO_CLOSE int fd = openat(dirfd(d), e->d_name, O_RDONLY | O_CLOEXEC);
            ssize_t n = fd < 0 ? -1 : read(fd, data, sizeof data);
            MUST(n >= 0);
            replay(data, (size_t)n);
            files++;
        }
        closedir(d);
    }
    MUST(files > 0);
    return 0;
}
