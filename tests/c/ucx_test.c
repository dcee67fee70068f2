// SPDX-License-Identifier: Apache-2.0
/* Frames over UCX between two processes, through the interface in C. Compiled as C99 and as C++20. */
#include "check.h"

#include <isthmus_ucx.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)
enum { frames = 12 };

static uint8_t one_key[ISTHMUS_UCX_KEY_BYTES], another_key[ISTHMUS_UCX_KEY_BYTES];

/* With patience for slow machines. */
static isthmus_ucx_options with_key(const uint8_t* key) {
    isthmus_ucx_options options = ISTHMUS_UCX_OPTIONS_INIT;
    options.key = key;
    options.step_timeout_ns = 20000000000;
    options.silence_ns = 20000000000;
    return options;
}

static isthmus_ucx_listener* listening(const isthmus_ucx_options* options, char address[64]) {
    isthmus_ucx_listener* listener = NULL;
    WORKS(isthmus_ucx_listener_create("127.0.0.1:0", options, &listener, ERR));
    CHECK(isthmus_ucx_listener_port(listener) != 0 && isthmus_ucx_listener_fd(listener) >= 0);
    snprintf(address, 64, "127.0.0.1:%d", (int)isthmus_ucx_listener_port(listener));
    return listener;
}

/* A reader of this process. */
static isthmus_shared_reader* reader_of(isthmus_device* device, isthmus_shared_ring* ring) {
    isthmus_descriptor* descriptor = NULL;
    isthmus_shared_reader* reader = NULL;
    WORKS(isthmus_shared_ring_admit(ring, &descriptor, ERR));
    size_t size = 0, count = 0;
    const void* const bytes = isthmus_descriptor_bytes(descriptor, &size);
    const int* const fds = isthmus_descriptor_fds(descriptor, &count);
    int copies[8];
    CHECK(count <= 8);
    for (size_t at = 0; at < count; ++at) copies[at] = dup(fds[at]);
    WORKS(isthmus_shared_reader_open(device, bytes, size, copies, count, &reader, ERR));
    isthmus_descriptor_free(descriptor);
    return reader;
}

static isthmus_shared_ring* ring_of(isthmus_device* device, uint64_t frame_bytes, uint32_t policy) {
    isthmus_shared_ring_options options = ISTHMUS_SHARED_RING_OPTIONS_INIT;
    options.policy = policy;
    options.reader_deadline_ns = 20000000000;
    isthmus_shared_ring* ring = NULL;
    WORKS(isthmus_shared_ring_create(device, frame_bytes, &options, &ring, ERR));
    return ring;
}

static isthmus_runtime* cpu_runtime(void) {
    isthmus_runtime_options options = ISTHMUS_RUNTIME_OPTIONS_INIT;
    options.use_cuda = 0;
    isthmus_runtime* runtime = NULL;
    WORKS(isthmus_runtime_open(&options, &runtime, ERR));
    return runtime;
}

/* The sending process. `dies`: it is killed behind its first frame. */
static void send_frames(isthmus_ucx_listener* listener, const isthmus_ucx_options* options, uint64_t frame_bytes,
                        int dies) {
    isthmus_runtime* runtime = cpu_runtime();
    isthmus_device* const device = isthmus_runtime_cpu(runtime);
    isthmus_shared_ring* ring = ring_of(device, frame_bytes, 1);
    isthmus_shared_reader* reader = reader_of(device, ring);
    int fd = -1;
    WORKS(isthmus_ucx_listener_accept(listener, 20 * SECOND, &fd, ERR));
    isthmus_ucx_connection* connection = NULL;
    WORKS(isthmus_ucx_connection_greet(fd, options, &connection, ERR));
    isthmus_ucx_sender* sender = NULL;
    WORKS(isthmus_ucx_sender_create(connection, reader, "grey", 4, &sender, ERR));
    REFUSED(ISTHMUS_INVALID_HANDLE, "taken before",
            isthmus_ucx_sender_create(connection, reader, NULL, 0, &sender, ERR));
    isthmus_ucx_connection_free(connection);
    isthmus_shared_reader_free(reader);
    for (int number = 0; number < frames; ++number) {
        isthmus_frame* frame = NULL;
        while (isthmus_shared_ring_begin(ring, ISTHMUS_WAIT_NEVER, &frame, NULL) != ISTHMUS_OK) {
            WORKS(isthmus_ucx_sender_step(sender, SECOND / 1000, ERR));
        }
        write_bytes(isthmus_frame_buffer(frame), number + 1);
        WORKS(isthmus_frame_publish(frame, ISTHMUS_WAIT_DEFAULT, ERR));
        WORKS(isthmus_ucx_sender_step(sender, ISTHMUS_WAIT_NEVER, ERR));
        if (dies) {
            while (isthmus_ucx_sender_step(sender, ISTHMUS_WAIT_DEFAULT, NULL) == ISTHMUS_OK) {
            }
        }
    }
    isthmus_shared_ring_close(ring);
    isthmus_code code = ISTHMUS_OK;
    while (code == ISTHMUS_OK) code = isthmus_ucx_sender_step(sender, ISTHMUS_WAIT_DEFAULT, NULL);
    CHECK(code == ISTHMUS_ENDED);
    isthmus_ucx_sent_counts counts = ISTHMUS_UCX_SENT_COUNTS_INIT;
    WORKS(isthmus_ucx_sender_counts(sender, &counts, ERR));
    CHECK(counts.frames == frames && counts.overtaken == 0 && counts.missed == 0);
    isthmus_ucx_sender_free(sender);
    isthmus_shared_ring_free(ring);
    isthmus_runtime_free(runtime);
    isthmus_ucx_listener_free(listener);
    exit(0);
}

static isthmus_ucx_receiver* receiver_at(const char* address, const isthmus_ucx_options* options) {
    isthmus_ucx_connection* connection = NULL;
    WORKS(isthmus_ucx_connection_connect(address, options, &connection, ERR));
    isthmus_ucx_receiver* receiver = NULL;
    WORKS(isthmus_ucx_receiver_create(connection, &receiver, ERR));
    isthmus_ucx_connection_free(connection);
    return receiver;
}

/* keeps Y1, N1 */
static void frames_reach_the_other_process(uint64_t frame_bytes) {
    const isthmus_ucx_options options = with_key(one_key);
    char address[64];
    isthmus_ucx_listener* listener = listening(&options, address);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) send_frames(listener, &options, frame_bytes, 0);
    isthmus_ucx_listener_free(listener);
    isthmus_ucx_receiver* receiver = receiver_at(address, &options);
    isthmus_ucx_offer offer = ISTHMUS_UCX_OFFER_INIT;
    WORKS(isthmus_ucx_receiver_offer(receiver, &offer, ERR));
    CHECK(offer.frame_bytes == frame_bytes && offer.slots == 4 && offer.policy == 1);
    CHECK(offer.note_bytes == 4 && memcmp(offer.note, "grey", 4) == 0);
    isthmus_runtime* runtime = open_runtime();
    isthmus_device* const device = isthmus_runtime_default_device(runtime);
    isthmus_shared_ring* other = ring_of(device, frame_bytes + 1, offer.policy);
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "frames of", isthmus_ucx_receiver_begin(receiver, other, ERR));
    isthmus_shared_ring_free(other);
    isthmus_shared_ring* ring = ring_of(device, frame_bytes, offer.policy);
    isthmus_shared_reader* reader = reader_of(device, ring);
    WORKS(isthmus_ucx_receiver_step(receiver, ISTHMUS_WAIT_NEVER, ERR)); /* also before it has a ring */
    WORKS(isthmus_ucx_receiver_begin(receiver, ring, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "begun before", isthmus_ucx_receiver_begin(receiver, ring, ERR));
    isthmus_code code = ISTHMUS_OK;
    int seen = 0;
    while (seen < frames || code == ISTHMUS_OK) {
        if (code == ISTHMUS_OK) code = isthmus_ucx_receiver_step(receiver, SECOND / 1000, NULL);
        isthmus_frame* frame = NULL;
        const isthmus_code next = isthmus_shared_reader_next(reader, ISTHMUS_WAIT_NEVER, &frame, NULL);
        if (next != ISTHMUS_OK) {
            CHECK(next == ISTHMUS_NOT_READY);
            CHECK(code == ISTHMUS_OK || seen == frames);
            continue;
        }
        CHECK(isthmus_frame_number(frame) == (uint64_t)seen && isthmus_frame_missed(frame) == 0);
        check_bytes(isthmus_frame_buffer(frame), 0, frame_bytes, ++seen);
        WORKS(isthmus_frame_finish(frame, ISTHMUS_WAIT_DEFAULT, ERR));
    }
    CHECK(code == ISTHMUS_ENDED && seen == frames);
    CHECK(isthmus_ucx_receiver_producer_is_gone(receiver) == 0);
    isthmus_ucx_received_counts counts = ISTHMUS_UCX_RECEIVED_COUNTS_INIT;
    WORKS(isthmus_ucx_receiver_counts(receiver, &counts, ERR));
    CHECK(counts.frames == frames && counts.discarded == 0 && counts.missed == 0);
    isthmus_shared_ring_free(ring); /* the receiver keeps it */
    isthmus_runtime_free(runtime);
    isthmus_ucx_receiver_free(receiver);
    isthmus_shared_reader_free(reader);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* keeps N2: into buffers of the program, device memory where there is a device. */
static void frames_reach_buffers(void) {
    const isthmus_ucx_options options = with_key(NULL);
    char address[64];
    isthmus_ucx_listener* listener = listening(&options, address);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) send_frames(listener, &options, 100000, 0);
    isthmus_ucx_listener_free(listener);
    isthmus_ucx_receiver* receiver = receiver_at(address, &options);
    isthmus_runtime* runtime = open_runtime();
    isthmus_device* const device = isthmus_runtime_default_device(runtime);
    const int is_cpu = isthmus_device_is_cpu(device);
    isthmus_stream* stream = isthmus_device_stream(device);
    isthmus_ucx_frame* frame = NULL;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "no buffers", isthmus_ucx_receiver_next(receiver, 0, &frame, ERR));
    isthmus_buffer* buffers[3];
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "do not fit", isthmus_ucx_receiver_begin_into(receiver, stream, buffers, 0, ERR));
    for (int at = 0; at < 3; ++at) {
        WORKS(isthmus_device_allocate(device, 100000, is_cpu ? ISTHMUS_KIND_HOST : ISTHMUS_KIND_DEVICE, &buffers[at],
                                      ERR));
    }
    isthmus_buffer* const twice[] = {buffers[0], buffers[1], buffers[0]};
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "twice", isthmus_ucx_receiver_begin_into(receiver, stream, twice, 3, ERR));
    WORKS(isthmus_ucx_receiver_begin_into(receiver, stream, buffers, 3, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "begun before",
            isthmus_ucx_receiver_begin_into(receiver, stream, buffers, 3, ERR));
    CHECK(strcmp(isthmus_ucx_path_name(isthmus_ucx_receiver_path(receiver)),
                 is_cpu ? "in place: UCX writes into the buffers" : "copied through pinned host memory") == 0);
    REFUSED(ISTHMUS_NOT_READY, "no frame", isthmus_ucx_receiver_next(receiver, ISTHMUS_WAIT_NEVER, &frame, ERR));
    for (int at = 0; at < 3; ++at) isthmus_buffer_free(buffers[at]); /* the receiver keeps them */
    unsigned char* const pixels = (unsigned char*)malloc(100000);
    for (int seen = 0; seen < frames; ++seen) {
        WORKS(isthmus_ucx_receiver_next(receiver, INT64_MAX, &frame, ERR));
        CHECK(isthmus_ucx_frame_number(frame) == (uint64_t)seen && isthmus_ucx_frame_missed(frame) == 0);
        isthmus_buffer* const buffer = isthmus_ucx_frame_buffer(frame);
        CHECK(buffer == buffers[0] || buffer == buffers[1] || buffer == buffers[2]);
        WORKS(isthmus_stream_copy_to_host(stream, pixels, buffer, 0, 100000, ERR));
        WORKS(isthmus_stream_synchronize(stream, ISTHMUS_WAIT_DEFAULT, ERR));
        for (int at = 0; at < 100000; ++at) CHECK(pixels[at] == seen + 1);
        isthmus_ucx_frame_free(frame);
    }
    free(pixels);
    REFUSED(ISTHMUS_ENDED, "", isthmus_ucx_receiver_next(receiver, 20 * SECOND, &frame, ERR));
    isthmus_ucx_receiver_free(receiver);
    isthmus_stream_free(stream);
    isthmus_runtime_free(runtime);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* keeps N3 */
static void a_dead_producer_is_told(void) {
    const isthmus_ucx_options options = with_key(NULL);
    char address[64];
    isthmus_ucx_listener* listener = listening(&options, address);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) send_frames(listener, &options, 100000, 1);
    isthmus_ucx_listener_free(listener);
    isthmus_ucx_receiver* receiver = receiver_at(address, &options);
    isthmus_runtime* runtime = cpu_runtime();
    isthmus_device* const device = isthmus_runtime_cpu(runtime);
    isthmus_shared_ring* ring = ring_of(device, 100000, 1);
    isthmus_shared_reader* reader = reader_of(device, ring);
    WORKS(isthmus_ucx_receiver_begin(receiver, ring, ERR));
    while (isthmus_shared_ring_published(ring) == 0) {
        WORKS(isthmus_ucx_receiver_step(receiver, ISTHMUS_WAIT_DEFAULT, ERR));
    }
    CHECK(kill(child, SIGKILL) == 0);
    isthmus_code code = ISTHMUS_OK;
    while (code == ISTHMUS_OK) code = isthmus_ucx_receiver_step(receiver, ISTHMUS_WAIT_DEFAULT, NULL);
    CHECK(code == ISTHMUS_PEER_LOST);
    REFUSED(ISTHMUS_PEER_LOST, "", isthmus_ucx_receiver_step(receiver, ISTHMUS_WAIT_DEFAULT, ERR)); /* for good */
    isthmus_frame* frame = NULL;
    WORKS(isthmus_shared_reader_next(reader, SECOND, &frame, ERR)); /* what was whole stays */
    check_bytes(isthmus_frame_buffer(frame), 0, 100000, 1);
    WORKS(isthmus_frame_finish(frame, ISTHMUS_WAIT_DEFAULT, ERR));
    isthmus_ucx_receiver_free(receiver);
    isthmus_shared_reader_free(reader);
    isthmus_shared_ring_free(ring);
    isthmus_runtime_free(runtime);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
}

/* A process that greets with `options` and ends with the code. */
static void meet(const isthmus_ucx_options* sends, const isthmus_ucx_options* receives, isthmus_code sender,
                 isthmus_code receiver, const char* words) {
    char address[64];
    isthmus_ucx_listener* listener = listening(sends, address);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        int fd = -1;
        isthmus_ucx_connection* connection = NULL;
        WORKS(isthmus_ucx_listener_accept(listener, 20 * SECOND, &fd, ERR));
        _exit((int)isthmus_ucx_connection_greet(fd, sends, &connection, NULL));
    }
    isthmus_ucx_connection* connection = NULL;
    REFUSED(receiver, words, isthmus_ucx_connection_connect(address, receives, &connection, ERR));
    CHECK(connection == NULL);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == sender);
    isthmus_ucx_listener_free(listener);
}

/* keeps N4 */
static void another_key_is_refused(void) {
    const isthmus_ucx_options open = with_key(NULL), one = with_key(one_key), another = with_key(another_key);
    meet(&one, &another, ISTHMUS_PEER_LOST, ISTHMUS_NOT_PERMITTED, "another key");
    meet(&one, &open, ISTHMUS_NOT_PERMITTED, ISTHMUS_NOT_PERMITTED, "key");
    meet(&open, &one, ISTHMUS_NOT_PERMITTED, ISTHMUS_NOT_PERMITTED, "key");
    isthmus_ucx_listener* listener = NULL;
    isthmus_ucx_connection* connection = NULL;
    REFUSED(ISTHMUS_NOT_PERMITTED, "needs a key", isthmus_ucx_listener_create("0.0.0.0:0", &open, &listener, ERR));
    REFUSED(ISTHMUS_NOT_PERMITTED, "needs a key",
            isthmus_ucx_connection_connect("192.0.2.1:7", &open, &connection, ERR));
    isthmus_ucx_options file = ISTHMUS_UCX_OPTIONS_INIT;
    file.key_file = "/nonexistent/key";
    REFUSED(ISTHMUS_SYSTEM_ERROR, "key", isthmus_ucx_connection_connect("127.0.0.1:7", &file, &connection, ERR));
    file.key = one_key;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "options.key",
            isthmus_ucx_connection_connect("127.0.0.1:7", &file, &connection, ERR));
}

/* keeps N3: the first 48 bytes of a greeting, as of version 999. */
static void another_version_is_refused(void) {
    static const unsigned char hello[48] = {'i', 's', 't', 'h', 'm', 'u', 'c', 'x', 0xe7, 0x03};
    const isthmus_ucx_options options = with_key(NULL);
    char address[64];
    isthmus_ucx_listener* listener = listening(&options, address);
    struct sockaddr_in to;
    memset(&to, 0, sizeof to);
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(isthmus_ucx_listener_port(listener));
    const int line = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(line, (const struct sockaddr*)&to, sizeof to) == 0);
    CHECK(send(line, hello, sizeof hello, MSG_NOSIGNAL) == (ssize_t)sizeof hello);
    int fd = -1;
    WORKS(isthmus_ucx_listener_accept(listener, ISTHMUS_WAIT_DEFAULT, &fd, ERR));
    isthmus_ucx_connection* connection = NULL;
    REFUSED(ISTHMUS_UNSUPPORTED, "999", isthmus_ucx_connection_greet(fd, &options, &connection, ERR));
    CHECK(close(fd) != 0); /* taken in every case */
    close(line);

    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        char heard[48];
        WORKS(isthmus_ucx_listener_accept(listener, 20 * SECOND, &fd, ERR));
        struct timeval most = {5, 0};
        CHECK(fcntl(fd, F_SETFL, 0) == 0); /* it did not block */
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
        (void)recv(fd, heard, sizeof heard, MSG_WAITALL);
        (void)send(fd, hello, sizeof hello, MSG_NOSIGNAL);
        _exit(0);
    }
    REFUSED(ISTHMUS_UNSUPPORTED, "999", isthmus_ucx_connection_connect(address, &options, &connection, ERR));
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    isthmus_ucx_listener_free(listener);
}

static int32_t at_once(void* context) {
    ++*(int*)context;
    return 1;
}

/* keeps N3 */
static void waits_have_an_end(void) {
    isthmus_ucx_options options = with_key(NULL);
    options.step_timeout_ns = 100000000;
    char address[64];
    isthmus_ucx_listener* listener = listening(&options, address);
    int fd = -1;
    REFUSED(ISTHMUS_NOT_READY, "no receiver", isthmus_ucx_listener_accept(listener, ISTHMUS_WAIT_NEVER, &fd, ERR));
    REFUSED(ISTHMUS_TIMED_OUT, "no receiver", isthmus_ucx_listener_accept(listener, SECOND / 1000, &fd, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "wait_ns", isthmus_ucx_listener_accept(listener, -2, &fd, ERR));
    isthmus_ucx_connection* connection = NULL;
    /* The system has the connection, and nobody greets. */
    REFUSED(ISTHMUS_TIMED_OUT, "greet", isthmus_ucx_connection_connect(address, &options, &connection, ERR));
    int asked = 0;
    options.stopped = at_once;
    options.stopped_context = &asked;
    options.step_timeout_ns = 20000000000;
    REFUSED(ISTHMUS_ENDED, "stop", isthmus_ucx_connection_connect(address, &options, &connection, ERR));
    CHECK(asked > 0);
    options.step_timeout_ns = UINT64_MAX;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "step_timeout_ns",
            isthmus_ucx_connection_connect(address, &options, &connection, ERR));
    isthmus_ucx_listener_free(listener);
    options = with_key(NULL);
    REFUSED(ISTHMUS_PEER_LOST, "", isthmus_ucx_connection_connect(address, &options, &connection, ERR));
}

/* keeps N3: an offer beyond the limit of this end. */
static void large_offers_are_refused(void) {
    isthmus_ucx_options options = with_key(NULL);
    char address[64];
    isthmus_ucx_listener* listener = listening(&options, address);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        isthmus_runtime* runtime = cpu_runtime();
        isthmus_device* const device = isthmus_runtime_cpu(runtime);
        isthmus_shared_ring* ring = ring_of(device, 4096, 0);
        isthmus_shared_reader* reader = reader_of(device, ring);
        int fd = -1;
        isthmus_ucx_connection* connection = NULL;
        isthmus_ucx_sender* sender = NULL;
        WORKS(isthmus_ucx_listener_accept(listener, 20 * SECOND, &fd, ERR));
        WORKS(isthmus_ucx_connection_greet(fd, &options, &connection, ERR));
        _exit((int)isthmus_ucx_sender_create(connection, reader, NULL, 0, &sender, NULL));
    }
    options.most_bytes = 4 * 4096 - 1;
    isthmus_ucx_connection* connection = NULL;
    isthmus_ucx_receiver* receiver = NULL;
    WORKS(isthmus_ucx_connection_connect(address, &options, &connection, ERR));
    REFUSED(ISTHMUS_OUT_OF_MEMORY, "4 slots of 4096", isthmus_ucx_receiver_create(connection, &receiver, ERR));
    isthmus_ucx_connection_free(connection);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == ISTHMUS_PEER_LOST);
    isthmus_ucx_listener_free(listener);
}

/* keeps Y1 */
static void null_is_refused(void) {
    isthmus_ucx_listener* listener = NULL;
    isthmus_ucx_connection* connection = NULL;
    isthmus_ucx_sender* sender = NULL;
    isthmus_ucx_receiver* receiver = NULL;
    isthmus_ucx_offer offer = ISTHMUS_UCX_OFFER_INIT;
    isthmus_ucx_sent_counts sent = ISTHMUS_UCX_SENT_COUNTS_INIT;
    isthmus_ucx_received_counts received = ISTHMUS_UCX_RECEIVED_COUNTS_INIT;
    int fd = -1;
    const isthmus_code bad = ISTHMUS_INVALID_ARGUMENT;
    REFUSED(bad, "`address` is NULL", isthmus_ucx_listener_create(NULL, NULL, &listener, ERR));
    REFUSED(bad, "`listener` is NULL", isthmus_ucx_listener_create("127.0.0.1:0", NULL, NULL, ERR));
    REFUSED(bad, "no address", isthmus_ucx_listener_create("127.0.0.1", NULL, &listener, ERR));
    isthmus_ucx_options options = ISTHMUS_UCX_OPTIONS_INIT;
    options.size = 8;
    REFUSED(bad, "`size`", isthmus_ucx_listener_create("127.0.0.1:0", &options, &listener, ERR));
    REFUSED(bad, "`listener` is NULL", isthmus_ucx_listener_accept(NULL, 0, &fd, ERR));
    WORKS(isthmus_ucx_listener_create("127.0.0.1:0", NULL, &listener, ERR));
    REFUSED(bad, "`fd` is NULL", isthmus_ucx_listener_accept(listener, 0, NULL, ERR));
    REFUSED(bad, "`connection` is NULL", isthmus_ucx_connection_greet(-1, NULL, NULL, ERR));
    REFUSED(bad, "`fd`", isthmus_ucx_connection_greet(-1, NULL, &connection, ERR));
    REFUSED(bad, "`address` is NULL", isthmus_ucx_connection_connect(NULL, NULL, &connection, ERR));
    REFUSED(bad, "`connection` is NULL", isthmus_ucx_connection_connect("127.0.0.1:1", NULL, NULL, ERR));
    REFUSED(bad, "`connection` is NULL", isthmus_ucx_sender_create(NULL, NULL, NULL, 0, &sender, ERR));
    REFUSED(bad, "`sender` is NULL", isthmus_ucx_sender_step(NULL, 0, ERR));
    REFUSED(bad, "`sender` is NULL", isthmus_ucx_sender_counts(NULL, &sent, ERR));
    REFUSED(bad, "`connection` is NULL", isthmus_ucx_receiver_create(NULL, &receiver, ERR));
    REFUSED(bad, "`receiver` is NULL", isthmus_ucx_receiver_offer(NULL, &offer, ERR));
    REFUSED(bad, "`receiver` is NULL", isthmus_ucx_receiver_begin(NULL, NULL, ERR));
    REFUSED(bad, "`receiver` is NULL", isthmus_ucx_receiver_step(NULL, 0, ERR));
    REFUSED(bad, "`receiver` is NULL", isthmus_ucx_receiver_counts(NULL, &received, ERR));
    isthmus_ucx_frame* frame = NULL;
    REFUSED(bad, "`receiver` is NULL", isthmus_ucx_receiver_begin_into(NULL, NULL, NULL, 0, ERR));
    REFUSED(bad, "`receiver` is NULL", isthmus_ucx_receiver_next(NULL, 0, &frame, ERR));
    CHECK(isthmus_ucx_frame_buffer(NULL) == NULL && isthmus_ucx_frame_number(NULL) == 0);
    CHECK(isthmus_ucx_frame_missed(NULL) == 0 && isthmus_ucx_receiver_path(NULL) == ISTHMUS_UCX_PATH_IN_PLACE);
    CHECK(strcmp(isthmus_ucx_path_name(ISTHMUS_UCX_PATH_UCX_CUDA), "device memory: UCX with CUDA") == 0);
    CHECK(strcmp(isthmus_ucx_path_name(3), "unknown") == 0 && strcmp(isthmus_ucx_path_name(-1), "unknown") == 0);
    isthmus_ucx_frame_free(NULL);
    CHECK(isthmus_ucx_receiver_producer_is_gone(NULL) == 0);
    CHECK(isthmus_ucx_listener_port(NULL) == 0 && isthmus_ucx_listener_fd(NULL) == -1);
    isthmus_ucx_listener_free(listener);
    isthmus_ucx_listener_free(NULL);
    isthmus_ucx_connection_free(NULL);
    isthmus_ucx_sender_free(NULL);
    isthmus_ucx_receiver_free(NULL);
    /* Errors of this library are errors of libisthmus-c. */
    isthmus_error* error = NULL;
    CHECK(isthmus_ucx_listener_create("x:y", NULL, &listener, &error) == bad && isthmus_error_code(error) == bad);
    isthmus_error_free(error);
}

static void small_frames(void) {
    frames_reach_the_other_process(4096);
}
static void large_frames(void) {
    frames_reach_the_other_process(3 << 20);
}

int main(void) {
    memset(one_key, 1, sizeof one_key);
    memset(another_key, 2, sizeof another_key);
    /* Each in a process of its own: none forks behind a runtime. */
    static void (*const cases[])(void) = {
        null_is_refused,          waits_have_an_end, another_key_is_refused, another_version_is_refused,
        large_offers_are_refused, small_frames,      large_frames,           frames_reach_buffers,
        a_dead_producer_is_told};
    for (size_t at = 0; at < sizeof cases / sizeof cases[0]; ++at) {
        const pid_t one = fork();
        CHECK(one >= 0);
        if (one == 0) {
            cases[at]();
            exit(0);
        }
        int status = -1;
        CHECK(waitpid(one, &status, 0) == one && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    return 0;
}
