/* store/accounting/storage_meter.c: what is stored for how long: byte-seconds of each topic in
 * this shard.
 *
 *     byte_seconds += bytes * (now - until), whenever bytes change and when a window is told
 *
 * An account is one incarnation of a topic; its partitions here add to it what their segments hold.
 * Time is monotonic, in milliseconds; what is less than a byte-second is carried on. Accounts that
 * changed wait in one queue, those that only grow older in another, oldest told first: telling
 * looks at none for which there is nothing to say. A topic pays until its row goes; a partition
 * that is damaged, or of a system topic, is nobody's. When no account is free the bytes go to that
 * of topic 0, which nobody pays. Refuses to know windows: host/counters.c does. */
#include "store/state.h"

enum { STORED_MS = 1000 };

/* What does not change is told so often: a crash loses that much of it. */
#define STORED_TOLD_NS UINT64_C(60000000000)

uint32_t store_accounts_max(uint32_t replicas_max)
{
    /* One for nobody; and of those that were deleted, what the next window tells. */
    return 1 + 2 * replicas_max;
}

void store_stored_init(struct store *store)
{
    uint32_t count = store_accounts_max(store->replicas_max);
    for (uint32_t index = count - 1; index > 0; index--) {
        store->accounts[index].next = store->accounts_free;
        store->accounts_free = index;
    }
}

static uint32_t *account_bucket(struct store *store, uint64_t topic, uint64_t created_revision)
{
    uint64_t mixed = (topic + created_revision) * UINT64_C(0x9E3779B97F4A7C15);
    return &store->account_buckets[(mixed >> 33) & (store->replica_buckets_count - 1)];
}

static struct store_account *account_open(struct store *store, uint64_t topic,
                                          uint64_t created_revision)
{
    uint32_t *bucket = account_bucket(store, topic, created_revision);
    for (uint32_t index = *bucket; index != 0; index = store->accounts[index].next) {
        struct store_account *account = &store->accounts[index];
        if (account->topic == topic && account->created_revision == created_revision)
            return account;
    }
    uint32_t index = store->accounts_free;
    if (index == 0) {
        store->statistics.stored_unattributed++;
        return &store->accounts[0];
    }
    struct store_account *account = &store->accounts[index];
    store->accounts_free = account->next;
    *account = (struct store_account){
        .topic = topic, .created_revision = created_revision, .next = *bucket};
    *bucket = index;
    return account;
}

static void account_close(struct store *store, struct store_account *account)
{
    uint32_t self = (uint32_t)(account - store->accounts);
    if (self == 0) return;
    uint32_t *at = account_bucket(store, account->topic, account->created_revision);
    while (*at != self) at = &store->accounts[*at].next;
    *at = account->next;
    account->topic = 0;
    account->next = store->accounts_free;
    store->accounts_free = self;
}

static struct store_account *account_of(struct store *store, struct replica *replica)
{
    if (replica->account == 0) {
        struct store_account *account =
            account_open(store, replica->topic, replica->created_revision);
        account->replicas++;
        replica->account = (uint32_t)(account - store->accounts) + 1;
    }
    return &store->accounts[replica->account - 1];
}

/* Up to now. */
static void account_settle(struct store *store, struct store_account *account)
{
    uint64_t now_ms = store->now.monotonic_ns / 1000000;
    uint64_t passed_ms = now_ms - account->until_ms;
    uint64_t rest = account->bytes * (passed_ms % STORED_MS) + account->rest;
    account->byte_seconds += account->bytes * (passed_ms / STORED_MS) + rest / STORED_MS;
    account->rest = rest % STORED_MS;
    account->until_ms = now_ms;
}

static void account_change(struct store *store, struct store_account *account, uint64_t more,
                           uint64_t less)
{
    account_settle(store, account);
    if (account->bytes == 0 && account->told == account->byte_seconds)
        account->told_us = store_window_us(store);
    assert(account->bytes + more >= less);
    account->bytes = account->bytes + more - less;
    if (account->link.queue == &store->accounts_changed) return;
    if (account->link.queue) queue_remove(&store->accounts_quiet, &account->link);
    queue_push(&store->accounts_changed, &account->link);
}

void store_stored_add(struct store *store, struct replica *replica, uint64_t bytes)
{
    if (store->recovering || !replica->metered || bytes == 0) return;
    account_change(store, account_of(store, replica), bytes, 0);
    replica->stored_bytes += bytes;
}

void store_stored_take(struct store *store, struct replica *replica, uint64_t bytes)
{
    if (store->recovering || replica->account == 0 || bytes == 0) return;
    assert(replica->stored_bytes >= bytes);
    account_change(store, account_of(store, replica), 0, bytes);
    replica->stored_bytes -= bytes;
}

void store_stored_recovered(struct store *store, struct replica *replica)
{
    uint64_t bytes = partition_bytes(&replica->state);
    if (!replica->metered || bytes == 0) return;
    account_change(store, account_of(store, replica), bytes, 0);
    replica->stored_bytes = bytes;
}

void store_stored_forget(struct store *store, struct replica *replica)
{
    if (replica->account == 0) return;
    struct store_account *account = account_of(store, replica);
    account_change(store, account, 0, replica->stored_bytes);
    account->replicas--;
    replica->account = 0;
    replica->stored_bytes = 0;
}

void store_stored_turn(struct store *store)
{
    store->stored_turn++;
}

/* The next to be told; NULL = none in this turn. */
static struct store_account *account_next(struct store *store, int all)
{
    struct queue_link *link = store->accounts_changed.head;
    if (!link) link = store->accounts_quiet.head;
    struct store_account *account = queue_element(link, struct store_account, link);
    if (!account || account->link.queue == &store->accounts_changed) return account;
    if (account->turn == store->stored_turn) return NULL;
    int old = store->now.monotonic_ns - account->told_ns >= STORED_TOLD_NS;
    return all || old ? account : NULL;
}

int store_stored_next(struct store *store, int all, int64_t from_us, int64_t end_us,
                      struct engine_counter *counter)
{
    struct store_account *account;
    while ((account = account_next(store, all)) != NULL) {
        account_settle(store, account);
        uint64_t delta = account->byte_seconds - account->told;
        int64_t start_us = account->told_us > from_us ? account->told_us : from_us;
        *counter = (struct engine_counter){
            .topic = account->topic,
            .created_revision = account->created_revision,
            .meter = ENGINE_METER_STORED_BYTE_SECONDS,
            .delta = delta,
            .cumulative = account->byte_seconds & INT64_MAX,
            .window_start_us = start_us < end_us ? start_us : end_us - 1,
        };
        account->told = account->byte_seconds;
        account->told_ns = store->now.monotonic_ns;
        account->turn = store->stored_turn;
        if (delta > 0) account->told_us = end_us;
        queue_remove((struct queue *)(uintptr_t)account->link.queue, &account->link);
        if (account->bytes > 0)
            queue_push(&store->accounts_quiet, &account->link);
        else if (account->replicas == 0)
            account_close(store, account);
        if (delta > 0) return 1;
    }
    return 0;
}

uint64_t store_stored_bytes(struct store *store, uint64_t topic, uint64_t created_revision)
{
    uint64_t bytes = 0;
    for (uint32_t index = *account_bucket(store, topic, created_revision); index != 0;
         index = store->accounts[index].next) {
        const struct store_account *account = &store->accounts[index];
        if (account->topic == topic && account->created_revision == created_revision)
            bytes += account->bytes;
    }
    return bytes;
}
