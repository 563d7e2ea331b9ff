#include "store/accounting/storage_meter.h"

#include "foundation/arena.h"
#include "foundation/assert.h"
#include "foundation/queue.h"
#include "store/registry.h"
#include "store/state.h"

enum { STORED_MS = 1000 };

/* The reporting period of an unchanged account: a crash loses at most that much of it. */
#define STORED_REPORTED_NS UINT64_C(60000000000)

/* What one revision of a topic stores in this shard. */
struct storage_account {
    uint64_t topic; /* 0 = free, and of the first: unattributed */
    uint64_t created_revision;
    uint64_t bytes;    /* now */
    uint64_t until_ms; /* monotonic: byte_seconds is complete up to then */
    uint64_t rest;     /* byte-milliseconds, less than a byte-second */
    uint64_t byte_seconds;
    uint64_t reported;
    uint64_t reported_ns;
    uint64_t turn;       /* in which it was reported last */
    int64_t reported_us; /* where its next window begins */
    uint32_t replicas;   /* partitions that add to it */
    uint32_t next;       /* in its bucket or the free list; 0 = none */
    struct queue_link link;
};

struct storage_meter {
    struct storage_account *accounts;
    uint32_t accounts_count;
    uint32_t accounts_free;
    uint32_t *buckets; /* 0 = none */
    uint32_t buckets_count;
    struct queue changed; /* since they were last reported */
    struct queue quiet;   /* the others with bytes, oldest reported first */
    uint64_t turn;
};

static uint32_t accounts_of(uint32_t replicas_max)
{
    /* One for unattributed bytes; and deleted topics until the next window reports them. */
    return 1 + 2 * replicas_max;
}

static uint32_t buckets_of(uint32_t replicas_max)
{
    uint32_t buckets = 16;
    while (buckets < 2 * replicas_max) buckets *= 2;
    return buckets;
}

size_t storage_meter_memory_bytes(uint32_t replicas_max)
{
    return arena_size(sizeof(struct storage_meter))
           + arena_size(accounts_of(replicas_max) * sizeof(struct storage_account))
           + arena_size(buckets_of(replicas_max) * sizeof(uint32_t));
}

struct storage_meter *storage_meter_make(struct arena *arena, uint32_t replicas_max)
{
    struct storage_meter *meter = arena_take(arena, sizeof *meter);
    if (!meter) return NULL;
    meter->accounts_count = accounts_of(replicas_max);
    meter->buckets_count = buckets_of(replicas_max);
    meter->accounts = arena_take(arena, meter->accounts_count * sizeof *meter->accounts);
    meter->buckets = arena_take(arena, meter->buckets_count * sizeof *meter->buckets);
    if (!meter->accounts || !meter->buckets) return NULL;
    for (uint32_t index = meter->accounts_count - 1; index > 0; index--) {
        meter->accounts[index].next = meter->accounts_free;
        meter->accounts_free = index;
    }
    return meter;
}

static uint32_t *account_bucket(struct store *store, uint64_t topic, uint64_t created_revision)
{
    struct storage_meter *meter = store->storage_meter;
    uint64_t mixed = (topic + created_revision) * UINT64_C(0x9E3779B97F4A7C15);
    return &meter->buckets[(mixed >> 33) & (meter->buckets_count - 1)];
}

static struct storage_account *account_open(struct store *store, uint64_t topic,
                                            uint64_t created_revision)
{
    struct storage_meter *meter = store->storage_meter;
    uint32_t *bucket = account_bucket(store, topic, created_revision);
    for (uint32_t index = *bucket; index != 0; index = meter->accounts[index].next) {
        struct storage_account *account = &meter->accounts[index];
        if (account->topic == topic && account->created_revision == created_revision)
            return account;
    }
    uint32_t index = meter->accounts_free;
    if (index == 0) {
        store->statistics.stored_unattributed++;
        return &meter->accounts[0];
    }
    struct storage_account *account = &meter->accounts[index];
    meter->accounts_free = account->next;
    *account = (struct storage_account){
        .topic = topic, .created_revision = created_revision, .next = *bucket};
    *bucket = index;
    return account;
}

static void account_close(struct store *store, struct storage_account *account)
{
    struct storage_meter *meter = store->storage_meter;
    uint32_t self = (uint32_t)(account - meter->accounts);
    if (self == 0) return;
    uint32_t *at = account_bucket(store, account->topic, account->created_revision);
    while (*at != self) at = &meter->accounts[*at].next;
    *at = account->next;
    account->topic = 0;
    account->next = meter->accounts_free;
    meter->accounts_free = self;
}

static struct storage_account *account_of(struct store *store, struct replica *replica)
{
    struct storage_meter *meter = store->storage_meter;
    if (replica->storage.account == 0) {
        struct storage_account *account =
            account_open(store, replica->topic, replica->created_revision);
        account->replicas++;
        replica->storage.account = (uint32_t)(account - meter->accounts) + 1;
    }
    return &meter->accounts[replica->storage.account - 1];
}

/* Up to now. */
static void account_settle(struct store *store, struct storage_account *account)
{
    uint64_t now_ms = store->now.monotonic_ns / 1000000;
    uint64_t passed_ms = now_ms - account->until_ms;
    uint64_t rest = account->bytes * (passed_ms % STORED_MS) + account->rest;
    account->byte_seconds += account->bytes * (passed_ms / STORED_MS) + rest / STORED_MS;
    account->rest = rest % STORED_MS;
    account->until_ms = now_ms;
}

static void account_change(struct store *store, struct storage_account *account, uint64_t more,
                           uint64_t less)
{
    struct storage_meter *meter = store->storage_meter;
    account_settle(store, account);
    if (account->bytes == 0 && account->reported == account->byte_seconds)
        account->reported_us = store_window_us(store);
    assert(account->bytes + more >= less);
    account->bytes = account->bytes + more - less;
    if (account->link.queue == &meter->changed) return;
    if (account->link.queue) queue_remove(&meter->quiet, &account->link);
    queue_push(&meter->changed, &account->link);
}

void storage_meter_add(struct store *store, struct replica *replica, uint64_t bytes)
{
    if (store->recovering || replica->storage.ended || bytes == 0) return;
    if (!replica->state.config.limits.metered) return;
    account_change(store, account_of(store, replica), bytes, 0);
    replica->storage.bytes += bytes;
}

void storage_meter_take(struct store *store, struct replica *replica, uint64_t bytes)
{
    if (store->recovering || replica->storage.account == 0 || bytes == 0) return;
    assert(replica->storage.bytes >= bytes);
    account_change(store, account_of(store, replica), 0, bytes);
    replica->storage.bytes -= bytes;
}

void storage_meter_recovered(struct store *store, struct replica *replica)
{
    uint64_t bytes = partition_bytes(&replica->state);
    if (!replica->state.config.limits.metered || bytes == 0) return;
    account_change(store, account_of(store, replica), bytes, 0);
    replica->storage.bytes = bytes;
}

void storage_meter_forget(struct store *store, struct replica *replica)
{
    /* What was prepared before is still executed: it is paid for by none. */
    replica->storage.ended = 1;
    if (replica->storage.account == 0) return;
    struct storage_account *account = account_of(store, replica);
    account_change(store, account, 0, replica->storage.bytes);
    account->replicas--;
    replica->storage.account = 0;
    replica->storage.bytes = 0;
}

void store_stored_turn(struct store *store)
{
    store->storage_meter->turn++;
}

/* The next to be reported; NULL = none in this turn. */
static struct storage_account *account_next(struct store *store, int all)
{
    struct storage_meter *meter = store->storage_meter;
    struct queue_link *link = meter->changed.head;
    if (!link) link = meter->quiet.head;
    struct storage_account *account = queue_element(link, struct storage_account, link);
    if (!account || account->link.queue == &meter->changed) return account;
    if (account->turn == meter->turn) return NULL;
    int old = store->now.monotonic_ns - account->reported_ns >= STORED_REPORTED_NS;
    return all || old ? account : NULL;
}

int store_stored_next(struct store *store, int all, int64_t from_us, int64_t end_us,
                      struct engine_counter *counter)
{
    struct storage_meter *meter = store->storage_meter;
    struct storage_account *account;
    while ((account = account_next(store, all)) != NULL) {
        account_settle(store, account);
        uint64_t delta = account->byte_seconds - account->reported;
        int64_t start_us = account->reported_us > from_us ? account->reported_us : from_us;
        *counter = (struct engine_counter){
            .topic = account->topic,
            .created_revision = account->created_revision,
            .meter = ENGINE_METER_STORED_BYTE_SECONDS,
            .delta = delta,
            .cumulative = account->byte_seconds & INT64_MAX,
            .window_start_us = start_us < end_us ? start_us : end_us - 1,
        };
        account->reported = account->byte_seconds;
        account->reported_ns = store->now.monotonic_ns;
        account->turn = meter->turn;
        if (delta > 0) account->reported_us = end_us;
        queue_remove((struct queue *)(uintptr_t)account->link.queue, &account->link);
        if (account->bytes > 0)
            queue_push(&meter->quiet, &account->link);
        else if (account->replicas == 0)
            account_close(store, account);
        if (delta > 0) return 1;
    }
    return 0;
}

uint64_t store_stored_bytes(struct store *store, uint64_t topic, uint64_t created_revision)
{
    struct storage_meter *meter = store->storage_meter;
    uint64_t bytes = 0;
    for (uint32_t index = *account_bucket(store, topic, created_revision); index != 0;
         index = meter->accounts[index].next) {
        const struct storage_account *account = &meter->accounts[index];
        if (account->topic == topic && account->created_revision == created_revision)
            bytes += account->bytes;
    }
    return bytes;
}

void storage_meter_invariants(const struct store *store)
{
    const struct storage_meter *meter = store->storage_meter;
    uint64_t bytes = 0;
    uint32_t cursor = 0;
    const struct replica *replica;
    while ((replica = registry_next(store, &cursor)) != NULL) {
        ergo(replica->storage.bytes > 0, replica->storage.account != 0);
        bytes += replica->storage.bytes;
    }
    for (uint32_t index = 0; index < meter->accounts_count; index++) {
        const struct storage_account *account = &meter->accounts[index];
        assert(account->bytes <= bytes);
        bytes -= account->bytes;
        assert(account->reported <= account->byte_seconds);
        assert(account->rest < STORED_MS);
    }
    assert(bytes == 0);
}
