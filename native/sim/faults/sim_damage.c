/* faults/sim_damage.c: damage to bytes and files that were durable, one at a time, and what may
 * come of it.
 *
 * What the damage may concern is worked out from the disk before it is done: the replicas of the
 * damaged round, the partition of the damaged segment. Those may stop with a named error, for good;
 * all others must go on, and no replica may lose a record in silence. Where nothing can be known
 * the start may be refused: then the damage is undone and everything must be there.
 *
 * Rot of a sector's stamp in the last round is left out: a stamp that looks older is what a torn
 * write leaves, and with one member no other copy could tell (J2). */
#include "faults/sim_faults.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "batch/batch.h"
#include "cluster/sim_cluster.h"
#include "foundation/assert.h"
#include "foundation/bytes.h"
#include "journal/journal.h"
#include "segment/segment.h"

enum {
    SIM_FOOTER_MAGIC = 0x46535248, /* "HRSF" */
    SIM_STAMP_AT = 504,            /* in its sector */
    SIM_SECTOR = 512,
    SIM_DAMAGES_COUNT = 10,
    SIM_TOPIC_FIRST = 16,
};

static uint32_t sim_mask(const struct sim_node *node)
{
    uint32_t mask = 0;
    for (uint32_t index = 0; index < node->clients->partitions_count; index++) {
        if (node->clients->partitions[index].may_stop) mask |= 1u << index;
    }
    return mask;
}

static void sim_may_stop(struct sim_node *node, uint32_t partitions, int metadata)
{
    for (uint32_t index = 0; index < node->clients->partitions_count; index++) {
        if (partitions >> index & 1) node->clients->partitions[index].may_stop = 1;
    }
    if (metadata) node->host.may_stop = 1;
}

void sim_may_stop_all(struct sim_node *node)
{
    sim_may_stop(node, UINT32_MAX, 1);
}

static int sim_path_partition(const struct sim_node *node, const char *path, uint32_t *partition)
{
    unsigned long long topic;
    unsigned long long revision;
    unsigned index;
    if (sscanf(path, "topics/%llx-%llu-%u-", &topic, &revision, &index) != 3) return 0;
    for (*partition = 0; *partition < node->clients->partitions_count; (*partition)++) {
        const struct engine_partition_id *id = &node->clients->partitions[*partition].id;
        if (id->topic == topic && id->created_revision == revision && id->partition == index)
            return 1;
    }
    return 0;
}

void sim_may_stop_path(struct sim_node *node, const char *path)
{
    uint32_t partition;
    if (sim_path_partition(node, path, &partition))
        sim_may_stop(node, 1u << partition, 0);
    else
        sim_may_stop_all(node);
}

static void sim_damage_note(struct sim_node *node, enum sim_fault kind, const char *format, ...)
    SIM_FORMAT(3, 4);

static void sim_damage_note(struct sim_node *node, enum sim_fault kind, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(node->damage.text, sizeof node->damage.text, format, arguments);
    va_end(arguments);
    node->damage.done = 1;
    node->storage.faults[kind]++;
    sim_trace(node, "damage", "%s: %s", sim_fault_name(kind), node->damage.text);
}

/* ---- the journal ---- */

static uint32_t sim_item_partition(const struct sim_node *node,
                                   const struct journal_directory_item *item)
{
    for (uint32_t index = 0; index < node->clients->partitions_count; index++) {
        const struct engine_partition_id *id = &node->clients->partitions[index].id;
        if (id->topic == item->topic && id->partition == item->partition) return 1u << index;
    }
    return 0;
}

/* The round that begins at block `at` of the image, all of its blocks valid. The image is
 * spent. */
static int sim_round_read(struct sim_node *node, uint64_t at, uint64_t blocks_left,
                          struct sim_round *round)
{
    uint8_t *block = node->image + at * JOURNAL_BLOCK_BYTES;
    uint64_t place = at * JOURNAL_BLOCK_BYTES;
    struct journal_block first;
    uint64_t id = bytes_get_u64(block + 8);
    if (!journal_block_get(block, id, place, &first) || first.kind != JOURNAL_BLOCK_ROUND) return 0;
    if (first.number != 0 || first.blocks_count > blocks_left) return 0;
    uint64_t size = 0;
    for (uint32_t number = 0; number < first.blocks_count; number++) {
        uint8_t *each = block + (size_t)number * JOURNAL_BLOCK_BYTES;
        struct journal_block fields;
        uint64_t each_place = place + (uint64_t)number * JOURNAL_BLOCK_BYTES;
        if (!journal_block_get(each, id, each_place, &fields) || fields.lsn != first.lsn) return 0;
        if (fields.extent_cycle != first.extent_cycle || fields.number != number) return 0;
    }
    for (uint32_t number = 0; number < first.blocks_count; number++) {
        uint8_t *each = block + (size_t)number * JOURNAL_BLOCK_BYTES;
        uint32_t payload = journal_block_payload_bytes(each);
        journal_block_restore(each);
        memmove(block + size, each + JOURNAL_BLOCK_HEADER_BYTES, payload);
        size += payload;
    }
    struct journal_round head;
    if (!journal_round_get(block, size, &head)) return 0;
    *round = (struct sim_round){.lsn = head.lsn,
                                .extent_cycle = first.extent_cycle,
                                .extent_cycle_oldest = head.extent_cycle_oldest,
                                .blocks_count = first.blocks_count};
    for (uint32_t index = 0; index < head.own_count; index++) {
        struct journal_directory_item item;
        journal_directory_get(block + JOURNAL_ROUND_HEADER_BYTES
                                  + (size_t)index * JOURNAL_DIRECTORY_ITEM_BYTES,
                              &item);
        if (item.topic == 0) round->metadata = 1;
        if (item.topic == UINT64_MAX) round->everybody = 1;
        round->partitions |= sim_item_partition(node, &item);
    }
    return 1;
}

/* Live rounds by place. The last is the one with the highest lsn; NULL = none. */
static struct sim_round *sim_rounds(struct sim_node *node, uint32_t *count)
{
    long size = sim_storage_read(&node->storage, "journal", 0, node->image, SIM_JOURNAL_BYTES_MAX);
    uint64_t extent_blocks = node->config.extent_bytes / JOURNAL_BLOCK_BYTES;
    struct sim_round *last = NULL;
    *count = 0;
    uint64_t blocks = size < 0 ? 0 : (uint64_t)size / JOURNAL_BLOCK_BYTES;
    for (uint64_t at = 2; at < blocks;) {
        struct sim_round *round = &node->rounds[*count];
        uint64_t left = extent_blocks - (at - 2) % extent_blocks;
        if (!sim_round_read(node, at, left, round)) {
            at++;
            continue;
        }
        round->offset = at * JOURNAL_BLOCK_BYTES;
        at += round->blocks_count;
        assert(*count + 1 < SIM_ROUNDS_MAX);
        (*count)++;
        if (!last || round->lsn > last->lsn) last = round;
    }
    return last;
}

/* Change some bytes of [offset, offset + room). */
static void sim_rot(struct sim_node *node, const char *path, uint64_t offset, uint64_t room,
                    int spare_stamps)
{
    uint8_t bytes[64];
    uint64_t size =
        random_between(&node->cluster->random, 1, room < sizeof bytes ? room : sizeof bytes);
    uint64_t at = offset + random_below(&node->cluster->random, room - size + 1);
    long known = sim_storage_read(&node->storage, path, at, bytes, size);
    assert(known >= 0 && (uint64_t)known >= at + size);
    uint32_t changed = 0;
    for (uint64_t index = 0; index < size; index++) {
        if (spare_stamps && (at + index) % SIM_SECTOR >= SIM_STAMP_AT) continue;
        bytes[index] ^= (uint8_t)random_between(&node->cluster->random, 1, 255);
        changed++;
    }
    maybe(changed == 0);
    sim_storage_poke(&node->storage, path, at, bytes, size);
}

/* 1 = the round after it is whole and durable: its directory names what this one held. */
static int sim_round_is_named(struct sim_node *node, const struct sim_round *round, uint32_t count)
{
    for (uint32_t index = 0; index < count; index++) {
        const struct sim_round *next = &node->rounds[index];
        if (next->lsn == round->lsn + 1)
            return sim_storage_durable(&node->storage, "journal", next->offset,
                                       (uint64_t)next->blocks_count * JOURNAL_BLOCK_BYTES);
    }
    return 0;
}

static void sim_rot_round(struct sim_node *node, int want_last)
{
    uint32_t count;
    const struct sim_round *last = sim_rounds(node, &count);
    if (!last) return;
    const struct sim_round *round = last;
    for (uint32_t tries = 0; !want_last && tries < 20; tries++) {
        round = &node->rounds[random_below(&node->cluster->random, count)];
        if (round != last && round->extent_cycle >= last->extent_cycle_oldest) break;
    }
    if (!want_last && (round == last || round->extent_cycle < last->extent_cycle_oldest)) return;
    node->damage.may_crowd = 1;
    /* The entry that names a snapshot goes with its round, the file before it has gone. */
    node->damage.may_refuse |= round->metadata || want_last;
    if (round->everybody || !sim_round_is_named(node, round, count))
        sim_may_stop_all(node);
    else
        sim_may_stop(node, round->partitions, round->metadata);
    sim_damage_note(node, want_last ? SIM_ROT_LAST : SIM_ROT_WITNESSED, "round %llu at %llu",
                    (unsigned long long)round->lsn, (unsigned long long)round->offset);
    uint64_t block = random_below(&node->cluster->random, round->blocks_count);
    sim_rot(node, "journal", round->offset + block * JOURNAL_BLOCK_BYTES, JOURNAL_BLOCK_BYTES,
            want_last);
}

static void sim_rot_extent_header(struct sim_node *node)
{
    uint64_t extents = (node->config.journal_bytes - 8192) / node->config.extent_bytes;
    uint64_t extent = random_below(&node->cluster->random, extents);
    /* With a round that strayed earlier there may be two extents of one cycle. */
    node->damage.may_refuse = node->storage.faults[SIM_MISDIRECTED_WRITE] > 0;
    node->damage.may_crowd = 1;
    sim_damage_note(node, SIM_ROT_EXTENT_HEADER, "extent %llu", (unsigned long long)extent);
    sim_rot(node, "journal", 8192 + extent * node->config.extent_bytes, JOURNAL_BLOCK_BYTES, 0);
}

static void sim_rot_file_header(struct sim_node *node)
{
    int both = random_chance(&node->cluster->random, 1, 2);
    node->damage.may_refuse = (uint8_t)both;
    sim_damage_note(node, SIM_ROT_FILE_HEADER, both ? "both" : "one");
    uint64_t which = random_below(&node->cluster->random, 2);
    sim_rot(node, "journal", which * JOURNAL_BLOCK_BYTES, JOURNAL_BLOCK_BYTES, 0);
    if (both) sim_rot(node, "journal", (1 - which) * JOURNAL_BLOCK_BYTES, JOURNAL_BLOCK_BYTES, 0);
}

/* ---- files ---- */

/* Some file whose path begins so, and its size. */
static const char *sim_pick_file(struct sim_node *node, const char *prefix, uint64_t *size)
{
    const char *found = NULL;
    uint32_t seen = 0;
    for (uint32_t index = 0;; index++) {
        const char *path = sim_storage_name(&node->storage, index);
        if (!path) break;
        if (strncmp(path, prefix, strlen(prefix)) != 0) continue;
        if (path[0] == 't' && strchr(path + strlen("topics/"), '/') == NULL)
            continue; /* a folder */
        if (random_below(&node->cluster->random, ++seen) == 0) found = path;
    }
    if (!found) return NULL;
    long known = sim_storage_read(&node->storage, found, 0, NULL, 0);
    assert(known >= 0);
    *size = (uint64_t)known;
    return found;
}

static int sim_has_footer(struct sim_node *node, const char *path, uint64_t size)
{
    uint8_t magic[4];
    if (size < SEGMENT_FOOTER_BYTES) return 0;
    (void)sim_storage_read(&node->storage, path, size - SEGMENT_FOOTER_BYTES, magic, 4);
    return bytes_get_u32(magic) == SIM_FOOTER_MAGIC;
}

static void sim_rot_segment(struct sim_node *node)
{
    uint64_t size;
    const char *path = sim_pick_file(node, "topics/", &size);
    if (!path || size == 0) return;
    int footer = sim_has_footer(node, path, size);
    int in_footer = footer && random_chance(&node->cluster->random, 1, 2);
    uint64_t data = footer ? size - SEGMENT_FOOTER_BYTES : size;
    sim_may_stop_path(node, path);
    sim_damage_note(node, in_footer ? SIM_ROT_FOOTER : SIM_ROT_SEGMENT, "%s", path);
    sim_rot(node, path, in_footer ? data : 0, in_footer ? SEGMENT_FOOTER_BYTES : data, 0);
}

/* A checkpoint file's name does not identify its replica: one replica stops, or two whose state is
 * the same to the byte, and if it is the metadata's the start is refused. */
static void sim_checkpoint_concerns(struct sim_node *node)
{
    sim_may_stop(node, UINT32_MAX, 0);
    node->damage.stops_max = 2;
    node->damage.may_refuse = 1;
}

static void sim_rot_checkpoint(struct sim_node *node)
{
    uint64_t size;
    const char *path = sim_pick_file(node, "checkpoints/", &size);
    if (!path || size == 0) return;
    sim_checkpoint_concerns(node);
    sim_damage_note(node, SIM_ROT_CHECKPOINT, "%s", path);
    sim_rot(node, path, 0, size, 0);
}

static const char *sim_pick_any(struct sim_node *node, uint64_t *size)
{
    static const char *const prefixes[] = {"topics/", "topics/", "checkpoints/", "journal"};
    const char *path = sim_pick_file(node, prefixes[random_below(&node->cluster->random, 4)], size);
    if (!path) return NULL;
    if (path[0] == 't')
        sim_may_stop_path(node, path);
    else if (path[0] == 'c')
        sim_checkpoint_concerns(node);
    else
        node->damage.may_refuse = 1;
    return path;
}

static void sim_file_goes(struct sim_node *node)
{
    uint64_t size;
    const char *path = sim_pick_any(node, &size);
    if (!path) return;
    sim_damage_note(node, SIM_FILE_MISSING, "%s", path);
    sim_storage_remove(&node->storage, path);
}

static void sim_file_shrinks(struct sim_node *node)
{
    uint64_t size;
    const char *path = sim_pick_any(node, &size);
    if (!path || size == 0) return;
    uint64_t kept = random_below(&node->cluster->random, size);
    sim_damage_note(node, SIM_FILE_TRUNCATED, "%s: %llu of %llu bytes", path,
                    (unsigned long long)kept, (unsigned long long)size);
    sim_storage_cut(&node->storage, path, kept);
}

static void sim_files_swap(struct sim_node *node)
{
    uint64_t size;
    const char *path = sim_pick_file(node, "topics/", &size);
    const char *other = sim_pick_file(node, "topics/", &size);
    if (!path || path == other) return;
    sim_may_stop_path(node, path);
    sim_may_stop_path(node, other);
    sim_damage_note(node, SIM_FILE_RENAMED, "%.100s and %.100s", path, other);
    sim_storage_swap(&node->storage, path, other);
}

void sim_damage(struct sim_node *node)
{
    struct sim_damage *damage = &node->damage;
    uint8_t refuses = damage->may_refuse & 2;
    *damage = (struct sim_damage){.stops_max = UINT32_MAX,
                                  .may_refuse = refuses,
                                  .partitions = sim_mask(node),
                                  .metadata = node->host.may_stop};
    if (!(node->cluster->swarm & SIM_SWARM_DAMAGE) || !node->config.formatted) return;
    if (!random_chance(&node->cluster->random, 1, 3)) return;
    sim_storage_copy(&node->backup, &node->storage);
    switch (random_below(&node->cluster->random, SIM_DAMAGES_COUNT)) {
    case 0:
    case 1: sim_rot_round(node, 0); break;
    case 2: sim_rot_round(node, 1); break;
    case 3: sim_rot_extent_header(node); break;
    case 4: sim_rot_file_header(node); break;
    case 5: sim_rot_segment(node); break;
    case 6: sim_rot_checkpoint(node); break;
    case 7: sim_file_goes(node); break;
    case 8: sim_file_shrinks(node); break;
    default: sim_files_swap(node); break;
    }
    damage->may_refuse |= refuses;
}

int sim_damage_undo(struct sim_node *node, enum status status)
{
    struct sim_damage *damage = &node->damage;
    int crowded = status == STATUS_NO_MEMORY && damage->may_crowd;
    int fits = status == STATUS_JOURNAL_DAMAGED || status == STATUS_JOURNAL_MISSING
               || status == STATUS_CHECKPOINT_DAMAGED;
    int refused = (damage->may_refuse & 1) && fits;
    if (!damage->done || !(refused || crowded)) return 0;
    if (status == STATUS_JOURNAL_MISSING
        && sim_storage_read(&node->storage, "journal", 0, NULL, 0) >= 0)
        sim_fail(node, "a journal was made in the place of one that is missing");
    sim_trace(node, "damage", "refused with %s, put back", status_name(status));
    uint64_t faults[SIM_FAULTS_COUNT];
    memcpy(faults, node->storage.faults, sizeof faults);
    sim_storage_copy(&node->storage, &node->backup);
    memcpy(node->storage.faults, faults, sizeof faults);
    for (uint32_t index = 0; index < node->clients->partitions_count; index++)
        node->clients->partitions[index].may_stop = damage->partitions >> index & 1;
    node->host.may_stop = damage->metadata;
    node->cluster->result->refused++;
    *damage = (struct sim_damage){.stops_max = UINT32_MAX, .may_refuse = damage->may_refuse & 2};
    return 1;
}

int sim_stopped(struct sim_node *node, uint32_t partition, enum status status)
{
    struct sim_partition *own = &node->clients->partitions[partition];
    if (status != STATUS_DAMAGED && status != STATUS_CORRUPT) return 0;
    if (!own->may_stop) {
        sim_fail(node, "partition %u: %s, and nothing was done to it", partition,
                 status_name(status));
        return 1;
    }
    if (!own->stopped) {
        own->stopped = 1;
        node->cluster->result->stopped++;
        sim_trace(node, "damage", "partition %u stopped: %s", partition, status_name(status));
    }
    return 1;
}

/* Every stopped replica reports it, and reports it again after every restart (J4). */
void sim_damage_judge(struct sim_node *node)
{
    uint32_t fresh = 0;
    for (uint32_t index = 0; index < node->clients->partitions_count; index++) {
        struct sim_partition *partition = &node->clients->partitions[index];
        if (partition->deleted) continue;
        struct engine_partition_state state;
        enum status status = store_describe(node->store, &partition->id, &state);
        if (status != STATUS_OK && status != STATUS_REBUILDING) {
            sim_fail(node, "partition %u: describe says %s", index, status_name(status));
        }
        int was = partition->stopped;
        struct store_fetch fetch;
        store_fetch(node->store, &partition->id, 0, 1000, 0, 0, &fetch);
        if (state.state == 3) (void)sim_stopped(node, index, fetch.status);
        if (fetch.status == STATUS_DAMAGED)
            partition->damaged = 1;
        else if (partition->damaged)
            sim_fail(node, "partition %u was damaged, and this start forgot it", index);
        if (partition->stopped && !was) fresh++;
    }
    if (fresh > node->damage.stops_max)
        sim_fail(node, "%u partitions stopped, the damage concerned at most %u", fresh,
                 node->damage.stops_max);
}
