// front.c: `isle` with a service that was taken over: what it sends to the front, which runs with
// the user's rights and writes the user's files.
//
// The front is the real one (src/cli). The service does what the first word of the job's command
// says; test_border_front.py looks at what became of the user's side.
#include "app/places.h"
#include "base/fd.h"
#include "base/msg.h"
#include "cli/cli.h"
#include "codec/frame.h"
#include "start/start.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define OK_RESULT                                                                                  \
    "{\"success\":true,\"reason\":\"ok\",\"result\":null,\"error\":null,\"exit_code\":0,"          \
    "\"signal\":null,\"stdout\":\"\",\"stderr\":\"\"}"

static uint32_t sent;

static void post(int sock, uint32_t type, const char *text)
{
    AUTO_BUF struct buf b = BUF_INIT(1 << 20);
    if (!frame_encode(&b, FRAME_TO_FRONT, type, 1, ++sent, text, strlen(text))) {
        fd_write_all(sock, b.data, b.len);
    }
}

// A header of any content.
static void post_raw(int sock, uint32_t magic, uint32_t type, uint32_t seq, uint32_t length)
{
    const uint32_t head[] = {magic, type, 1, seq, length};
    fd_write_all(sock, head, sizeof head);
}

// ARTIFACT with this record, this data, and then a good end.
static void artifact(int sock, const char *record, const char *data)
{
    post(sock, FRAME_ARTIFACT, record);
    if (data) {
        post(sock, FRAME_ARTIFACT_DATA, data);
    }
    post(sock, FRAME_FINAL, OK_RESULT);
}

struct mode {
    const char *name;
    void (*act)(int sock, const struct mode *m);
    const char *text, *data;
};

static void act_artifact(int sock, const struct mode *m) { artifact(sock, m->text, m->data); }

static void act_final(int sock, const struct mode *m) { post(sock, FRAME_FINAL, m->text); }

static void act_nothing(int sock, const struct mode *m)
{
    (void)sock;
    (void)m;
}

static void act_twice(int sock, const struct mode *m)
{
    post(sock, FRAME_ARTIFACT, m->text);
    post(sock, FRAME_ARTIFACT_DATA, "once");
    artifact(sock, m->text, m->data);
}

static void act_data_only(int sock, const struct mode *m)
{
    post(sock, FRAME_ARTIFACT_DATA, m->text);
    post(sock, FRAME_FINAL, OK_RESULT);
}

static void act_magic(int sock, const struct mode *m)
{
    (void)m;
    post_raw(sock, 0xdeadbeef, FRAME_FINAL, 1, 0);
}

static void act_sequence(int sock, const struct mode *m)
{
    (void)m;
    post_raw(sock, FRAME_MAGIC, FRAME_STDOUT, 7, 0);
}

static void act_direction(int sock, const struct mode *m)
{
    (void)m;
    post_raw(sock, FRAME_MAGIC, FRAME_JOB, 1, 0);
}

static void act_unknown(int sock, const struct mode *m)
{
    (void)m;
    post_raw(sock, FRAME_MAGIC, 999, 1, 0);
}

static void act_length(int sock, const struct mode *m)
{
    (void)m;
    post_raw(sock, FRAME_MAGIC, FRAME_FINAL, 1, 0xfffffff0);
}

static void act_flood(int sock, const struct mode *m)
{
    static char block[60000];
    memset(block, 'x', sizeof block - 1);
    for (int i = 0; i < 1000; i++) {
        post(sock, FRAME_STDOUT, block);
    }
    act_final(sock, m);
}

static void act_descriptors(int sock, const struct mode *m)
{
    int fds[MSG_MAX_FDS];
    for (int i = 0; i < MSG_MAX_FDS; i++) {
        fds[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
    }
    for (int round = 0; round < 100; round++) {
        AUTO_BUF struct buf b = BUF_INIT(1024);
        if (frame_encode(&b, FRAME_TO_FRONT, FRAME_STDOUT, 1, ++sent, "d", 1) ||
            msg_send(sock, b.data, b.len, fds, MSG_MAX_FDS, 0)) {
            return;
        }
    }
    act_final(sock, m);
}

// The front has asked for "output/asked".
static const struct mode modes[] = {
    {"honest", act_artifact, "{\"name\":\"output/asked\",\"size\":4}", "data"},
    {"artifact-up", act_artifact, "{\"name\":\"../escape\",\"size\":4}", "data"},
    {"artifact-middle", act_artifact, "{\"name\":\"output/../../escape\",\"size\":4}", "data"},
    {"artifact-absolute", act_artifact, "{\"name\":\"/var/tmp/isle-escape\",\"size\":4}", "data"},
    {"artifact-unasked", act_artifact, "{\"name\":\"output/other\",\"size\":4}", "data"},
    {"artifact-empty", act_artifact, "{\"name\":\"\",\"size\":4}", "data"},
    {"artifact-dot", act_artifact, "{\"name\":\".\",\"size\":4}", "data"},
    {"artifact-nul", act_artifact, "{\"name\":\"output/x\\u0000/asked\",\"size\":4}", "data"},
    {"artifact-longer", act_artifact, "{\"name\":\"output/asked\",\"size\":2}", "data"},
    {"artifact-shorter", act_artifact, "{\"name\":\"output/asked\",\"size\":9}", "data"},
    {"artifact-endless", act_artifact, "{\"name\":\"output/asked\",\"size\":9223372036854775807}",
     "data"},
    {"artifact-negative", act_artifact, "{\"name\":\"output/asked\",\"size\":-1}", "data"},
    {"artifact-number", act_artifact, "{\"name\":5,\"size\":4}", "data"},
    {"artifact-broken", act_artifact, "{\"name\":", "data"},
    {"artifact-mode", act_artifact, "{\"name\":\"output/asked\",\"size\":4,\"mode\":2559}", "data"},
    {"artifact-twice", act_twice, "{\"name\":\"output/asked\",\"size\":4}", "data"},
    {"data-only", act_data_only, "data", NULL},
    {"final-broken", act_final, "{\"reason\":", NULL},
    {"final-number", act_final, "5", NULL},
    {"final-reason", act_final, "{\"reason\":\"splendid\"}", NULL},
    {"final-codes", act_final, "{\"reason\":\"error\",\"exit_code\":99999999999,\"signal\":-5}",
     NULL},
    {"final-controls", act_final,
     "{\"reason\":\"internal\",\"error\":\"\\u001b]0;owned\\u0007\\n\\u009b31m\"}", NULL},
    {"nothing", act_nothing, NULL, NULL},
    {"magic", act_magic, NULL, NULL},
    {"sequence", act_sequence, NULL, NULL},
    {"direction", act_direction, NULL, NULL},
    {"unknown-type", act_unknown, NULL, NULL},
    {"length", act_length, NULL, NULL},
    {"flood", act_flood, OK_RESULT, NULL},
    {"descriptors", act_descriptors, OK_RESULT, NULL},
};

// The whole of the front's words, up to its JOB frame: enough to find the mode.
static int read_job(int sock, char *text, size_t size)
{
    size_t n = 0;
    while (n < size - 1) {
        ssize_t got = recv(sock, text + n, size - 1 - n, 0);
        if (got <= 0) {
            return -1;
        }
        n += (size_t)got;
        for (size_t i = 0; i < n; i++) { // headers are binary
            text[i] = text[i] ? text[i] : ' ';
        }
        text[n] = '\0';
        if (strstr(text, "\"command\"")) {
            return 0;
        }
    }
    return -1;
}

static int service(int argc, char **argv)
{
    static char text[65536];
    struct seat seat;
    struct start_error error;
    if (start_inner(argc, argv, &seat, &error) || read_job(seat.front, text, sizeof text)) {
        return 1;
    }
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        char word[64];
        snprintf(word, sizeof word, "\"%s\"", modes[i].name);
        if (strstr(text, word)) {
            modes[i].act(seat.front, &modes[i]);
            break;
        }
    }
    shutdown(seat.front, SHUT_WR);
    start_seat_done(&seat);
    return 0;
}

int main(int argc, char **argv)
{
    if (start_is_inner(argc, argv)) {
        return service(argc, argv);
    }
    struct places places;
    int found = places_find(&places);
    return cli_main(argc, argv, &(struct cli_places){places.libexec, places.guest, found == 0});
}
