#include "store/files/requests.h"

#include <string.h>

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "store/state.h"

#define RETRY_AFTER_NS UINT64_C(500000000) /* a full disk is asked again */

struct requests {
    struct file_request *all;
    struct file_request *free;
    struct file_request *finished_head; /* recovery: carried out, not yet completed */
    struct file_request *finished_tail;
    uint32_t in_flight;
    uint8_t disk_full;
    uint64_t retry_ns;
};

size_t requests_memory_bytes(void)
{
    return arena_size(sizeof(struct requests))
           + arena_size(REQUESTS_MAX * sizeof(struct file_request));
}

struct requests *requests_make(struct arena *arena)
{
    struct requests *requests = arena_take(arena, sizeof *requests);
    if (!requests) return NULL;
    requests->all = arena_take(arena, REQUESTS_MAX * sizeof *requests->all);
    if (!requests->all) return NULL;
    for (uint32_t index = 0; index < REQUESTS_MAX; index++) {
        requests->all[index].next = requests->free;
        requests->free = &requests->all[index];
    }
    return requests;
}

struct file_request *requests_take(struct requests *requests, enum file_request_kind kind,
                                   enum io_operation operation)
{
    struct file_request *taken = requests->free;
    if (!taken) return NULL;
    requests->free = taken->next;
    requests->in_flight++;
    memset(&taken->request, 0, sizeof taken->request);
    taken->request.operation = operation;
    taken->request.kind = kind;
    taken->request.token = (uint64_t)(taken - requests->all);
    taken->file = 0;
    taken->replica = 0;
    taken->batches = 0;
    return taken;
}

void requests_return(struct requests *requests, struct file_request *request)
{
    assert(requests->in_flight > 0);
    request->next = requests->free;
    requests->free = request;
    requests->in_flight--;
}

void requests_send(struct store *store, struct file_request *request)
{
    struct requests *requests = store->requests;
    if (!store->recovering) {
        store->io->submit(store->io->context, &request->request);
        return;
    }
    request->request.status = requests_perform(store, &request->request);
    request->next = NULL;
    if (requests->finished_tail)
        requests->finished_tail->next = request;
    else
        requests->finished_head = request;
    requests->finished_tail = request;
}

struct file_request *requests_finished(struct requests *requests)
{
    struct file_request *finished = requests->finished_head;
    if (!finished) return NULL;
    requests->finished_head = finished->next;
    if (!requests->finished_head) requests->finished_tail = NULL;
    return finished;
}

struct file_request *requests_of(struct requests *requests, struct io_request *request)
{
    assert(request->token < REQUESTS_MAX);
    struct file_request *own = &requests->all[request->token];
    assert(request == &own->request);
    return own;
}

int requests_fit(const struct requests *requests, uint32_t count)
{
    return requests->in_flight + count <= REQUESTS_MAX;
}

uint32_t requests_in_flight(const struct requests *requests)
{
    return requests->in_flight;
}

enum status requests_perform(struct store *store, struct io_request *request)
{
    assert(store->recovering);
    return store->io->perform(store->io->context, request);
}

void requests_disk_full(struct store *store)
{
    store->requests->disk_full = 1;
    store->requests->retry_ns = store->now.monotonic_ns + RETRY_AFTER_NS;
}

int requests_disk_is_full(const struct store *store)
{
    return store->requests->disk_full;
}

void requests_tick(struct store *store)
{
    struct requests *requests = store->requests;
    if (requests->disk_full && store->now.monotonic_ns >= requests->retry_ns)
        requests->disk_full = 0;
}

void requests_invariants(const struct requests *requests)
{
    assert(requests->in_flight <= REQUESTS_MAX);
    assert((requests->in_flight == REQUESTS_MAX) == (requests->free == NULL));
    assert((requests->finished_head == NULL) == (requests->finished_tail == NULL));
    ergo(requests->disk_full, requests->retry_ns >= RETRY_AFTER_NS);
}
