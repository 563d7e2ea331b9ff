#include "host/counters.h"

#include "foundation/assert.h"
#include "host/node.h"
#include "host/ring.h"
#include "shard/shard.h"

_Static_assert(TALLY_EGRESS_BYTES + 1 == (int)ENGINE_METER_EGRESS_BYTES
                   && TALLY_REQUESTS + 1 == (int)ENGINE_METER_REQUESTS,
               "a meter of the tally is the meter before that of the host");

static int counter_next(struct shard *shard, int all, int64_t end_us,
                        struct engine_counter *counter)
{
    const struct counting *counting = &shard->counting;
    struct tally_change change;
    if (tally_next(&shard->tally, &change)) {
        *counter = (struct engine_counter){
            .topic = change.key.topic,
            .created_revision = change.key.created_revision,
            .delta = change.delta,
            .cumulative = change.cumulative,
            .window_start_us = counting->start_us,
            .principal = change.key.principal,
            .meter = change.meter + 1,
        };
        return 1;
    }
    return store_stored_next(shard->store, all, counting->floor_us, end_us, counter);
}

static void counters_post(struct shard *shard, const struct engine_counters *counters,
                          const struct engine_counter *rows)
{
    struct engine_frame frame = {.kind = ENGINE_COUNTERS};
    const struct host_body body = {
        .data = counters,
        .size = sizeof *counters,
        .tail = rows,
        .tail_size = counters->rows_count * sizeof *rows,
    };
    shard->counters.counter_frames++;
    shard->counters.counter_rows += counters->rows_count;
    host_post_surely(shard, &frame, &body);
}

/* Everything of this window; `all` = also what only grew. */
static void window_tell(struct shard *shard, int all, int is_last)
{
    struct counting *counting = &shard->counting;
    struct engine_counter rows[COUNTERS_ROWS_MAX];
    int64_t now_us = store_window_us(shard->store);
    struct engine_counters counters = {.window_end_us = counting_end(counting, now_us)};
    store_stored_turn(shard->store);
    while (counter_next(shard, all, counters.window_end_us, &rows[counters.rows_count])) {
        if (++counters.rows_count < COUNTERS_ROWS_MAX) continue;
        counters_post(shard, &counters, rows);
        counters.rows_count = 0;
    }
    counters.final = (uint32_t)is_last;
    if (counters.rows_count > 0 || is_last) counters_post(shard, &counters, rows);
    tally_turn(&shard->tally);
    shard->counters.usage_unattributed = shard->tally.unattributed;
    counting_next(counting, now_us, shard->now.monotonic_ns);
}

static void windows_begin(struct shard *shard)
{
    uint64_t window_ns = shard->node->config.metering_window_s * UINT64_C(1000000000);
    if (window_ns == 0 || window_ns > COUNTERS_WINDOW_NS) window_ns = COUNTERS_WINDOW_NS;
    counting_begin(&shard->counting, store_window_us(shard->store), shard->now.monotonic_ns,
                   window_ns);
}

void host_counters(struct shard *shard)
{
    struct counting *counting = &shard->counting;
    if (!counting->begun) windows_begin(shard);
    int hour_over = counting_hour_over(counting, store_window_us(shard->store));
    /* A host that does not read is not written to, unless the window would lie in two hours. */
    int due = counting_due(counting, shard->now.monotonic_ns) && host_empty(shard);
    if (hour_over || due) window_tell(shard, hour_over, 0);
}

void host_counters_flush(struct shard *shard, const struct engine_frame *frame)
{
    if (shard->counting.begun) window_tell(shard, 1, 0);
    host_reply(shard, frame->arg0, ENGINE_RESULT_OK, NULL, 0);
}

void host_counters_final(struct shard *shard)
{
    if (shard->counting.begun) window_tell(shard, 1, 1);
}
