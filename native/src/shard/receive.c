#include "shard/receive.h"

#include "foundation/assert.h"
#include "grpc/server.h"
#include "host/metadata.h"
#include "io/io_socket.h"
#include "service/service.h"
#include "shard/shard.h"

static void connection_take(struct shard *shard, int fd)
{
    if (http2_connection_open(grpc_server_transport(shard->grpc), fd) == STATUS_OK) return;
    shard->counters.connections_refused++;
    socket_close(fd);
}

static void receive_frame(struct shard *shard, const struct shard_frame *frame,
                          enum queue_kind queue)
{
    switch (frame->kind) {
    case FRAME_CONNECTION: connection_take(shard, frame->fd); return;
    case FRAME_TABLES: host_metadata_tables(shard->host, frame); return;
    case FRAME_TABLES_DONE: host_metadata_spread(shard->host); return;
    case FRAME_READY:
        store_tables_complete(shard->store, frame->token);
        service_ready(shard->service);
        return;
    default:
        if (queue == QUEUE_MAIN)
            service_request(shard->service, frame);
        else
            service_answer(shard->service, frame);
    }
}

void shard_receive(struct shard *shard, enum queue_kind queue)
{
    struct shard_frame frame;
    for (uint16_t source = 0; source < shard->shards_count; source++) {
        if (source == shard->index) continue;
        /* No more than were there at the start: a busy neighbour must not delay the pump. */
        uint32_t left = shard_queues_used(shard->service, source, queue);
        while (left-- > 0 && shard_queues_next(shard->service, source, queue, &frame))
            receive_frame(shard, &frame, queue);
    }
}
