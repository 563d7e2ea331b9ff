/* io/io_directory.h: what io/io.h asks of folders: names, renames, removals, and the syncs that
 * make them last. */
#ifndef IO_IO_DIRECTORY_H
#define IO_IO_DIRECTORY_H

#include "foundation/status.h"
#include "io/io.h"

/* IO_RENAME, IO_UNLINK, IO_MKDIR, IO_SYNC_DIR, IO_LIST, relative to an open folder. */
enum status io_directory_execute(int root_fd, struct io_request *request);
/* With parents; present is success. */
enum status io_directory_make(int root_fd, const char *path);
enum status io_directory_sync(int root_fd, const char *path);

#endif
