/* fuzz_proto.c: every protobuf decoder of the hot methods. Asserts that what they lend lies within
 * their input and that they are total: an answer for any bytes. */
#include "foundation/assert.h"
#include "fuzz_input.h"
#include "wire/proto.h"

static void inside(const uint8_t *bytes, size_t size, struct proto_bytes found)
{
    if (found.size == 0) return;
    assert(found.data >= bytes);
    assert(found.data <= bytes + size);
    assert(found.size <= (size_t)(bytes + size - found.data));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct proto_produce_request produce;
    enum status shape = proto_check(bytes, size);
    enum status status = proto_decode_produce(bytes, size, &produce);
    if (status == STATUS_OK) {
        assert(shape == STATUS_OK);
        inside(bytes, size, produce.batch);
    }
    struct proto_fetch_request fetch;
    ergo(proto_decode_fetch(bytes, size, &fetch) == STATUS_OK, shape == STATUS_OK);
    struct proto_commit_request commit;
    ergo(proto_decode_commit(bytes, size, &commit) == STATUS_OK, shape == STATUS_OK);
    status = proto_decode_fetch_offsets(bytes, size, &commit);
    if (status == STATUS_OK) {
        assert(shape == STATUS_OK);
        assert(commit.generation == 0 && commit.offset == 0);
    }
    inside(bytes, size, proto_status_message(bytes, size));
    return 0;
}
