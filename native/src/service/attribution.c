#include "service/attribution.h"

#include "service/state.h"

void attribution_request(struct call *call, const struct table_topic *topic)
{
    struct service *service = service_of(call);
    work_of(call)->attribution.topic = 0;
    if ((topic->flags & ENGINE_TOPIC_SYSTEM) || (call->caller.verbs & ENGINE_VERB_ADMIN)) return;
    work_of(call)->attribution = (struct tally_key){
        .topic = topic->topic,
        .created_revision = topic->created_revision,
        .principal = call->caller.principal,
    };
    tally_add(service->tally, &work_of(call)->attribution, TALLY_REQUESTS, 1);
    service->counters.requests_metered++;
}

void attribution_reply(const struct call *call, struct reply *reply)
{
    if (reply->payload_bytes > 0) reply->attribution = work_of(call)->attribution;
}
