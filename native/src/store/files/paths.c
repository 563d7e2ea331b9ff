#include "store/files/paths.h"

#include <stdio.h>
#include <string.h>

#include "foundation/assert.h"
#include "store/replica.h"

void path_of_replica(const struct replica *replica, char path[IO_PATH_SIZE])
{
    int size =
        snprintf(path, IO_PATH_SIZE, PATHS_TOPICS "/%016llx-%llu-%u-%u",
                 (unsigned long long)replica->topic, (unsigned long long)replica->created_revision,
                 replica->partition, vsr_tenure(&replica->vsr));
    assert(size > 0 && size < IO_PATH_SIZE);
}

void path_of_segment(const struct replica *replica, uint64_t segment, char path[IO_PATH_SIZE])
{
    char name[SEGMENT_NAME_SIZE];
    path_of_replica(replica, path);
    segment_name(segment, name);
    size_t at = strlen(path);
    int size = snprintf(path + at, IO_PATH_SIZE - at, "/%s", name);
    assert(size > 0 && (size_t)size < IO_PATH_SIZE - at);
}
