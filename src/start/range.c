#include "start/range.h"

#include "base/fd.h"
#include "plan/plan.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

// Where a full map lets us choose: above every range that systemd, SSSD and the subordinate ids of
// login users take by themselves, below 2^31, where ids begin to look negative.
static const uint64_t preferred_first = 0x78000000;

struct extent {
    uint64_t first, count;
};

static FILE *open_text(int root, const char *path)
{
    int fd = openat(root, path, O_RDONLY | O_CLOEXEC);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    if (fd >= 0 && !f) {
        close(fd);
    }
    return f;
}

// The extent that holds all preferred ranges, else the largest.
static struct extent mapped_extent(int root)
{
    struct extent best = {0, 0};
    unsigned long inner, outer, count;
    FILE *f = open_text(root, "proc/self/uid_map");
    while (f && fscanf(f, "%lu %lu %lu", &inner, &outer, &count) == 3) {
        uint64_t wanted = (uint64_t)RANGE_MAX_INSTANCES * PLAN_UID_COUNT;
        if (inner <= preferred_first && preferred_first + wanted <= (uint64_t)inner + count) {
            best = (struct extent){preferred_first, wanted};
            break;
        }
        if (count > best.count) {
            best = (struct extent){inner, count};
        }
    }
    if (f) {
        fclose(f);
    }
    // the ids below 65536 are for the accounts of whatever lives in this map
    if (best.first < PLAN_UID_COUNT) {
        uint64_t cut = PLAN_UID_COUNT - best.first;
        best.first = PLAN_UID_COUNT;
        best.count = best.count > cut ? best.count - cut : 0;
    }
    return best;
}

static bool is_mapped(int root, uint64_t first, uint64_t ids)
{
    unsigned long inner, outer, count;
    bool found = false;
    FILE *f = open_text(root, "proc/self/uid_map");
    while (f && fscanf(f, "%lu %lu %lu", &inner, &outer, &count) == 3) {
        found |= inner <= first && first + ids <= (uint64_t)inner + count;
    }
    if (f) {
        fclose(f);
    }
    return found;
}

// An account has one id (name:x:ID:...), a subordinate range two numbers (name:FIRST:COUNT).
static bool line_touches(const char *line, bool is_range, uint64_t base, uint32_t ids)
{
    unsigned long first, count = 1;
    const char *colon = strchr(line, ':');
    if (!colon) {
        return false;
    }
    int fields =
        is_range ? sscanf(colon, ":%lu:%lu", &first, &count) : sscanf(colon, ":%*[^:]:%lu", &first);
    if (!is_range && fields != 1) {
        fields = sscanf(colon, "::%lu", &first); // an empty password field
    }
    return fields == (is_range ? 2 : 1) && first < base + ids && base < (uint64_t)first + count;
}

static bool is_used(int root, uint64_t base, uint32_t ids)
{
    static const struct {
        const char *path;
        bool is_range;
    } files[] = {
        {"etc/subuid", true}, {"etc/subgid", true}, {"etc/passwd", false}, {"etc/group", false}};
    bool used = false;
    AUTO_FREE char *line = NULL;
    size_t size = 0;
    for (size_t i = 0; i < ARRAY_LEN(files) && !used; i++) {
        FILE *f = open_text(root, files[i].path);
        while (f && !used && getline(&line, &size, f) >= 0) {
            used = line_touches(line, files[i].is_range, base, ids);
        }
        if (f) {
            fclose(f);
        }
    }
    return used;
}

int range_of_instance(int root, uint32_t k, uint32_t *ret_base, uint32_t *ret_count)
{
    struct extent all = mapped_extent(root);
    uint64_t base = all.first + (uint64_t)k * PLAN_UID_COUNT;
    uint32_t count = PLAN_UID_COUNT;
    if (all.count < PLAN_UID_COUNT && is_mapped(root, RANGE_SMALL_FIRST, RANGE_SMALL)) {
        base = RANGE_SMALL_FIRST;
        count = RANGE_SMALL;
    } else if (base + PLAN_UID_COUNT > all.first + all.count) {
        return -ERANGE;
    }
    if (k >= RANGE_MAX_INSTANCES) {
        return -ERANGE;
    }
    if (is_used(root, base, count)) {
        return -EBUSY;
    }
    *ret_base = (uint32_t)base;
    *ret_count = count;
    return 0;
}

bool range_of_account(int root, const char *file, const char *name, uint32_t uid,
                      struct range_of_account *ret)
{
    char number[16];
    AUTO_FREE char *line = NULL;
    size_t size = 0;
    struct range_of_account best = {0, 0};
    snprintf(number, sizeof number, "%u", uid);
    FILE *f = open_text(root, file);
    while (f && getline(&line, &size, f) >= 0) {
        unsigned long first, count;
        char *colon = strchr(line, ':');
        if (!colon || sscanf(colon, ":%lu:%lu", &first, &count) != 2) {
            continue;
        }
        *colon = '\0';
        bool theirs = !strcmp(line, name) || !strcmp(line, number);
        if (theirs && first + count <= UINT32_MAX && count > best.count) {
            best = (struct range_of_account){(uint32_t)first, (uint32_t)count};
        }
    }
    if (f) {
        fclose(f);
    }
    if (best.count < RANGE_MIN_IDS) {
        return false;
    }
    *ret = best;
    return true;
}
