#include "service/pendings.h"

#include "foundation/assert.h"
#include "service/commit_offsets.h"
#include "service/produce.h"

uint64_t pending_of_call(struct call *call, enum pending_kind kind, uint64_t number)
{
    struct pending values = {
        .kind = (uint8_t)kind,
        .call_index = call->index,
        .call_tag = call->slot_tag,
        .number = number,
    };
    return pending_take(shard_of(call), &values);
}

struct call *pending_answered(struct shard *shard, struct pending *pending)
{
    struct call *call = grpc_call_find(shard->grpc, pending->call_index, pending->call_tag);
    buffer_give(&shard->pool, pending->loan);
    pending_give(shard, pending);
    if (call == NULL) {
        shard->counters.late_outcomes++;
        return NULL;
    }
    struct call_work *work = work_of(call);
    assert(work->pending_count > 0);
    work->pending_count--;
    return call;
}

void pending_outcome(struct shard *shard, struct pending *pending,
                     const struct frame_outcome *outcome)
{
    const struct pending done = *pending;
    struct call *call = pending_answered(shard, pending);
    if (call == NULL) return;
    assert(done.kind == PENDING_COMMIT || done.kind == PENDING_PRODUCE);
    if (done.kind == PENDING_COMMIT)
        commit_offsets_outcome(call, outcome);
    else
        produce_outcome(call, done.number, outcome);
}
