// SPDX-License-Identifier: Apache-2.0
/* Frames to another machine in C, over UCX (docs/network.md).
 *
 *     c_network send HOST:PORT [KEY-FILE]       c_network receive HOST:PORT [KEY-FILE]
 *
 * Without arguments, both in two processes of this machine. */
#include <isthmus_ucx.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { frame_bytes = 640 * 480, frames = 20 };

static void check(isthmus_code code, isthmus_error* error) {
    if (code == ISTHMUS_OK) return;
    fprintf(stderr, "%s: %s\n", isthmus_code_name(code), isthmus_error_text(error));
    isthmus_error_free(error);
    exit(1);
}

// show: reader
/* A reader of a ring in the ring's own process. */
static isthmus_shared_reader* reader_of(isthmus_device* device, isthmus_shared_ring* ring) {
    isthmus_error* error = NULL;
    isthmus_descriptor* descriptor = NULL;
    check(isthmus_shared_ring_admit(ring, &descriptor, &error), error);
    size_t size = 0, count = 0;
    const void* const bytes = isthmus_descriptor_bytes(descriptor, &size);
    const int* const fds = isthmus_descriptor_fds(descriptor, &count);
    int copies[8]; /* the reader takes its own */
    for (size_t at = 0; at < count && at < 8; ++at) copies[at] = dup(fds[at]);
    isthmus_shared_reader* reader = NULL;
    check(isthmus_shared_reader_open(device, bytes, size, copies, count, &reader, &error), error);
    isthmus_descriptor_free(descriptor);
    return reader;
}
// end

/* Fills a frame, if the ring has room for one. */
static int produce(isthmus_shared_ring* ring, int value) {
    isthmus_error* error = NULL;
    isthmus_frame* frame = NULL;
    const isthmus_code code = isthmus_shared_ring_begin(ring, ISTHMUS_WAIT_NEVER, &frame, &error);
    if (code == ISTHMUS_NOT_READY || code == ISTHMUS_TIMED_OUT) {
        isthmus_error_free(error);
        return 0;
    }
    check(code, error);
    isthmus_host_view* view = NULL;
    void* data = NULL;
    check(isthmus_buffer_open_on_host(isthmus_frame_buffer(frame), 0, ISTHMUS_REST, ISTHMUS_WRITE, ISTHMUS_WAIT_DEFAULT,
                                      &view, &data, &error),
          error);
    memset(data, value, frame_bytes);
    isthmus_host_view_free(view);
    check(isthmus_frame_publish(frame, ISTHMUS_WAIT_DEFAULT, &error), error);
    return 1;
}

static void send_to_one(isthmus_ucx_listener* listener, const isthmus_ucx_options* options) {
    isthmus_error* error = NULL;
    isthmus_runtime* runtime = NULL;
    check(isthmus_runtime_open(NULL, &runtime, &error), error);
    isthmus_device* const device = isthmus_runtime_default_device(runtime);
    // show: send
    isthmus_shared_ring_options ring_options = ISTHMUS_SHARED_RING_OPTIONS_INIT;
    ring_options.policy = 1; /* wait for slow readers, for reader_deadline_ns */
    ring_options.reader_deadline_ns = UINT64_C(30000000000);
    isthmus_shared_ring* ring = NULL;
    check(isthmus_shared_ring_create(device, frame_bytes, &ring_options, &ring, &error), error);
    isthmus_shared_reader* reader = reader_of(device, ring);

    int fd = -1;
    check(isthmus_ucx_listener_accept(listener, INT64_C(20000000000), &fd, &error), error);
    isthmus_ucx_connection* connection = NULL;
    check(isthmus_ucx_connection_greet(fd, options, &connection, &error), error);
    isthmus_ucx_sender* sender = NULL;
    check(isthmus_ucx_sender_create(connection, reader, "grey", 4, &sender, &error), error);

    for (int made = 0; made < frames;) {
        made += produce(ring, made);
        check(isthmus_ucx_sender_step(sender, 1000000, &error), error); /* sends, for 1 ms at most */
    }
    isthmus_shared_ring_close(ring);
    isthmus_code code = ISTHMUS_OK;
    while (code == ISTHMUS_OK) code = isthmus_ucx_sender_step(sender, ISTHMUS_WAIT_DEFAULT, &error);
    if (code != ISTHMUS_ENDED) check(code, error); /* ended: the receiver has all frames */
    isthmus_error_free(error);
    // end
    isthmus_ucx_sender_free(sender);
    isthmus_ucx_connection_free(connection);
    isthmus_shared_reader_free(reader);
    isthmus_shared_ring_free(ring);
    isthmus_runtime_free(runtime);
}

/* Prints the frames that are there. */
static int consume(isthmus_shared_reader* reader) {
    int seen = 0;
    for (;;) {
        isthmus_error* error = NULL;
        isthmus_frame* frame = NULL;
        const isthmus_code code = isthmus_shared_reader_next(reader, ISTHMUS_WAIT_NEVER, &frame, &error);
        if (code == ISTHMUS_NOT_READY || code == ISTHMUS_ENDED) {
            isthmus_error_free(error);
            return seen;
        }
        check(code, error);
        isthmus_host_view* view = NULL;
        void* data = NULL;
        check(isthmus_buffer_open_on_host(isthmus_frame_buffer(frame), 0, ISTHMUS_REST, ISTHMUS_READ,
                                          ISTHMUS_WAIT_DEFAULT, &view, &data, &error),
              error);
        const unsigned char* const pixels = (const unsigned char*)data;
        printf("frame %d: %d … %d\n", (int)isthmus_frame_number(frame), pixels[0], pixels[frame_bytes - 1]);
        isthmus_host_view_free(view);
        check(isthmus_frame_finish(frame, ISTHMUS_WAIT_DEFAULT, &error), error);
        ++seen;
    }
}

static int receive_all(const char* address, const isthmus_ucx_options* options) {
    isthmus_error* error = NULL;
    // show: receive
    isthmus_ucx_connection* connection = NULL;
    check(isthmus_ucx_connection_connect(address, options, &connection, &error), error);
    isthmus_ucx_receiver* receiver = NULL;
    check(isthmus_ucx_receiver_create(connection, &receiver, &error), error);
    isthmus_ucx_offer offer = ISTHMUS_UCX_OFFER_INIT;
    check(isthmus_ucx_receiver_offer(receiver, &offer, &error), error);
    if (offer.frame_bytes != frame_bytes) return 1; /* what the other machine says is checked */

    isthmus_runtime* runtime = NULL;
    check(isthmus_runtime_open(NULL, &runtime, &error), error);
    isthmus_device* const device = isthmus_runtime_default_device(runtime);
    isthmus_shared_ring_options ring_options = ISTHMUS_SHARED_RING_OPTIONS_INIT;
    ring_options.slots = offer.slots;
    ring_options.policy = offer.policy;
    ring_options.reader_deadline_ns = UINT64_C(30000000000);
    isthmus_shared_ring* ring = NULL;
    check(isthmus_shared_ring_create(device, offer.frame_bytes, &ring_options, &ring, &error), error);
    isthmus_shared_reader* reader = reader_of(device, ring);
    check(isthmus_ucx_receiver_begin(receiver, ring, &error), error);

    int seen = 0;
    isthmus_code code = ISTHMUS_OK;
    while (code == ISTHMUS_OK) {
        code = isthmus_ucx_receiver_step(receiver, 1000000, &error); /* fills the ring, for 1 ms at most */
        seen += consume(reader);
    }
    if (code != ISTHMUS_ENDED) check(code, error); /* ended: the sender closed its ring */
    isthmus_error_free(error);
    // end
    isthmus_ucx_receiver_free(receiver);
    isthmus_ucx_connection_free(connection);
    isthmus_shared_ring_close(ring);
    isthmus_shared_reader_free(reader);
    isthmus_shared_ring_free(ring);
    isthmus_runtime_free(runtime);
    return seen == frames ? 0 : 1;
}

int main(int argc, char** argv) {
    setenv("UCX_LOG_LEVEL", "fatal", 0); /* UCX reads its environment when it is first used */
    setenv("UCX_TCP_RX_SEG_SIZE", "256k", 0);
    isthmus_error* error = NULL;
    isthmus_ucx_options options = ISTHMUS_UCX_OPTIONS_INIT;
    options.step_timeout_ns = options.silence_ns = UINT64_C(30000000000); /* the other end may be busy */
    if (argc > 3) options.key_file = argv[3];
    if (argc > 2 && strcmp(argv[1], "receive") == 0) return receive_all(argv[2], &options);
    const int sends = argc > 2 && strcmp(argv[1], "send") == 0;
    if (argc > 1 && !sends) return 2;
    isthmus_ucx_listener* listener = NULL;
    check(isthmus_ucx_listener_create(sends ? argv[2] : "127.0.0.1:0", &options, &listener, &error), error);
    char address[32];
    snprintf(address, sizeof address, "127.0.0.1:%d", (int)isthmus_ucx_listener_port(listener));
    const pid_t other = sends ? 0 : fork(); /* before the runtime is opened */
    if (other < 0) return 1;
    int result = 0;
    if (other == 0) {
        send_to_one(listener, &options);
    } else {
        result = receive_all(address, &options);
    }
    isthmus_ucx_listener_free(listener);
    int status = 0;
    if (other > 0 && (waitpid(other, &status, 0) != other || status != 0)) result = 1;
    return result;
}
