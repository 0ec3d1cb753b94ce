// error.h: which errors are not the fault of what was tried.
#ifndef ISLE_BASE_ERROR_H
#define ISLE_BASE_ERROR_H

#include <errno.h>
#include <stdbool.h>

// Is this -errno the want of memory, descriptors or processes? There will be some again when others
// have ended.
static inline bool error_is_shortage(int error)
{
    return error == -ENOMEM || error == -EMFILE || error == -ENFILE || error == -EAGAIN;
}

#endif
