// SPDX-License-Identifier: Apache-2.0
/* Two processes meet through a channel: a ring of frames goes over it, and an answer comes back. */
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

enum { is_ring = 7, is_answer = 8 };

/* A process that stands still may be given up, in the greeting or behind it; then both ends begin again. */
static int given_up(isthmus_code code) {
    return code == ISTHMUS_PEER_LOST || code == ISTHMUS_TIMED_OUT;
}

static void read_from(const char* directory) {
    isthmus_channel* channel = NULL;
    isthmus_message* message = NULL;
    for (int turn = 0; message == NULL && turn < 400; ++turn) {
        isthmus_code code = isthmus_channel_connect(directory, &channel, NULL);
        if (code == ISTHMUS_OK) code = isthmus_channel_receive(channel, INT64_C(20000000000), &message, NULL);
        CHECK(code == ISTHMUS_OK || given_up(code));
        if (code == ISTHMUS_OK) continue;
        isthmus_channel_free(channel);
        channel = NULL;
        usleep(50000);
    }
    CHECK(channel != NULL && isthmus_channel_fd(channel) >= 0 &&
          isthmus_channel_peer_pid(channel) == (int32_t)getppid());
    CHECK(isthmus_message_kind(message) == is_ring);
    size_t size = 0, count = 0;
    const void* const bytes = isthmus_message_bytes(message, &size);
    const int* const fds = isthmus_message_fds(message, &count);
    CHECK(count > 0);
    isthmus_runtime* runtime = open_runtime();
    isthmus_shared_reader* reader = NULL;
    isthmus_message_take_fds(message);
    WORKS(isthmus_shared_reader_open(isthmus_runtime_cpu(runtime), bytes, size, fds, count, &reader, ERR));
    isthmus_message_free(message);
    isthmus_frame* frame = NULL;
    WORKS(isthmus_channel_send(channel, is_answer, "ready", 5, NULL, 0, ERR));
    WORKS(isthmus_shared_reader_next(reader, INT64_C(20000000000), &frame, ERR));
    check_bytes(isthmus_frame_buffer(frame), 0, 4096, 33);
    WORKS(isthmus_frame_finish(frame, ISTHMUS_WAIT_DEFAULT, ERR));
    isthmus_shared_reader_free(reader);
    isthmus_channel_free(channel);
    isthmus_runtime_free(runtime);
}

/* keeps Y1 */
static void publish_from(const char* directory) {
    isthmus_listener* listener = NULL;
    isthmus_listener* second = NULL;
    WORKS(isthmus_listener_create(directory, &listener, ERR));
    REFUSED(ISTHMUS_IN_USE, "", isthmus_listener_create(directory, &second, ERR));
    CHECK(isthmus_listener_fd(listener) >= 0);
    isthmus_channel* channel = NULL;
    isthmus_code accepted = ISTHMUS_TIMED_OUT;
    for (int turn = 0; given_up(accepted) && turn < 20; ++turn) {
        accepted = isthmus_listener_accept(listener, INT64_C(20000000000), &channel, NULL);
    }
    CHECK(accepted == ISTHMUS_OK);
    isthmus_message* message = NULL;
    REFUSED(ISTHMUS_NOT_READY, "no message", isthmus_channel_receive(channel, ISTHMUS_WAIT_NEVER, &message, ERR));
    REFUSED(ISTHMUS_TIMED_OUT, "no message", isthmus_channel_receive(channel, 1000000, &message, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "wait_ns", isthmus_channel_receive(channel, -2, &message, ERR));
    static const char large[100000];
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "", isthmus_channel_send(channel, 1, large, sizeof large, NULL, 0, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "fd_count", isthmus_channel_send(channel, 1, NULL, 0, NULL, 65, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "`fds` is NULL", isthmus_channel_send(channel, 1, NULL, 0, NULL, 1, ERR));

    isthmus_runtime* runtime = open_runtime();
    isthmus_shared_ring* ring = NULL;
    WORKS(isthmus_shared_ring_create(isthmus_runtime_cpu(runtime), 4096, NULL, &ring, ERR));
    isthmus_descriptor* descriptor = NULL;
    WORKS(isthmus_shared_ring_admit(ring, &descriptor, ERR));
    size_t size = 0, count = 0;
    const void* const bytes = isthmus_descriptor_bytes(descriptor, &size);
    const int* const fds = isthmus_descriptor_fds(descriptor, &count);
    WORKS(isthmus_channel_send(channel, is_ring, bytes, size, fds, count, ERR));
    isthmus_descriptor_free(descriptor);
    WORKS(isthmus_channel_receive(channel, INT64_C(20000000000), &message, ERR));
    CHECK(isthmus_message_kind(message) == is_answer);
    CHECK(memcmp(isthmus_message_bytes(message, &size), "ready", 5) == 0 && size == 5);
    (void)isthmus_message_fds(message, &count);
    CHECK(count == 0);
    isthmus_message_free(message);
    isthmus_frame* frame = NULL;
    WORKS(isthmus_shared_ring_begin(ring, ISTHMUS_WAIT_DEFAULT, &frame, ERR));
    write_bytes(isthmus_frame_buffer(frame), 33);
    WORKS(isthmus_frame_publish(frame, ISTHMUS_WAIT_DEFAULT, ERR));
    REFUSED(ISTHMUS_PEER_LOST, "", isthmus_channel_receive(channel, INT64_C(20000000000), &message, ERR));
    isthmus_channel_free(channel);
    isthmus_listener_free(listener);
    isthmus_shared_ring_free(ring);
    isthmus_runtime_free(runtime);
}

int main(void) {
    char directory[] = "/tmp/isthmus-c-channel-XXXXXX";
    CHECK(mkdtemp(directory) != NULL);
    isthmus_channel* channel = NULL;
    REFUSED(ISTHMUS_PEER_LOST, "", isthmus_channel_connect(directory, &channel, ERR));
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        read_from(directory);
        exit(0);
    }
    publish_from(directory);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(rmdir(directory) == 0);
    return 0;
}
