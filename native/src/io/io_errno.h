/* io/io_errno.h: what the system's error numbers mean here. The one place that knows: a disk
 * that is full, one that is read-only, one that fails and a limit that is too low want different
 * hands. */
#ifndef IO_IO_ERRNO_H
#define IO_IO_ERRNO_H

#include "foundation/status.h"

enum status status_of_errno(int error);

#endif
