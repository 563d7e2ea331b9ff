/* fuzz_http2.h: the frames of a client, made by hand: right ones and wrong ones. */
#ifndef FUZZ_HTTP2_H
#define FUZZ_HTTP2_H

#include <stddef.h>
#include <stdint.h>

enum { FUZZ_OUTPUT_SIZE = 1 << 16 };

enum fuzz_frame {
    FUZZ_DATA = 0,
    FUZZ_HEADERS = 1,
    FUZZ_PRIORITY = 2,
    FUZZ_RESET = 3,
    FUZZ_SETTINGS = 4,
    FUZZ_PING = 6,
    FUZZ_GOAWAY = 7,
    FUZZ_WINDOW = 8,
    FUZZ_CONTINUATION = 9,
};

enum fuzz_flag { FUZZ_END_STREAM = 1, FUZZ_END_HEADERS = 4 };

/* What is to be sent; what finds no room any more is left out. */
struct fuzz_output {
    size_t size;
    uint8_t bytes[FUZZ_OUTPUT_SIZE];
};

void fuzz_put_preface(struct fuzz_output *output);
void fuzz_put_frame(struct fuzz_output *output, uint8_t type, uint8_t flags, uint32_t stream,
                    const uint8_t *body, size_t size);
/* The header block of a call; `token` and `timeout` may be NULL. Returns its size. */
size_t fuzz_header_block(uint8_t *block, size_t room, const char *path, const char *token,
                         const char *timeout);
/* A gRPC message in one DATA frame. */
void fuzz_put_message(struct fuzz_output *output, uint32_t stream, const uint8_t *message,
                      size_t size, uint8_t flags);
/* Requests for partition `partition` of the node's topic. Returns the size. */
size_t fuzz_produce_request(uint8_t *target, size_t room, uint32_t partition, uint32_t records);
size_t fuzz_fetch_request(uint8_t *target, size_t room, uint32_t partition, uint64_t offset,
                          uint32_t wait_ms);

#endif
