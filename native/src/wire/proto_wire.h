/* wire/proto_wire.h: one field of a protobuf message after the other. Owns what is malformed on the
 * wire; what a field means is said by wire/proto.c and wire/proto_messages.c. */
#ifndef WIRE_PROTO_WIRE_H
#define WIRE_PROTO_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "wire/proto.h"

enum proto_wire { WIRE_VARINT = 0, WIRE_I64 = 1, WIRE_BYTES = 2, WIRE_I32 = 5 };

struct proto_cursor {
    const uint8_t *at;
    const uint8_t *end;
};

struct proto_field {
    uint64_t number;
    uint32_t wire; /* enum proto_wire */
    uint64_t value;
    struct proto_bytes bytes; /* borrowed */
};

/* 1 = a field, 0 = the end, -1 = malformed. */
int proto_next(struct proto_cursor *cursor, struct proto_field *field);

#endif
