/* load.c: a gRPC load generator on nghttp2: one connection, one thread, a window of unary calls or
 * one stream.
 *
 *     load PORT PATH TOKEN MESSAGE_FILE IN_FLIGHT SECONDS unary|stream
 *     load PORT PATH TOKEN MESSAGE_FILE BYTES SECONDS drain
 *
 * Sends the message's bytes again and again, IN_FLIGHT unanswered at a time; or once, and takes
 * BYTES of what is pushed for it. Prints one line of JSON: calls (answers), errors, bytes of
 * answers, seconds, answers per second, and for unary calls the latency that half and 99 of 100
 * stayed below. Knows nothing of protobuf: whoever starts it makes the message. */
#include <nghttp2/nghttp2.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { READ_SIZE = 1048576, WINDOW = 16777216, MESSAGE_SIZE_MAX = 8388608 };

static nghttp2_session *session;
static nghttp2_nv headers[8];
static size_t headers_count;
static uint8_t *framed; /* prefix and message */
static size_t framed_size;
static uint64_t answered, failed, in_flight_target;
static uint64_t received_bytes;
static int streaming, draining, ending;
static int32_t stream_id;
static uint64_t stream_unsent; /* messages that may still be sent */
static size_t stream_at;       /* bytes of the current one already sent */
static uint8_t reply_prefix[5];
static size_t reply_prefix_size, reply_left;

/* Latencies in us: 32 steps an octave, so that a quantile is within 3 %. */
enum { OCTAVE_STEPS = 32, LATENCIES_COUNT = 40 * OCTAVE_STEPS };
static uint64_t latencies[LATENCIES_COUNT];

struct call {
    size_t at; /* bytes of the message already sent */
    double started_s;
};

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static ssize_t read_unary(nghttp2_session *from, int32_t id, uint8_t *buffer, size_t length,
                          uint32_t *flags, nghttp2_data_source *source, void *user)
{
    (void)from, (void)id, (void)user;
    struct call *call = source->ptr;
    size_t left = framed_size - call->at;
    size_t taken = left < length ? left : length;
    memcpy(buffer, framed + call->at, taken);
    call->at += taken;
    if (call->at == framed_size) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)taken;
}

static ssize_t read_stream(nghttp2_session *from, int32_t id, uint8_t *buffer, size_t length,
                           uint32_t *flags, nghttp2_data_source *source, void *user)
{
    (void)from, (void)id, (void)source, (void)user;
    size_t written = 0;
    while (stream_unsent > 0 && written < length) {
        size_t left = framed_size - stream_at;
        size_t taken = left < length - written ? left : length - written;
        memcpy(buffer + written, framed + stream_at, taken);
        written += taken;
        stream_at += taken;
        if (stream_at == framed_size) {
            stream_at = 0;
            stream_unsent--;
        }
    }
    if (ending && stream_at == 0) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        return (ssize_t)written;
    }
    return written > 0 ? (ssize_t)written : NGHTTP2_ERR_DEFERRED;
}

static void call_start(void)
{
    nghttp2_data_provider provider = {.read_callback = streaming ? read_stream : read_unary};
    struct call *call = NULL;
    if (!streaming) {
        call = calloc(1, sizeof *call);
        if (call == NULL) exit(3);
        call->started_s = now_s();
        provider.source.ptr = call;
    }
    stream_id = nghttp2_submit_request(session, NULL, headers, headers_count, &provider, call);
    if (stream_id < 0) exit(3);
}

static int on_header(nghttp2_session *from, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *user)
{
    (void)from, (void)frame, (void)flags, (void)user;
    if (name_size == 11 && memcmp(name, "grpc-status", 11) == 0
        && !(value_size == 1 && value[0] == '0'))
        failed++;
    if (name_size == 12 && memcmp(name, "grpc-message", 12) == 0 && failed == 1) {
        fprintf(stderr, "%.*s\n", (int)value_size, (const char *)value);
    }
    return 0;
}

static int on_data(nghttp2_session *from, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t size, void *user)
{
    (void)from, (void)flags, (void)id, (void)user;
    received_bytes += size;
    if (!streaming) return 0;
    for (size_t at = 0; at < size;) {
        if (reply_left > 0) {
            size_t taken = reply_left < size - at ? reply_left : size - at;
            reply_left -= taken;
            at += taken;
        } else {
            reply_prefix[reply_prefix_size++] = data[at++];
            if (reply_prefix_size < 5) continue;
            reply_prefix_size = 0;
            reply_left = (size_t)reply_prefix[1] << 24 | (size_t)reply_prefix[2] << 16
                         | (size_t)reply_prefix[3] << 8 | reply_prefix[4];
            answered++;
            if (!ending && !draining) stream_unsent++;
        }
    }
    if (draining && received_bytes >= in_flight_target) ending = 2;
    if (stream_unsent > 0 || ending) nghttp2_session_resume_data(session, stream_id);
    return 0;
}

/* Below 32 us every microsecond is a step of its own; above, each octave has 32. */
static size_t latency_step(uint64_t us)
{
    if (us < OCTAVE_STEPS) return us;
    unsigned shift = 63u - (unsigned)__builtin_clzll(us) - 5u;
    size_t step = (size_t)(shift + 1) * OCTAVE_STEPS + (size_t)((us >> shift) - OCTAVE_STEPS);
    return step < LATENCIES_COUNT ? step : LATENCIES_COUNT - 1;
}

static double latency_quantile(double part)
{
    uint64_t wanted = (uint64_t)((double)answered * part);
    uint64_t seen = 0;
    for (size_t step = 0; step < LATENCIES_COUNT; step++) {
        seen += latencies[step];
        if (seen <= wanted) continue;
        if (step < OCTAVE_STEPS) return (double)step;
        unsigned shift = (unsigned)(step / OCTAVE_STEPS) - 1u;
        return (double)((step % OCTAVE_STEPS + OCTAVE_STEPS) << shift);
    }
    return 0;
}

static int on_close(nghttp2_session *from, int32_t id, uint32_t code, void *user)
{
    (void)code, (void)user;
    if (streaming) {
        ending = 2;
        return 0;
    }
    answered++;
    struct call *call = nghttp2_session_get_stream_user_data(from, id);
    latencies[latency_step((uint64_t)((now_s() - call->started_s) * 1e6))]++;
    free(call);
    if (!ending) call_start();
    return 0;
}

static int connect_to(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) exit(4);
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static void header_add(const char *name, const char *value)
{
    headers[headers_count++] = (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value,
                                            strlen(name), strlen(value), 0};
}

static void message_read(const char *path)
{
    framed = malloc(MESSAGE_SIZE_MAX + 5);
    FILE *file = fopen(path, "rb");
    if (file == NULL || framed == NULL) exit(5);
    size_t size = fread(framed + 5, 1, MESSAGE_SIZE_MAX, file);
    fclose(file);
    framed[0] = 0;
    for (int index = 0; index < 4; index++) framed[1 + index] = (uint8_t)(size >> (24 - 8 * index));
    framed_size = size + 5;
}

static void session_open(void)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_client_new(&session, callbacks, NULL);
    nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW},
                                         {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, 131072}};
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, 2);
    nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, WINDOW);
}

static void pump(int fd, uint8_t *buffer)
{
    static uint8_t output[READ_SIZE];
    size_t used = 0;
    for (;;) {
        const uint8_t *data;
        ssize_t size = nghttp2_session_mem_send(session, &data);
        if (size < 0) exit(6);
        if (size == 0 || used + (size_t)size > sizeof output) {
            for (size_t at = 0; at < used;) {
                ssize_t sent = write(fd, output + at, used - at);
                if (sent <= 0) exit(7);
                at += (size_t)sent;
            }
            used = 0;
        }
        if (size == 0) break;
        memcpy(output + used, data, (size_t)size);
        used += (size_t)size;
    }
    ssize_t size = read(fd, buffer, READ_SIZE);
    if (size <= 0 || nghttp2_session_mem_recv(session, buffer, (size_t)size) < 0) exit(8);
}

int main(int count, char **arguments)
{
    if (count != 8) return 2;
    char authorization[128];
    snprintf(authorization, sizeof authorization, "Bearer %s", arguments[3]);
    header_add(":method", "POST");
    header_add(":scheme", "http");
    header_add(":path", arguments[2]);
    header_add(":authority", "localhost");
    header_add("te", "trailers");
    header_add("content-type", "application/grpc");
    header_add("authorization", authorization);
    message_read(arguments[4]);
    in_flight_target = strtoull(arguments[5], NULL, 10);
    double seconds = strtod(arguments[6], NULL);
    draining = strcmp(arguments[7], "drain") == 0;
    streaming = draining || strcmp(arguments[7], "stream") == 0;
    session_open();
    int fd = connect_to((uint16_t)strtoul(arguments[1], NULL, 10));
    uint8_t *buffer = malloc(READ_SIZE);
    if (streaming) {
        stream_unsent = draining ? 1 : in_flight_target;
        call_start();
    }
    for (uint64_t index = 0; !streaming && index < in_flight_target; index++) call_start();
    double started = now_s();
    while (now_s() - started < seconds && ending != 2) pump(fd, buffer);
    double elapsed = now_s() - started;
    printf("{\"calls\": %llu, \"errors\": %llu, \"bytes\": %llu, \"seconds\": %.3f, "
           "\"per_second\": %.0f",
           (unsigned long long)answered, (unsigned long long)failed,
           (unsigned long long)received_bytes, elapsed, (double)answered / elapsed);
    if (!streaming)
        printf(", \"p50_us\": %.0f, \"p99_us\": %.0f", latency_quantile(0.5),
               latency_quantile(0.99));
    printf("}\n");
    return 0;
}
