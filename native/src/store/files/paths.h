/* store/files/paths.h: where a replica's files lie below the shard's folder. */
#ifndef STORE_FILES_PATHS_H
#define STORE_FILES_PATHS_H

#include <stdint.h>

#include "io/io.h"

struct replica;

#define PATHS_TOPICS "topics"

void path_of_replica(const struct replica *replica, char path[IO_PATH_SIZE]);
void path_of_segment(const struct replica *replica, uint64_t segment, char path[IO_PATH_SIZE]);

#endif
