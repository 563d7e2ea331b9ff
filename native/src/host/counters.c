#include "host/counters.h"

#include "foundation/assert.h"
#include "host/node.h"
#include "host/ring.h"
#include "host/state.h"

_Static_assert(TALLY_EGRESS_BYTES + 1 == (int)ENGINE_METER_EGRESS_BYTES
                   && TALLY_REQUESTS + 1 == (int)ENGINE_METER_REQUESTS,
               "a meter of the tally is the meter before that of the host");

static int counter_next(struct host *host, int all, int64_t end_us, struct engine_counter *counter)
{
    const struct counting *counting = &host->counting;
    struct tally_change change;
    if (tally_next(host->tally, &change)) {
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
    return store_stored_next(host->store, all, counting->floor_us, end_us, counter);
}

static void counters_post(struct host *host, const struct engine_counters *counters,
                          const struct engine_counter *rows)
{
    struct engine_frame frame = {.kind = ENGINE_COUNTERS};
    const struct host_body body = {
        .data = counters,
        .size = sizeof *counters,
        .tail = rows,
        .tail_size = counters->rows_count * sizeof *rows,
    };
    host->counters.counter_frames++;
    host->counters.counter_rows += counters->rows_count;
    host_post_surely(host, &frame, &body);
}

/* Everything of this window; `all` = also what only grew. */
static void window_tell(struct host *host, int all, int is_last)
{
    struct counting *counting = &host->counting;
    struct engine_counter rows[COUNTERS_ROWS_MAX];
    int64_t now_us = store_window_us(host->store);
    struct engine_counters counters = {.window_end_us = counting_end(counting, now_us)};
    store_stored_turn(host->store);
    while (counter_next(host, all, counters.window_end_us, &rows[counters.rows_count])) {
        if (++counters.rows_count < COUNTERS_ROWS_MAX) continue;
        counters_post(host, &counters, rows);
        counters.rows_count = 0;
    }
    counters.final = (uint32_t)is_last;
    if (counters.rows_count > 0 || is_last) counters_post(host, &counters, rows);
    tally_turn(host->tally);
    host->counters.usage_unattributed = host->tally->unattributed;
    counting_next(counting, now_us, host->now->monotonic_ns);
}

static void windows_begin(struct host *host)
{
    uint64_t window_ns = host->node->config.metering_window_s * UINT64_C(1000000000);
    if (window_ns == 0 || window_ns > COUNTERS_WINDOW_NS) window_ns = COUNTERS_WINDOW_NS;
    counting_begin(&host->counting, store_window_us(host->store), host->now->monotonic_ns,
                   window_ns);
}

void host_counters_turn(struct host *host)
{
    struct counting *counting = &host->counting;
    if (!counting->begun) windows_begin(host);
    int hour_over = counting_hour_over(counting, store_window_us(host->store));
    /* A host that does not read is not written to, unless the window would lie in two hours. */
    int due = counting_due(counting, host->now->monotonic_ns) && host_empty(host);
    if (hour_over || due) window_tell(host, hour_over, 0);
}

void host_counters_flush(struct host *host, const struct engine_frame *frame)
{
    if (host->counting.begun) window_tell(host, 1, 0);
    host_reply(host, frame->arg0, ENGINE_RESULT_OK, NULL, 0);
}

void host_counters_final(struct host *host)
{
    if (host->counting.begun) window_tell(host, 1, 1);
}
