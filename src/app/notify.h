// notify.h: sd_notify(3), to whoever started us and wants to hear (NOTIFY_SOCKET).
#ifndef ISLE_APP_NOTIFY_H
#define ISLE_APP_NOTIFY_H

// "READY=1", "STOPPING=1", ...; lines. Nothing happens where nobody listens.
void notify(const char *state);
// RELOADING=1 with the time that systemd.service(5) wants beside it.
void notify_reloading(void);

#endif
