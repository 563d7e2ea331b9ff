/* clients/sim_trims.c: policies, purges and holds, and what must hold of them: a log never
 * begins earlier than it did, nothing that is known to be held goes, every trim's event comes
 * until it is acknowledged, always the same, and the events tell the whole way of the log's
 * beginning. */
#include "clients/sim_clients.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/sim_cluster.h"

/* How the partition stands. 0 = it does not say, or was stopped. */
int sim_trims_look(struct sim_node *node, uint32_t index, struct engine_partition_state *state)
{
    struct sim_partition *partition = &node->clients->partitions[index];
    enum status status = store_describe(node->store, &partition->id, state);
    if (status != STATUS_OK || state->state == 3) return 0;
    if (state->log_start < partition->log_start)
        sim_fail(node, "partition %u begins at %llu, it did at %llu", index,
                 (unsigned long long)state->log_start, (unsigned long long)partition->log_start);
    if (state->log_start > state->log_end)
        sim_fail(node, "partition %u begins behind its end", index);
    if (partition->held && (!state->held || state->log_start > partition->held_from))
        sim_fail(node, "partition %u is held from %llu, and begins at %llu", index,
                 (unsigned long long)partition->held_from, (unsigned long long)state->log_start);
    partition->log_start = state->log_start;
    return 1;
}

static void trims_purge(struct sim_node *node, uint32_t index)
{
    struct sim_partition *partition = &node->clients->partitions[index];
    struct engine_purge purge = {.log_start = 1 + random_below(&node->cluster->random, 400),
                                 .version = 7};
    if (purge.log_start > partition->end_offset) purge.log_start = partition->end_offset;
    if (random_chance(&node->cluster->random, 1, 8)) purge.log_start = ENGINE_PURGE_ALL;
    uint64_t token = sim_wait(node, SIM_WAIT_PURGE, index, 0, purge.log_start);
    enum status status = store_purge(node->store, &partition->id, &purge, token);
    if (status != STATUS_OK) sim_unwait(node, token);
    if (status == STATUS_HELD || status == STATUS_STALE_INTENT)
        sim_fail(node, "a purge was refused: %s", status_name(status));
}

/* Nothing is known of a hold that was asked for, until it is answered. */
static void trims_hold(struct sim_node *node, uint32_t index)
{
    struct sim_partition *partition = &node->clients->partitions[index];
    if (partition->hold_busy) return;
    struct engine_hold hold = {.intent_op = ++node->clients->op_now, .held = 1};
    if (random_chance(&node->cluster->random, 1, 3)) {
        hold.held = 0;
        partition->held = 0;
    } else if (random_chance(&node->cluster->random, 1, 2)) {
        hold.from_offset = random_below(&node->cluster->random, partition->end_offset + 1);
        partition->held = 0;
    } else if (partition->held && random_chance(&node->cluster->random, 1, 2)) {
        /* An overtaken intent: whatever it says, it changes nothing. */
        hold = (struct engine_hold){.intent_op = partition->hold_intent - 1};
    }
    uint64_t token = sim_wait(node, SIM_WAIT_HOLD, index, hold.held, hold.intent_op);
    enum status status = store_hold(node->store, &partition->id, &hold, token);
    partition->hold_busy = status == STATUS_OK;
    if (status != STATUS_OK) sim_unwait(node, token);
}

void sim_trims_act(struct sim_node *node)
{
    uint32_t index =
        (uint32_t)random_below(&node->cluster->random, node->clients->partitions_count);
    struct engine_partition_state state;
    if (node->clients->partitions[index].deleted || node->clients->partitions[index].stopped)
        return;
    if (!sim_trims_look(node, index, &state)) return;
    if (random_chance(&node->cluster->random, 1, 2))
        trims_hold(node, index);
    else
        trims_purge(node, index);
}

void sim_trims_outcome(struct sim_node *node, const struct sim_wait *wait,
                       const struct store_outcome *outcome)
{
    struct sim_partition *partition = &node->clients->partitions[wait->partition];
    const struct engine_retained *retained = &outcome->retained;
    enum status status = outcome->status;
    int ok = status == STATUS_OK;
    if (partition->deleted || sim_closed(partition, status)) {
        if (wait->kind == SIM_WAIT_HOLD) partition->hold_busy = 0;
        return;
    }
    if (wait->kind == SIM_WAIT_PURGE) {
        if (ok && retained->log_start < wait->what)
            sim_fail(node, "partition %u was purged to %llu and begins at %llu", wait->partition,
                     (unsigned long long)wait->what, (unsigned long long)retained->log_start);
        if (ok) node->cluster->result->purges++;
        if (!ok && status != STATUS_HELD && status != STATUS_TRIMS_FULL)
            sim_fail(node, "a purge ended with %s", status_name(status));
        return;
    }
    partition->hold_busy = 0;
    int stale = wait->what < partition->hold_intent;
    if (status != (stale ? STATUS_STALE_INTENT : STATUS_OK)) {
        sim_fail(node, "a hold ended with %s", status_name(status));
        return;
    }
    if (stale) return;
    partition->hold_intent = wait->what;
    partition->held = wait->group != 0;
    partition->held_from = retained->held_from;
    if (partition->held_from < retained->log_start) partition->held_from = retained->log_start;
    node->cluster->result->holds++;
}

void sim_trims_crashed(struct sim_node *node)
{
    for (uint32_t index = 0; index < node->clients->partitions_count; index++)
        node->clients->partitions[index].hold_busy = 0;
}

/* ---- evidence ---- */

static uint32_t trims_partition(const struct sim_node *node, const struct engine_partition_id *id)
{
    for (uint32_t index = 0; index < node->clients->partitions_count; index++) {
        const struct sim_partition *partition = &node->clients->partitions[index];
        if (!partition->deleted && memcmp(&partition->id, id, sizeof *id) == 0) return index;
    }
    return SIM_PARTITIONS_MAX;
}

static void trims_event(struct sim_node *node, uint32_t index, const struct engine_trimmed *event)
{
    struct sim_partition *partition = &node->clients->partitions[index];
    struct sim_trim own = {.from_offset = event->from_offset,
                           .to_offset = event->to_offset,
                           .bytes = event->bytes,
                           .trim_op = event->trim_op};
    if (event->sequence == 0 || event->sequence > partition->trims_last + 1) {
        sim_fail(node, "partition %u: trim %llu follows %llu", index,
                 (unsigned long long)event->sequence, (unsigned long long)partition->trims_last);
        return;
    }
    struct sim_trim *known = &partition->trims[event->sequence % SIM_TRIMS_MAX];
    if (event->sequence + SIM_TRIMS_MAX <= partition->trims_last) return;
    if (event->sequence <= partition->trims_last) {
        if (memcmp(known, &own, sizeof own) != 0)
            sim_fail(node, "partition %u: trim %llu came again and differs", index,
                     (unsigned long long)event->sequence);
        return;
    }
    if (event->from_offset != partition->trimmed_to || event->to_offset <= event->from_offset)
        sim_fail(node, "partition %u: a trim from %llu, the last one went to %llu", index,
                 (unsigned long long)event->from_offset, (unsigned long long)partition->trimmed_to);
    /* The version of a policy here is its age, in ms (clients/sim_topics.c). */
    int64_t age_us = (int64_t)event->policy_version * 1000;
    if (event->cause == ENGINE_TRIM_TIME
        && event->max_time_us + age_us > node->cluster->clock.believed_us + 1000000)
        sim_fail(node, "partition %u: trimmed ahead of the believed clock", index);
    *known = own;
    partition->trims_last = event->sequence;
    partition->trimmed_to = event->to_offset;
    node->cluster->result->trims++;
}

void sim_host_trims(struct sim_node *node)
{
    struct engine_trimmed event;
    while (store_trimmed_next(node->store, &event)) {
        uint32_t index = trims_partition(node, &event.id);
        if (index == SIM_PARTITIONS_MAX) continue;
        trims_event(node, index, &event);
        if (random_chance(&node->cluster->random, 4, 5))
            (void)store_trim_ack(node->store, &event.id, event.sequence);
    }
}

/* Segment files of the partition that begin at or before its log does: one of them is the log's. */
static uint32_t trims_files(const struct sim_node *node, uint32_t index, uint64_t log_start)
{
    const struct sim_partition *partition = &node->clients->partitions[index];
    uint32_t count = 0;
    for (uint32_t each = 0; each < node->storage.names_count; each++) {
        const struct sim_name *name = &node->storage.names[each];
        const char *file = strrchr(name->path, '/');
        if (name->file == 0 || strncmp(name->path, "topics/", 7) != 0 || file == name->path + 6)
            continue;
        unsigned long long topic;
        unsigned number;
        if (sscanf(name->path, "topics/%llx-%*u-%u-", &topic, &number) != 2) continue;
        if (topic != partition->id.topic || number != partition->id.partition) continue;
        count += strtoull(file + 1, NULL, 10) <= log_start;
    }
    return count;
}

uint64_t sim_trims_settled(struct sim_node *node, uint32_t index)
{
    struct engine_partition_state state;
    if (node->clients->partitions[index].deleted) return UINT64_MAX;
    if (!sim_trims_look(node, index, &state)) return UINT64_MAX;
    uint32_t own = state.log_start < state.log_end;
    return trims_files(node, index, state.log_start) > own ? UINT64_MAX : state.log_start;
}

/* At rest, with a fresh checkpoint: the evidence is complete, and no file is left of what went. */
void sim_check_trims(struct sim_node *node)
{
    sim_host_trims(node);
    for (uint32_t index = 0; index < node->clients->partitions_count && !sim_ended(node); index++) {
        const struct sim_partition *partition = &node->clients->partitions[index];
        struct engine_partition_state state;
        if (partition->deleted || partition->stopped || partition->may_stop) continue;
        if (!sim_trims_look(node, index, &state)) continue;
        if (partition->trimmed_to != state.log_start)
            sim_fail(node, "partition %u begins at %llu, its trims end at %llu", index,
                     (unsigned long long)state.log_start,
                     (unsigned long long)partition->trimmed_to);
        if (trims_files(node, index, state.log_start) > (state.log_start < state.log_end))
            sim_fail(node, "partition %u: files lie below its beginning", index);
    }
}
