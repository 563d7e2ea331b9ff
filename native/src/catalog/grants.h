/* catalog/grants.h: who may do what: the compiled table of keys, by the public id inside the token.
 *
 * Pure but for SHA-256: rows come from metadata in op order, every shard has the same table. The
 * secret is never kept: only its SHA-256, compared in constant time. `revision` grows with every
 * change; a caller that caches an answer compares it. The node key of the configuration stands
 * outside the table, so that a node without metadata can be administered. */
#ifndef CATALOG_GRANTS_H
#define CATALOG_GRANTS_H

#include <stddef.h>
#include <stdint.h>

#include "engine.h"
#include "foundation/status.h"

enum {
    GRANTS_COUNT_MAX = 16384,
    GRANTS_SLOTS_COUNT = 32768, /* twice: open addressing stays short */
    GRANT_KEY_ID_SIZE = 16,
    GRANT_PUBLIC_ID_LENGTH = 10,
    GRANT_SECRET_LENGTH = 43,
    GRANT_CHECK_LENGTH = 6,
    GRANT_TOKEN_LENGTH_MAX = 80,
    GRANT_PRINCIPAL_NODE_KEY = 1,
};

enum grant_answer {
    GRANT_ANSWER_OK = 0,
    GRANT_ANSWER_MISSING = 1,
    GRANT_ANSWER_INVALID = 2,
    GRANT_ANSWER_EXPIRED = 3,
};

struct grant {
    char key_id[16]; /* GRANT_KEY_ID_SIZE; zero-padded; first byte 0 = free slot */
    uint8_t sha256[32];
    uint32_t principal;
    uint32_t organization;
    uint32_t project; /* 0 = every project */
    uint32_t verbs;
    int64_t expires_at_us; /* 0 = never */
};

struct grants {
    struct grant *slots; /* GRANTS_SLOTS_COUNT */
    uint32_t count;
    uint32_t revision;
    uint64_t refused_full_count;
    struct grant admin;
    void *digest_context;
    void *digest;
};

/* A token's parts, borrowed from the header's value. */
struct grant_token {
    const char *public_id;
    const char *secret;
};

size_t grants_slots_bytes(void);
/* `slots` is zeroed memory. STATUS_NO_MEMORY if the library gives no digest. */
enum status grants_init(struct grants *grants, struct grant *slots, const char *admin_key_id,
                        const uint8_t *admin_sha256);
void grants_deinit(struct grants *grants);

/* STATUS_BUSY if the table is full (counted): the row is not taken. */
enum status grants_put(struct grants *grants, const struct engine_row_grant *row);
void grants_remove(struct grants *grants, const char *key_id);
const struct grant *grants_find(const struct grants *grants, const char *key_id);

/* The shape only: `Bearer hr_<kind>_<10>_<43>_<6>`. 1 = well-formed. */
int grant_token_parse(const char *value, size_t size, struct grant_token *token);

/* Is a key that was verified still good? `sha256` is of the secret that was shown then. OK copies
 * the grant as it is now. */
enum grant_answer grants_again(const struct grants *grants, const char *key_id,
                               const uint8_t *sha256, int64_t now_us, struct grant *grant);

/* Verify an authorization header's value (size 0 = none sent). OK copies the grant, admin's
 * included. */
enum grant_answer grants_check(struct grants *grants, const char *value, size_t size,
                               int64_t now_us, struct grant *grant);

#endif
