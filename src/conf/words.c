#include "conf/words.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

const char *const setting_word_names[SETTING_N_WORDS] = {
    [SETTING_W_LISTEN] = "HOST:PORT, where HOST is an address (IPv6 in brackets), localhost or *",
    [SETTING_W_HOST] = "host names or addresses (IPv6 in brackets), each with a port or without",
    [SETTING_W_ORIGIN] = "http://HOST or https://HOST, each with a port or without, no path",
    [SETTING_W_URL] =
        "http://HOST or https://HOST, perhaps a port, perhaps a path of plain letters",
    [SETTING_W_NETWORK] = "addresses or networks such as 10.0.0.0/8",
    [SETTING_W_PROGRAM] = "names of programs, or absolute paths of plain letters",
};

static bool is_number(const char *text, unsigned long least, unsigned long most)
{
    size_t n = strlen(text);
    if (n < 1 || n > 5 || strspn(text, "0123456789") != n) {
        return false;
    }
    unsigned long value = strtoul(text, NULL, 10);
    return value >= least && value <= most;
}

static bool is_listen(const char *word)
{
    char host[SETTING_MAX_WORD + 1];
    struct in6_addr address;
    const char *colon = strrchr(word, ':');
    size_t n = colon ? (size_t)(colon - word) : 0;
    if (n == 0 || n >= sizeof host || !is_number(colon + 1, 0, 65535)) {
        return false;
    }
    memcpy(host, word, n);
    host[n] = '\0';
    if (host[0] == '[' && host[n - 1] == ']') {
        host[n - 1] = '\0';
        return inet_pton(AF_INET6, host + 1, &address) == 1;
    }
    return strcmp(host, "localhost") == 0 || strcmp(host, "*") == 0 ||
           inet_pton(AF_INET, host, &address) == 1;
}

static bool is_host(const char *word)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    size_t n = 0;
    if (*word == '[') {
        n = 1 + strspn(word + 1, "0123456789abcdefABCDEF:.");
        n = n > 1 && word[n] == ']' ? n + 1 : 0;
    } else {
        while (word[n] && (strchr(letters, word[n]) || strchr("-._", word[n]))) {
            n++;
        }
    }
    return n > 0 && n <= 255 && (!word[n] || (word[n] == ':' && is_number(word + n + 1, 1, 65535)));
}

static bool is_origin(const char *word)
{
    size_t scheme = strncmp(word, "http://", 7) == 0    ? 7
                    : strncmp(word, "https://", 8) == 0 ? 8
                                                        : 0;
    return scheme && is_host(word + scheme);
}

// Text is appended to it as it is, in JSON and in Markdown.
static bool is_url(const char *word)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
    char origin[SETTING_MAX_WORD + 1];
    const char *authority = strstr(word, "://");
    const char *path = authority ? strchr(authority + 3, '/') : NULL;
    size_t n = path ? (size_t)(path - word) : strlen(word);
    if (n >= sizeof origin) {
        return false;
    }
    memcpy(origin, word, n);
    origin[n] = '\0';
    return is_origin(origin) &&
           (!path || (!path[strspn(path, letters)] && !strstr(path, "//") && !strstr(path, "/.")));
}

// No bit stands behind the prefix: 10.0.0.1/8 is a mistake for one or the other.
static bool ends_at(const unsigned char *address, unsigned bits, unsigned prefix)
{
    for (unsigned i = prefix; i < bits; i++) {
        if (address[i / 8] >> (7 - i % 8) & 1) {
            return false;
        }
    }
    return true;
}

static bool is_network(const char *word)
{
    char text[INET6_ADDRSTRLEN];
    unsigned char address[16];
    size_t n = strcspn(word, "/");
    if (n >= sizeof text) {
        return false;
    }
    memcpy(text, word, n);
    text[n] = '\0';
    unsigned bits = inet_pton(AF_INET, text, address) == 1    ? 32
                    : inet_pton(AF_INET6, text, address) == 1 ? 128
                                                              : 0;
    if (bits == 0 || (word[n] && !is_number(word + n + 1, 0, bits))) {
        return false;
    }
    return !word[n] || ends_at(address, bits, (unsigned)strtoul(word + n + 1, NULL, 10));
}

// A name has no folder in it; a path has no part that leads back.
static bool is_program(const char *word)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-";
    bool path = *word == '/';
    const char *at = word + path;
    do {
        size_t n = strspn(at, letters);
        if (n == 0 || (*at == '.' && (n == 1 || (n == 2 && at[1] == '.')))) {
            return false;
        }
        at += n;
    } while (path && *at == '/' && at++);
    return *at == '\0';
}

bool words_check(enum setting_word kind, const char *word)
{
    static bool (*const checks[SETTING_N_WORDS])(const char *word) = {
        [SETTING_W_LISTEN] = is_listen,   [SETTING_W_HOST] = is_host,
        [SETTING_W_ORIGIN] = is_origin,   [SETTING_W_URL] = is_url,
        [SETTING_W_NETWORK] = is_network, [SETTING_W_PROGRAM] = is_program,
    };
    return checks[kind](word);
}
