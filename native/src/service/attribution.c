#include "service/attribution.h"

#include "shard/shard.h"

void stream_payer_request(struct call *call, const struct table_topic *topic)
{
    struct shard *shard = call->connection->shard;
    call->payer.topic = 0;
    if ((topic->flags & ENGINE_TOPIC_SYSTEM) || (call->caller.verbs & ENGINE_VERB_ADMIN)) return;
    call->payer = (struct tally_key){
        .topic = topic->topic,
        .created_revision = topic->created_revision,
        .principal = call->caller.principal,
    };
    tally_add(&shard->tally, &call->payer, TALLY_REQUESTS, 1);
    shard->counters.requests_metered++;
}

void stream_payer_reply(const struct call *call, struct reply *reply)
{
    if (reply->body_bytes > 0) reply->payer = call->payer;
}
