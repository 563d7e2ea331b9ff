#include "io/node_identity.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "foundation/assert.h"
#include "foundation/bytes.h"
#include "foundation/crc32c.h"
#include "io/io_directory.h"
#include "io/io_errno.h"

enum {
    AT_CHECKSUM = 4,
    AT_CHECKED = 8,
    AT_CLUSTER = 40,
    AT_NODE = 88,
    AT_FORMATTED = 136,
    PATH_SIZE = 1024
};

void node_identity_encode(const struct node_identity *identity, uint8_t bytes[NODE_IDENTITY_SIZE])
{
    memset(bytes, 0, NODE_IDENTITY_SIZE);
    memcpy(bytes, "HRNI", 4);
    bytes_put_u16(bytes + 8, NODE_IDENTITY_VERSION);
    bytes_put_u32(bytes + 12, identity->shards_count);
    bytes_put_u64(bytes + 16, identity->layout);
    bytes_put_u64(bytes + 24, identity->node_incarnation);
    bytes_put_u64(bytes + 32, identity->boot_counter);
    memcpy(bytes + AT_CLUSTER, identity->cluster_id, ENGINE_ID_SIZE);
    memcpy(bytes + AT_NODE, identity->node_id, ENGINE_ID_SIZE);
    bytes_put_u32(bytes + AT_FORMATTED, identity->formatted);
    bytes_put_u32(bytes + AT_CHECKSUM, crc32c(bytes + AT_CHECKED, NODE_IDENTITY_SIZE - AT_CHECKED));
}

enum status node_identity_decode(const uint8_t bytes[NODE_IDENTITY_SIZE],
                                 struct node_identity *identity)
{
    if (memcmp(bytes, "HRNI", 4) != 0) return STATUS_IDENTITY_DAMAGED;
    if (bytes_get_u32(bytes + AT_CHECKSUM)
        != crc32c(bytes + AT_CHECKED, NODE_IDENTITY_SIZE - AT_CHECKED)) {
        return STATUS_IDENTITY_DAMAGED;
    }
    if (bytes_get_u16(bytes + 8) > NODE_IDENTITY_VERSION) return STATUS_IDENTITY_NEWER;
    if (bytes_get_u16(bytes + 8) != NODE_IDENTITY_VERSION) return STATUS_IDENTITY_DAMAGED;
    *identity = (struct node_identity){
        .shards_count = bytes_get_u32(bytes + 12),
        .layout = bytes_get_u64(bytes + 16),
        .node_incarnation = bytes_get_u64(bytes + 24),
        .boot_counter = bytes_get_u64(bytes + 32),
        .formatted = bytes_get_u32(bytes + AT_FORMATTED),
    };
    memcpy(identity->cluster_id, bytes + AT_CLUSTER, ENGINE_ID_SIZE);
    memcpy(identity->node_id, bytes + AT_NODE, ENGINE_ID_SIZE);
    /* The ids are compared and shown as text, the count sizes what is opened. */
    int ended =
        identity->cluster_id[ENGINE_ID_SIZE - 1] == 0 && identity->node_id[ENGINE_ID_SIZE - 1] == 0;
    if (!ended || identity->shards_count == 0 || identity->shards_count > ENGINE_SHARDS_MAX)
        return STATUS_IDENTITY_DAMAGED;
    return STATUS_OK;
}

static enum status lock_take(const char *directory, int *lock_fd, char *detail, size_t detail_size)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/node.lock", directory);
    snprintf(detail, detail_size, "%s", path);
    *lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    if (*lock_fd < 0) return status_of_errno(errno);
    if (flock(*lock_fd, LOCK_EX | LOCK_NB) == 0) return STATUS_OK;
    enum status status = errno == EWOULDBLOCK ? STATUS_DIRECTORY_LOCKED : status_of_errno(errno);
    close(*lock_fd);
    *lock_fd = -1;
    return status;
}

static enum status identity_write(const char *directory, const struct node_identity *identity)
{
    char path[PATH_SIZE];
    char path_new[PATH_SIZE];
    snprintf(path, sizeof path, "%s/node.identity", directory);
    snprintf(path_new, sizeof path_new, "%s/node.identity.new", directory);
    uint8_t bytes[NODE_IDENTITY_SIZE];
    node_identity_encode(identity, bytes);
    int fd = open(path_new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    if (fd < 0) return status_of_errno(errno);
    errno = ENOSPC; /* the only reason for a short write */
    int whole = write(fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes && fsync(fd) == 0;
    enum status status = whole ? STATUS_OK : status_of_errno(errno);
    close(fd);
    if (status == STATUS_OK && rename(path_new, path) != 0) status = status_of_errno(errno);
    return status == STATUS_OK ? io_directory_sync(AT_FDCWD, directory) : status;
}

static enum status identity_read(int fd, struct node_identity *identity)
{
    uint8_t bytes[NODE_IDENTITY_SIZE];
    ssize_t count = read(fd, bytes, sizeof bytes);
    if (count != (ssize_t)sizeof bytes) return STATUS_IDENTITY_DAMAGED;
    return node_identity_decode(bytes, identity);
}

static enum status identity_compare(const struct engine_config *config,
                                    const struct node_identity *identity, char *detail,
                                    size_t detail_size)
{
    if (memcmp(config->cluster_id, identity->cluster_id, ENGINE_ID_SIZE) != 0) {
        snprintf(detail, detail_size, "%.47s", identity->cluster_id);
        return STATUS_IDENTITY_OTHER_CLUSTER;
    }
    if (memcmp(config->node_id, identity->node_id, ENGINE_ID_SIZE) != 0) {
        snprintf(detail, detail_size, "%.47s", identity->node_id);
        return STATUS_IDENTITY_OTHER_NODE;
    }
    if (config->shards_count != identity->shards_count) {
        snprintf(detail, detail_size, "laid out for %u shards, configured for %u",
                 identity->shards_count, (unsigned)config->shards_count);
        return STATUS_IDENTITY_SHARDS;
    }
    return STATUS_OK;
}

/* Whether a layout lies in a directory without an identity: it was lost, and what is there is not
 * ours to format. */
static enum status identity_absent(const char *directory)
{
    DIR *folder = opendir(directory);
    if (folder == NULL) return status_of_errno(errno);
    enum status status = STATUS_OK;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (strncmp(entry->d_name, "layout-", 7) == 0) status = STATUS_IDENTITY_MISSING;
    }
    closedir(folder);
    return status;
}

enum status node_identity_open(const struct engine_config *config, uint64_t incarnation,
                               struct node_identity *identity, int *lock_fd, char *detail,
                               size_t detail_size)
{
    snprintf(detail, detail_size, "%s", config->data_path);
    if (strlen(config->data_path) > PATH_SIZE - 32) return STATUS_CONFIG_INVALID;
    enum status status = io_directory_make(AT_FDCWD, config->data_path);
    if (status != STATUS_OK) return status;
    status = lock_take(config->data_path, lock_fd, detail, detail_size);
    if (status != STATUS_OK) return status;
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/node.identity", config->data_path);
    snprintf(detail, detail_size, "%s", path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        status = identity_read(fd, identity);
        close(fd);
        return status != STATUS_OK ? status
                                   : identity_compare(config, identity, detail, detail_size);
    }
    if (errno != ENOENT) return status_of_errno(errno);
    status = identity_absent(config->data_path);
    if (status != STATUS_OK) return status;
    *identity = (struct node_identity){
        .shards_count = config->shards_count,
        .layout = 1,
        .node_incarnation = incarnation,
    };
    memcpy(identity->cluster_id, config->cluster_id, ENGINE_ID_SIZE);
    memcpy(identity->node_id, config->node_id, ENGINE_ID_SIZE);
    return identity_write(config->data_path, identity);
}

enum status node_identity_formatted(const struct engine_config *config,
                                    struct node_identity *identity)
{
    assert(identity->formatted == 0);
    identity->formatted = 1;
    return identity_write(config->data_path, identity);
}
