// talk.h: between isled's front and its service, over the socket of start/start.h: a head, for some
// words a payload. The front believes nothing but the number of a note.
#ifndef ISLE_APP_TALK_H
#define ISLE_APP_TALK_H

#include <stdint.h>

enum talk_order {   // front -> service
    TALK_DRAIN = 1, // take nothing new, end when nothing runs any more
    TALK_STOP,      // end now
    TALK_RELOAD,    // payload: struct talk_reload; its descriptors come with it
};
enum talk_note { // service -> front
    TALK_LISTENS = 1,
    TALK_READY,
    TALK_NOT_READY,
    TALK_RELOADED,
    TALK_LOG_TEXT, // the format that the settings ask for now
    TALK_LOG_JSON,
};
struct talk_head {
    uint32_t what, length; // of the payload, at most TALK_MAX_BYTES; 0 in notes
};
enum { TALK_MAX_BYTES = 64, TALK_MAX_FDS = 2 };
struct talk_reload {
    uint32_t file, audit;             // 1: the settings' file, opened anew; the audit log, likewise
    uint32_t file_error, audit_error; // errno, where it could not be opened; else 0
};

#define TALK_SERVE "serve" // word of the service

#endif
