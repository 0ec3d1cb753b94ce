// The way from `isle` to the program that speaks HTTP.
#include "base/fd.h"
#include "cli/beside.h"
#include "cli/front.h"
#include "cli/remote.h"

#include <string.h>

// The service of this host listens at a socket that the same settings name, and that its owner
// alone may write to. Where they cannot be read as they are, whoever asks has to know it.
static void find_url(const char *verb, char *ret, size_t size)
{
    const struct front_given none = {};
    struct front_settings settings = {};
    struct front_error why;
    int n = -1;
    if (front_conf_load(&none, &settings, &why)) {
        verb_complain(
            verb, "%s; so the service's socket is not known, and " REMOTE_DEFAULT_URL " is asked",
            why.text);
    } else {
        const char *given = settings.conf.text[SETTING_SOCKET];
        const char *run = settings.conf.text[SETTING_RUN_DIR];
        n = snprintf(ret, size, *given ? "unix:%s" : "unix:%s/isle.sock", *given ? given : run);
        front_settings_done(&settings);
    }
    if (n < 0 || (size_t)n >= size || access(ret + strlen("unix:"), W_OK) != 0) {
        snprintf(ret, size, "%s", REMOTE_DEFAULT_URL);
    }
}

// argv without --key and its value, in place: a command's own words stay.
static void drop_key(char **argv)
{
    char **to = argv;
    bool command = false;
    for (char **from = argv; *from; from++) {
        command = command || strcmp(*from, "--") == 0;
        if (!command && strcmp(*from, "--key") == 0 && from[1]) {
            from++;
        } else if (command || strncmp(*from, "--key=", 6) != 0) {
            *to++ = *from;
        }
    }
    *to = NULL;
}

int remote_execute(const struct cli_places *places, char **argv, const char *url, const char *key)
{
    char found[START_PLACE_MAX + 64];
    const char *from = getenv("ISLE_URL");
    if (!url && !(from && *from)) {
        find_url(argv[0], found, sizeof found);
        url = found;
    }
    if ((url && setenv("ISLE_URL", url, 1)) || (key && setenv("ISLE_KEY", key, 1))) {
        return verb_complain(argv[0], "not enough memory");
    }
    drop_key(argv);
    return beside_execute(places, argv[0], REMOTE_PROGRAM, argv);
}

int remote_main(int argc, char **argv, const struct cli_places *places)
{
    struct remote_command c;
    int status = 0;
    (void)argc;
    if (remote_parse(remote_find(argv[0]), argv, &c, &status)) {
        status = remote_execute(places, argv, c.options.url, c.options.key);
    }
    remote_done(&c);
    return status;
}
