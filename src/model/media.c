#include "model/media.h"

#include "base/fd.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

static const char unknown[] = "application/octet-stream";

static const struct {
    const char *ending, *type;
    bool active;
} types[] = {
    {"txt", "text/plain", false},
    {"log", "text/plain", false},
    {"md", "text/markdown", false},
    {"csv", "text/csv", false},
    {"tsv", "text/tab-separated-values", false},
    {"json", "application/json", false},
    {"jsonl", "application/jsonl", false},
    {"yaml", "application/yaml", false},
    {"yml", "application/yaml", false},
    {"pdf", "application/pdf", false},
    {"png", "image/png", false},
    {"jpg", "image/jpeg", false},
    {"jpeg", "image/jpeg", false},
    {"gif", "image/gif", false},
    {"webp", "image/webp", false},
    {"bmp", "image/bmp", false},
    {"wav", "audio/wav", false},
    {"mp3", "audio/mpeg", false},
    {"mp4", "video/mp4", false},
    {"zip", "application/zip", false},
    {"gz", "application/gzip", false},
    {"parquet", "application/vnd.apache.parquet", false},
    {"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", false},
    {"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", false},
    {"pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation", false},
    {"html", "text/html", true},
    {"htm", "text/html", true},
    {"svg", "image/svg+xml", true},
    {"xml", "application/xml", true},
    {"js", "text/javascript", true},
    {"mjs", "text/javascript", true},
};

static const char *find(const char *name, bool inert)
{
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < ARRAY_LEN(types); i++) {
        if (!strcasecmp(dot + 1, types[i].ending)) {
            return inert && types[i].active ? unknown : types[i].type;
        }
    }
    return unknown;
}

const char *media_type(const char *name) { return find(name, false); }
const char *media_type_inert(const char *name) { return find(name, true); }
