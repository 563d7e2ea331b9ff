#include "catalog/grants.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>

#include "foundation/assert.h"

_Static_assert(GRANTS_SLOTS_COUNT >= 2 * GRANTS_COUNT_MAX, "probing stays short");
_Static_assert((GRANTS_SLOTS_COUNT & (GRANTS_SLOTS_COUNT - 1)) == 0, "a mask finds the slot");

size_t grants_slots_bytes(void)
{
    return sizeof(struct grant) * GRANTS_SLOTS_COUNT;
}

enum status grants_init(struct grants *grants, struct grant *slots, const char *admin_key_id,
                        const uint8_t *admin_sha256)
{
    assert(slots != NULL);
    *grants = (struct grants){.slots = slots, .revision = 1};
    grants->admin.principal = GRANT_PRINCIPAL_NODE_KEY;
    grants->admin.verbs = ENGINE_VERB_ADMIN | ENGINE_VERB_CONSUME;
    memcpy(grants->admin.key_id, admin_key_id, GRANT_KEY_ID_SIZE);
    memcpy(grants->admin.sha256, admin_sha256, sizeof grants->admin.sha256);
    /* Taken once: a digest per call then allocates nothing. */
    grants->digest = EVP_MD_fetch(NULL, "SHA256", NULL);
    grants->digest_context = EVP_MD_CTX_new();
    if (grants->digest == NULL || grants->digest_context == NULL) return STATUS_NO_MEMORY;
    return STATUS_OK;
}

void grants_deinit(struct grants *grants)
{
    EVP_MD_CTX_free(grants->digest_context);
    EVP_MD_free(grants->digest);
    *grants = (struct grants){0};
}

/* FNV-1a: the server chooses ids at random, so no client can target a slot. */
static uint32_t key_hash(const char *key_id)
{
    uint32_t hash = 2166136261u;
    for (uint32_t index = 0; index < GRANT_KEY_ID_SIZE; index++) {
        hash = (hash ^ (uint8_t)key_id[index]) * 16777619u;
    }
    return hash ^ hash >> 15;
}

static uint32_t slot_mask(uint32_t slot)
{
    return slot & (GRANTS_SLOTS_COUNT - 1);
}

/* The slot of a key, or the free one where it belongs. */
static uint32_t slot_find(const struct grants *grants, const char *key_id)
{
    uint32_t slot = slot_mask(key_hash(key_id));
    for (uint32_t probe = 0; probe < GRANTS_SLOTS_COUNT; probe++) {
        const struct grant *grant = &grants->slots[slot];
        if (grant->key_id[0] == 0) return slot;
        if (memcmp(grant->key_id, key_id, GRANT_KEY_ID_SIZE) == 0) return slot;
        slot = slot_mask(slot + 1);
    }
    unreachable();
}

const struct grant *grants_find(const struct grants *grants, const char *key_id)
{
    if (key_id[0] == 0) return NULL;
    const struct grant *grant = &grants->slots[slot_find(grants, key_id)];
    return grant->key_id[0] == 0 ? NULL : grant;
}

enum status grants_put(struct grants *grants, const struct engine_row_grant *row)
{
    if (row->key_id[0] == 0) return STATUS_INVALID;
    struct grant *grant = &grants->slots[slot_find(grants, row->key_id)];
    if (grant->key_id[0] == 0) {
        if (grants->count == GRANTS_COUNT_MAX) {
            grants->refused_full_count++;
            return STATUS_BUSY;
        }
        grants->count++;
    }
    memcpy(grant->key_id, row->key_id, GRANT_KEY_ID_SIZE);
    memcpy(grant->sha256, row->sha256, sizeof grant->sha256);
    grant->principal = row->principal;
    grant->organization = row->organization;
    grant->project = row->project;
    /* Only the node key administers, whatever a row says. */
    grant->verbs = row->verbs & (uint32_t)~ENGINE_VERB_ADMIN;
    grant->expires_at_us = row->expires_at_us;
    grants->revision++;
    return STATUS_OK;
}

void grants_remove(struct grants *grants, const char *key_id)
{
    if (key_id[0] == 0) return;
    uint32_t hole = slot_find(grants, key_id);
    if (grants->slots[hole].key_id[0] == 0) return;
    assert(grants->count > 0);
    grants->count--;
    grants->revision++;
    /* Close the hole by moving later ones of the run back: no tombstones, so lookups never slow
     * down. */
    uint32_t slot = slot_mask(hole + 1);
    while (grants->slots[slot].key_id[0] != 0) {
        uint32_t home = slot_mask(key_hash(grants->slots[slot].key_id));
        if (slot_mask(slot - home) >= slot_mask(slot - hole)) {
            grants->slots[hole] = grants->slots[slot];
            hole = slot;
        }
        slot = slot_mask(slot + 1);
    }
    grants->slots[hole] = (struct grant){0};
}

static int is_public_id(char letter)
{
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9');
}

static int is_base62(char letter)
{
    return is_public_id(letter) || (letter >= 'A' && letter <= 'Z');
}

static int run_of(const char *text, size_t length, int (*allowed)(char))
{
    for (size_t index = 0; index < length; index++) {
        if (!allowed(text[index])) return 0;
    }
    return 1;
}

int grant_token_parse(const char *value, size_t size, struct grant_token *token)
{
    static const char scheme[] = "Bearer ";
    static const char *const kinds[] = {"hr_user_", "hr_node_", "hr_run_"};
    size_t scheme_size = sizeof scheme - 1;
    if (size < scheme_size || strncasecmp(value, scheme, scheme_size) != 0) return 0;
    const char *at = value + scheme_size;
    size_t left = size - scheme_size;
    size_t prefix = 0;
    for (size_t index = 0; index < sizeof kinds / sizeof kinds[0]; index++) {
        size_t length = strlen(kinds[index]);
        if (left >= length && memcmp(at, kinds[index], length) == 0) prefix = length;
    }
    if (prefix == 0) return 0;
    at += prefix;
    left -= prefix;
    if (left != GRANT_PUBLIC_ID_LENGTH + 1 + GRANT_SECRET_LENGTH + 1 + GRANT_CHECK_LENGTH) return 0;
    const char *secret = at + GRANT_PUBLIC_ID_LENGTH + 1;
    const char *check = secret + GRANT_SECRET_LENGTH + 1;
    if (secret[-1] != '_' || check[-1] != '_') return 0;
    if (!run_of(at, GRANT_PUBLIC_ID_LENGTH, is_public_id)) return 0;
    if (!run_of(secret, GRANT_SECRET_LENGTH, is_base62)) return 0;
    if (!run_of(check, GRANT_CHECK_LENGTH, is_base62)) return 0;
    *token = (struct grant_token){.public_id = at, .secret = secret};
    return 1;
}

static int secret_digest(struct grants *grants, const char *secret, uint8_t digest[32])
{
    unsigned int written = 0;
    if (EVP_DigestInit_ex2(grants->digest_context, grants->digest, NULL) != 1) return 0;
    if (EVP_DigestUpdate(grants->digest_context, secret, GRANT_SECRET_LENGTH) != 1) return 0;
    if (EVP_DigestFinal_ex(grants->digest_context, digest, &written) != 1) return 0;
    return written == 32;
}

enum grant_answer grants_again(const struct grants *grants, const char *key_id,
                               const uint8_t *sha256, int64_t now_us, struct grant *grant)
{
    const struct grant *found = grants_find(grants, key_id);
    if (memcmp(key_id, grants->admin.key_id, GRANT_KEY_ID_SIZE) == 0) found = &grants->admin;
    if (found == NULL) return GRANT_ANSWER_INVALID;
    if (CRYPTO_memcmp(sha256, found->sha256, sizeof found->sha256) != 0)
        return GRANT_ANSWER_INVALID;
    if (found->expires_at_us != 0 && found->expires_at_us <= now_us) return GRANT_ANSWER_EXPIRED;
    *grant = *found;
    return GRANT_ANSWER_OK;
}

enum grant_answer grants_check(struct grants *grants, const char *value, size_t size,
                               int64_t now_us, struct grant *grant)
{
    if (size == 0) return GRANT_ANSWER_MISSING;
    struct grant_token token;
    if (!grant_token_parse(value, size, &token)) return GRANT_ANSWER_INVALID;
    char key_id[GRANT_KEY_ID_SIZE] = {0};
    memcpy(key_id, token.public_id, GRANT_PUBLIC_ID_LENGTH);

    const struct grant *found = grants_find(grants, key_id);
    if (memcmp(key_id, grants->admin.key_id, GRANT_KEY_ID_SIZE) == 0) found = &grants->admin;
    /* An unknown id takes as long as a wrong secret: the digest is always made and always compared.
     */
    static const struct grant absent = {.sha256 = {0}};
    uint8_t digest[32];
    if (!secret_digest(grants, token.secret, digest)) return GRANT_ANSWER_INVALID;
    const struct grant *compared = found != NULL ? found : &absent;
    int equal = CRYPTO_memcmp(digest, compared->sha256, sizeof digest) == 0;
    if (found == NULL || !equal) return GRANT_ANSWER_INVALID;
    if (found->expires_at_us != 0 && found->expires_at_us <= now_us) return GRANT_ANSWER_EXPIRED;
    *grant = *found;
    return GRANT_ANSWER_OK;
}
