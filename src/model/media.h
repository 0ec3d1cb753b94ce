// media.h: the media type of a file, by its name alone: from a short list, whatever is in it.
#ifndef ISLE_MODEL_MEDIA_H
#define ISLE_MODEL_MEDIA_H

// "text/csv"; "application/octet-stream" for what the list does not know. Static text.
const char *media_type(const char *name);
// The type to send it with: what a browser would run (HTML, SVG, XML, scripts) is sent as bytes.
const char *media_type_inert(const char *name);

#endif
