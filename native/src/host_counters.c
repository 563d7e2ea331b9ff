#include "host_counters.h"

#include "assert.h"
#include "engine_state.h"
#include "host_ring.h"
#include "shard.h"

#define HOUR_US INT64_C(3600000000)

_Static_assert(TALLY_EGRESS_BYTES + 1 == (int)ENGINE_METER_EGRESS_BYTES
                   && TALLY_REQUESTS + 1 == (int)ENGINE_METER_REQUESTS,
               "a meter of the tally is the meter before that of the host");

static int64_t hour_begin(int64_t time_us)
{
    return time_us - time_us % HOUR_US;
}

static void window_begin(struct counting *counting, int64_t start_us)
{
    counting->window_start_us = start_us;
    counting->hour_end_us = hour_begin(start_us) + HOUR_US;
}

static void counting_begin(struct shard *shard)
{
    struct counting *counting = &shard->counting;
    uint64_t window_ns = shard->engine->config.metering_window_s * UINT64_C(1000000000);
    counting->window_ns =
        window_ns == 0 || window_ns > COUNTERS_WINDOW_NS ? COUNTERS_WINDOW_NS : window_ns;
    counting->told_ns = shard->now.monotonic_ns;
    counting->begun = 1;
    counting->begun_us = store_window_us(shard->store);
    window_begin(counting, counting->begun_us);
}

/* Never backward, never into another hour. */
static int64_t window_end(const struct counting *counting, int64_t now_us)
{
    if (now_us >= counting->hour_end_us) return counting->hour_end_us;
    return now_us > counting->window_start_us ? now_us : counting->window_start_us + 1;
}

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
            .window_start_us = counting->window_start_us,
            .principal = change.key.principal,
            .meter = change.meter + 1,
        };
        return 1;
    }
    int64_t from_us = hour_begin(counting->window_start_us);
    if (from_us < counting->begun_us) from_us = counting->begun_us;
    return store_stored_next(shard->store, all, from_us, end_us, counter);
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
static void window_tell(struct shard *shard, int all, int final)
{
    struct counting *counting = &shard->counting;
    struct engine_counter rows[COUNTERS_ROWS_MAX];
    int64_t now_us = store_window_us(shard->store);
    struct engine_counters counters = {.window_end_us = window_end(counting, now_us)};
    store_stored_turn(shard->store);
    while (counter_next(shard, all, counters.window_end_us, &rows[counters.rows_count])) {
        if (++counters.rows_count < COUNTERS_ROWS_MAX) continue;
        counters_post(shard, &counters, rows);
        counters.rows_count = 0;
    }
    counters.final = (uint32_t) final;
    if (counters.rows_count > 0 || final) counters_post(shard, &counters, rows);
    tally_turn(&shard->tally);
    shard->counters.usage_unattributed = shard->tally.unattributed;
    counting->told_ns = shard->now.monotonic_ns;
    /* After a leap of the clock the hours between saw nothing. */
    int64_t start_us = counters.window_end_us;
    window_begin(counting, hour_begin(now_us) > start_us ? hour_begin(now_us) : start_us);
}

void host_counters(struct shard *shard)
{
    struct counting *counting = &shard->counting;
    if (!counting->begun) counting_begin(shard);
    int hour_over = store_window_us(shard->store) >= counting->hour_end_us;
    if (!hour_over) {
        if (shard->now.monotonic_ns - counting->told_ns < counting->window_ns) return;
        if (!host_empty(shard)) return;
    }
    window_tell(shard, hour_over, 0);
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
