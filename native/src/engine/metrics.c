/* engine/metrics.c: the counters of all shards as text in the Prometheus format. Reads only: a
 * counter has one writer, its shard's thread, and an old value is as good as a new one. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/metric_help.h"
#include "engine/state.h"
#include "foundation/assert.h"
#include "grpc/server.h"
#include "host/host.h"
#include "service/service.h"
#include "shard/shard.h"

struct text {
    char *at;
    size_t size;
    size_t used; /* what is needed, beyond `size` too */
};

static void __attribute__((format(printf, 2, 3))) put(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t room = text->used < text->size ? text->size - text->used : 0;
    int written = vsnprintf(room > 0 ? text->at + text->used : NULL, room, format, arguments);
    va_end(arguments);
    assert(written >= 0);
    text->used += (size_t)written;
}

/* Written by the shard's thread only: a torn read is impossible, a stale one is fine. */
static unsigned long long load(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/* Whose figure it is. */
enum source { OF_SHARD, OF_HTTP2, OF_GRPC, OF_SERVICE, OF_HOST, OF_STORE };

struct metric {
    const char *name;
    const char *labels; /* besides the shard: with a leading comma, or "" */
    size_t offset;
    const char *kind;
    enum source source;
};

#define COUNTER(name, labels, field) \
    {name, labels, offsetof(struct shard_counters, field), "counter", OF_SHARD}
#define SERVICE(name, labels, field) \
    {name, labels, offsetof(struct service_counters, field), "counter", OF_SERVICE}
#define HOST(name, labels, field) \
    {name, labels, offsetof(struct host_counters, field), "counter", OF_HOST}
#define TRANSPORT(name, labels, field) \
    {name, labels, offsetof(struct http2_counters, field), "counter", OF_HTTP2}
#define SERVER(name, labels, field) \
    {name, labels, offsetof(struct grpc_counters, field), "counter", OF_GRPC}

static const struct metric counters[] = {
    TRANSPORT("headrace_connections_opened_total", "", connections_opened),
    TRANSPORT("headrace_connections_closed_total", "", connections_closed),
    COUNTER("headrace_connections_refused_total", "", connections_refused),
    COUNTER("headrace_accepts_failed_total", "", accepts_failed),
    TRANSPORT("headrace_connections_ended_total", ",reason=\"silent\"", connections_silent),
    TRANSPORT("headrace_connections_ended_total", ",reason=\"evicted\"", connections_evicted),
    TRANSPORT("headrace_connections_ended_total", ",reason=\"idle\"", connections_idle),
    TRANSPORT("headrace_connections_ended_total", ",reason=\"age\"", connections_aged),
    TRANSPORT("headrace_connections_ended_total", ",reason=\"stalled\"", connections_stalled),
    TRANSPORT("headrace_connections_ended_total", ",reason=\"malformed\"", connections_malformed),
    TRANSPORT("headrace_connections_ended_total", ",reason=\"pings\"", floods_pings),
    TRANSPORT("headrace_connections_ended_total", ",reason=\"resets\"", floods_resets),
    TRANSPORT("headrace_connections_ended_total", ",reason=\"frames\"", floods_frames),
    SERVER("headrace_calls_opened_total", "", calls_opened),
    SERVER("headrace_calls_refused_total", "", calls_refused),
    SERVER("headrace_calls_cancelled_total", "", calls_cancelled),
    SERVER("headrace_calls_access_ended_total", "", access_ended),
    SERVER("headrace_calls_late_total", "", calls_late),
    SERVER("headrace_replies_stalled_total", "", replies_stalled),
    SERVER("headrace_replies_refused_total", "", answers_refused),
    SERVER("headrace_messages_refused_total", ",reason=\"memory\"", messages_refused),
    SERVER("headrace_messages_refused_total", ",reason=\"deadline\"", messages_late),
    TRANSPORT("headrace_received_bytes_total", "", bytes_received),
    TRANSPORT("headrace_sent_bytes_total", "", bytes_sent),
    SERVICE("headrace_fetch_waits_total", "", fetch_waits),
    SERVICE("headrace_fetch_holds_total", "", fetch_memory_waits),
    SERVICE("headrace_fetch_disk_reads_total", "", fetch_reads),
    SERVICE("headrace_fetch_bytes_total", "", fetch_bytes),
    SERVER("headrace_metered_egress_bytes_total", "", egress_bytes),
    SERVER("headrace_metered_egress_unsent_bytes_total", "", egress_unsent),
    SERVICE("headrace_metered_requests_total", "", requests_metered),
    HOST("headrace_usage_unattributed_total", "", usage_unattributed),
    SERVICE("headrace_produce_waits_total", "", produce_waits),
    SERVER("headrace_consume_holds_total", ",reason=\"connection\"", pushes_blocked),
    SERVICE("headrace_consume_holds_total", ",reason=\"memory\"", consume_memory_waits),
    SERVICE("headrace_forwarded_total", ",method=\"produce\"", produce_forwarded),
    SERVICE("headrace_forwarded_total", ",method=\"fetch\"", fetch_forwarded),
    SERVICE("headrace_late_answers_total", ",from=\"store\"", late_outcomes),
    HOST("headrace_late_answers_total", ",from=\"host\"", late_host_answers),
    HOST("headrace_host_opens_refused_total", "", host_opens_refused),
    HOST("headrace_host_frames_total", ",direction=\"out\"", host_frames_out),
    HOST("headrace_host_frames_total", ",direction=\"in\"", host_frames_in),
    SERVICE("headrace_frame_drops_total", ",variant=\"main\",reason=\"full\"", frame_drops_main),
    SERVICE("headrace_frames_delayed_total", "", frames_delayed_reply),
    HOST("headrace_meter_frames_total", "", meter_frames),
    HOST("headrace_counter_frames_total", "", counter_frames),
    HOST("headrace_counter_rows_total", "", counter_rows),
    COUNTER("headrace_pump_turns_total", "", turns),
};

#define STATISTIC(name, field, kind) \
    {name, "", offsetof(struct store_statistics, field), kind, OF_STORE}

static const struct metric statistics[] = {
    STATISTIC("headrace_journal_rounds_total", rounds, "counter"),
    STATISTIC("headrace_journal_round_bytes_total", round_bytes, "counter"),
    STATISTIC("headrace_journal_syncs_total", syncs, "counter"),
    STATISTIC("headrace_journal_entries_total", entries, "counter"),
    STATISTIC("headrace_journal_live_bytes", journal_bytes_live, "gauge"),
    STATISTIC("headrace_produce_batches_total", produce_batches, "counter"),
    STATISTIC("headrace_produce_bytes_total", produce_bytes, "counter"),
    STATISTIC("headrace_produce_records_total", produce_records, "counter"),
    STATISTIC("headrace_produce_duplicates_total", duplicates, "counter"),
    STATISTIC("headrace_refused_busy_total", refused_busy, "counter"),
    STATISTIC("headrace_refused_storage_full_total", refused_full, "counter"),
    STATISTIC("headrace_refused_damaged_total", refused_damaged, "counter"),
    STATISTIC("headrace_refused_producers_share_total", refused_producers_share, "counter"),
    STATISTIC("headrace_producers_used", producers_used, "gauge"),
    STATISTIC("headrace_refused_op_unknown_total", refused_op_unknown, "counter"),
    STATISTIC("headrace_out_of_sequence_total", out_of_sequence, "counter"),
    STATISTIC("headrace_checkpoints_total", checkpoints, "counter"),
    STATISTIC("headrace_extents_released_total", extents_released, "counter"),
    STATISTIC("headrace_segments_opened_total", segments_opened, "counter"),
    STATISTIC("headrace_segments_sealed_total", segments_sealed, "counter"),
    STATISTIC("headrace_groups_live", replicas_live, "gauge"),
    STATISTIC("headrace_groups_damaged", replicas_damaged, "gauge"),
    STATISTIC("headrace_partitions_removing", replicas_removing, "gauge"),
    STATISTIC("headrace_partitions_removing_failures_total", removal_failures, "counter"),
    STATISTIC("headrace_trims_total", trims, "counter"),
    STATISTIC("headrace_trims_held_total", trims_held, "counter"),
    STATISTIC("headrace_trims_full_total", trims_full, "counter"),
    STATISTIC("headrace_trimmed_bytes_total", trimmed_bytes, "counter"),
    STATISTIC("headrace_trimmed_records_total", trimmed_records, "counter"),
    STATISTIC("headrace_stored_unattributed_total", stored_unattributed, "counter"),
    STATISTIC("headrace_held_bytes", held_bytes, "gauge"),
    STATISTIC("headrace_partitions_trimming", partitions_trimming, "gauge"),
    STATISTIC("headrace_partitions_trimming_failures_total", trim_failures, "counter"),
    STATISTIC("headrace_groups_op_unknown", replicas_op_unknown, "gauge"),
    STATISTIC("headrace_prepares_used_bytes", prepares_bytes_used, "gauge"),
    STATISTIC("headrace_storage_full", storage_full, "gauge"),
    STATISTIC("headrace_clock_uncertain", clock_uncertain, "gauge"),
};

static void put_family(struct text *text, const char *name, const char *kind)
{
    put(text, "# HELP %s %s\n# TYPE %s %s\n", name, metric_help(name), name, kind);
}

static void put_header(struct text *text, const struct metric *list, size_t index)
{
    if (index > 0 && strcmp(list[index - 1].name, list[index].name) == 0) return;
    put_family(text, list[index].name, list[index].kind);
}

/* A figure of a shard, wherever it is kept. */
static unsigned long long value_of(const void *of, const struct metric *metric)
{
    const uint8_t *base = (const uint8_t *)of;
    return load((const uint64_t *)(const void *)(base + metric->offset));
}

static unsigned long long counter_of(const struct shard *shard, const struct metric *metric)
{
    switch (metric->source) {
    case OF_HTTP2: return value_of(http2_counters(grpc_server_transport(shard->grpc)), metric);
    case OF_GRPC: return value_of(grpc_server_counters(shard->grpc), metric);
    case OF_SERVICE: return value_of(service_counters(shard->service), metric);
    case OF_HOST: return value_of(host_counters(shard->host), metric);
    default: assert(metric->source == OF_SHARD); return value_of(&shard->counters, metric);
    }
}

static void put_counters(struct text *text, const struct engine *engine)
{
    for (size_t index = 0; index < sizeof counters / sizeof counters[0]; index++) {
        put_header(text, counters, index);
        for (uint16_t shard = 0; shard < engine->node.shards_count; shard++) {
            put(text, "%s{shard=\"%u\"%s} %llu\n", counters[index].name, (unsigned)shard,
                counters[index].labels, counter_of(&engine->shards[shard], &counters[index]));
        }
    }
}

static void put_statistics(struct text *text, const struct engine *engine)
{
    for (size_t index = 0; index < sizeof statistics / sizeof statistics[0]; index++) {
        put_header(text, statistics, index);
        for (uint16_t shard = 0; shard < engine->node.shards_count; shard++) {
            struct store_statistics now;
            store_statistics(engine->shards[shard].store, &now);
            put(text, "%s{shard=\"%u\"} %llu\n", statistics[index].name, (unsigned)shard,
                value_of(&now, &statistics[index]));
        }
    }
}

static void put_calls(struct text *text, const struct engine *engine)
{
    put_family(text, "headrace_calls_total", "counter");
    for (uint16_t shard = 0; shard < engine->node.shards_count; shard++) {
        struct grpc_server *server = engine->shards[shard].grpc;
        const struct grpc_method *method;
        for (uint32_t at = 0; (method = grpc_server_method(server, at)) != NULL; at++) {
            const uint64_t *value = &grpc_server_counters(server)->calls_by_method[at];
            put(text, "headrace_calls_total{shard=\"%u\",method=\"%s\"} %llu\n", (unsigned)shard,
                method->metric, load(value));
        }
    }
    put_family(text, "headrace_call_failures_total", "counter");
    for (uint16_t shard = 0; shard < engine->node.shards_count; shard++) {
        for (int error = GRPC_ERROR_NONE + 1; error < GRPC_ERROR_COUNT; error++) {
            struct grpc_server *server = engine->shards[shard].grpc;
            const uint64_t *value = &grpc_server_counters(server)->failures_by_error[error];
            if (load(value) == 0) continue;
            put(text, "headrace_call_failures_total{shard=\"%u\",code=\"%s\"} %llu\n",
                (unsigned)shard, grpc_error_entry((enum grpc_error)error)->code, load(value));
        }
    }
}

/* Near the limit metadata can soon not be snapshotted any more: the alarm's two sides. */
static void put_snapshot(struct text *text, const struct engine *engine)
{
    const struct host_counters *metadata = host_counters(engine->shards[0].host);
    put_family(text, "headrace_metadata_snapshot_bytes", "gauge");
    put(text, "headrace_metadata_snapshot_bytes %llu\n", load(&metadata->snapshot_bytes));
    put_family(text, "headrace_metadata_snapshot_limit_bytes", "gauge");
    put(text, "headrace_metadata_snapshot_limit_bytes %llu\n",
        (unsigned long long)(ENGINE_FRAME_SIZE_MAX - sizeof(struct engine_frame)));
    put_family(text, "headrace_metadata_snapshots_refused_total", "counter");
    put(text, "headrace_metadata_snapshots_refused_total %llu\n",
        load(&metadata->snapshots_refused));
}

static void put_gauges(struct text *text, const struct engine *engine)
{
    put_family(text, "headrace_pool_used_bytes", "gauge");
    for (uint16_t index = 0; index < engine->node.shards_count; index++) {
        put(text, "headrace_pool_used_bytes{shard=\"%u\"} %llu\n", (unsigned)index,
            load(&engine->shards[index].pool.used_bytes));
    }
    put_family(text, "headrace_pool_refused_total", "counter");
    for (uint16_t index = 0; index < engine->node.shards_count; index++) {
        put(text, "headrace_pool_refused_total{shard=\"%u\"} %llu\n", (unsigned)index,
            load(&engine->shards[index].pool.refused_count));
    }
    put_family(text, "headrace_table_rows_refused_total", "counter");
    for (uint16_t index = 0; index < engine->node.shards_count; index++) {
        const struct tables *tables = &engine->shards[index].tables;
        put(text, "headrace_table_rows_refused_total{shard=\"%u\",table=\"topics\"} %llu\n",
            (unsigned)index, load(&tables->topics_refused_count));
        put(text, "headrace_table_rows_refused_total{shard=\"%u\",table=\"grants\"} %llu\n",
            (unsigned)index, load(&tables->grants.refused_full_count));
        put(text, "headrace_table_rows_refused_total{shard=\"%u\",table=\"topic_names\"} %llu\n",
            (unsigned)index, load(&tables->topic_names.refused_count));
        put(text, "headrace_table_rows_refused_total{shard=\"%u\",table=\"projects\"} %llu\n",
            (unsigned)index, load(&tables->projects.refused_count));
    }
}

size_t engine_metrics(const struct engine *engine, char *target, size_t size)
{
    struct text text = {.at = target, .size = size};
    put_counters(&text, engine);
    put_statistics(&text, engine);
    put_calls(&text, engine);
    put_gauges(&text, engine);
    put_snapshot(&text, engine);
    return text.used;
}

static const struct metric *find(const struct metric *list, size_t count, const char *name)
{
    for (size_t index = 0; index < count; index++) {
        if (list[index].labels[0] == 0 && strcmp(list[index].name, name) == 0) return &list[index];
    }
    return NULL;
}

int engine_metric_total(const struct engine *engine, const char *name, uint64_t *total)
{
    const struct metric *counter = find(counters, sizeof counters / sizeof counters[0], name);
    const struct metric *statistic =
        find(statistics, sizeof statistics / sizeof statistics[0], name);
    if (counter == NULL && statistic == NULL) return -1;
    *total = 0;
    for (uint16_t index = 0; index < engine->node.shards_count; index++) {
        const struct shard *shard = &engine->shards[index];
        if (counter != NULL) {
            *total += counter_of(shard, counter);
            continue;
        }
        struct store_statistics now;
        store_statistics(shard->store, &now);
        *total += value_of(&now, statistic);
    }
    return 0;
}
