/* service/attribution.h: who pays for a call: its key, for the topic it names.
 *
 * A call, or a message of a ProduceStream, is one request once its topic is there and its caller
 * may: whatever comes of it then. A stream that is read (Consume) is one. System topics
 * and requests with the node's own key are not billed. */
#ifndef SERVICE_ATTRIBUTION_H
#define SERVICE_ATTRIBUTION_H

struct call;
struct reply;
struct table_topic;

/* One request for this topic, which the caller may use. */
void attribution_request(struct call *call, const struct table_topic *topic);
/* A reply with the topic's data is about to be queued: its body is paid for when it is sent. */
void attribution_reply(const struct call *call, struct reply *reply);

#endif
