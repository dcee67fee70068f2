// SPDX-License-Identifier: Apache-2.0
/* Frames from one process to another: the program forks before it opens a runtime, and sends the descriptor over a
 * socket. */
#include "check.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { frame_bytes = 4096, frames = 20 };

static void send_descriptor(int socket, const isthmus_descriptor* descriptor) {
    size_t size = 0, count = 0;
    const void* const bytes = isthmus_descriptor_bytes(descriptor, &size);
    const int* const fds = isthmus_descriptor_fds(descriptor, &count);
    CHECK(bytes != NULL && size > 0 && fds != NULL && count > 0 && count <= 8);
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(8 * sizeof(int))];
    } control;
    memset(&control, 0, sizeof control);
    struct iovec part = {(void*)(uintptr_t)bytes, size};
    struct msghdr message;
    memset(&message, 0, sizeof message);
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = &control;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    struct cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(head), fds, count * sizeof(int));
    CHECK(sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)size);
}

static size_t receive_descriptor(int socket, unsigned char* bytes, size_t most, int* fds, size_t* count) {
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(8 * sizeof(int))];
    } control;
    struct iovec part = {bytes, most};
    struct msghdr message;
    memset(&message, 0, sizeof message);
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
    const ssize_t size = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    CHECK(size > 0);
    struct cmsghdr* const head = CMSG_FIRSTHDR(&message);
    CHECK(head != NULL && head->cmsg_type == SCM_RIGHTS);
    *count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(fds, CMSG_DATA(head), *count * sizeof(int));
    return (size_t)size;
}

/* keeps Y1 */
static void read_frames(int socket) {
    isthmus_runtime* runtime = open_runtime();
    isthmus_device* const device = isthmus_runtime_default_device(runtime);
    unsigned char bytes[512];
    int fds[8];
    size_t count = 0;
    const size_t size = receive_descriptor(socket, bytes, sizeof bytes, fds, &count);
    isthmus_shared_reader_options options = ISTHMUS_SHARED_READER_OPTIONS_INIT;
    options.frame_bytes = frame_bytes;
    isthmus_shared_reader* reader = NULL;
    WORKS(isthmus_shared_reader_open_with(device, bytes, size, fds, count, &options, &reader, ERR));
    CHECK(isthmus_shared_reader_frame_bytes(reader) == frame_bytes);
    isthmus_frame* frame = NULL;
    for (int number = 0; number < frames; ++number) {
        WORKS(isthmus_shared_reader_next(reader, INT64_C(20000000000), &frame, ERR));
        CHECK(isthmus_frame_number(frame) == (uint64_t)number && isthmus_frame_missed(frame) == 0);
        CHECK(isthmus_buffer_bytes(isthmus_frame_buffer(frame)) == frame_bytes);
        check_bytes(isthmus_frame_buffer(frame), 0, frame_bytes, number + 1);
        REFUSED(ISTHMUS_INVALID_ARGUMENT, "is a reader's", isthmus_frame_publish(frame, ISTHMUS_WAIT_DEFAULT, ERR));
        if (number % 2 == 0) {
            WORKS(isthmus_frame_finish(frame, ISTHMUS_WAIT_DEFAULT, ERR));
        } else {
            isthmus_frame_free(frame); /* finishes it */
        }
    }
    REFUSED(ISTHMUS_ENDED, "", isthmus_shared_reader_next(reader, INT64_C(20000000000), &frame, ERR));
    isthmus_runtime_free(runtime);
    isthmus_shared_reader_free(reader);
}

static void publish_frames(int socket) {
    isthmus_runtime* runtime = open_runtime();
    isthmus_device* const device = isthmus_runtime_default_device(runtime);
    isthmus_shared_ring_options options = ISTHMUS_SHARED_RING_OPTIONS_INIT;
    options.policy = 1; /* wait: no frame is lost */
    options.reader_deadline_ns = UINT64_C(20000000000);
    options.rights = 1; /* for GPUs whose driver registers no memory for reading */
    options.element_bytes = 4;
    isthmus_shared_ring* ring = NULL;
    isthmus_stream* stream = isthmus_device_stream(device);
    WORKS(isthmus_shared_ring_create(device, frame_bytes, &options, &ring, ERR));
    isthmus_descriptor* descriptor = NULL;
    WORKS(isthmus_shared_ring_admit(ring, &descriptor, ERR));
    send_descriptor(socket, descriptor);
    isthmus_descriptor_free(descriptor);
    isthmus_frame* frame = NULL;
    for (int number = 0; number < frames; ++number) {
        WORKS(isthmus_shared_ring_begin(ring, ISTHMUS_WAIT_DEFAULT, &frame, ERR));
        CHECK(isthmus_frame_number(frame) == (uint64_t)number);
        if (number == 3) { /* an abandoned frame gives its number to the next */
            isthmus_frame_free(frame);
            WORKS(isthmus_shared_ring_begin(ring, ISTHMUS_WAIT_DEFAULT, &frame, ERR));
            CHECK(isthmus_frame_number(frame) == 3);
        }
        if (number % 2 == 0) {
            write_bytes(isthmus_frame_buffer(frame), number + 1);
        } else {
            WORKS(
                isthmus_stream_fill(stream, isthmus_frame_buffer(frame), 0, ISTHMUS_REST, (uint8_t)(number + 1), ERR));
        }
        REFUSED(ISTHMUS_INVALID_ARGUMENT, "is a producer's", isthmus_frame_finish(frame, ISTHMUS_WAIT_DEFAULT, ERR));
        WORKS(isthmus_frame_publish(frame, ISTHMUS_WAIT_DEFAULT, ERR));
        CHECK(isthmus_shared_ring_published(ring) == (uint64_t)number + 1);
    }
    isthmus_shared_ring_close(ring);
    REFUSED(ISTHMUS_ENDED, "", isthmus_shared_ring_begin(ring, ISTHMUS_WAIT_DEFAULT, &frame, ERR));
    isthmus_stream_free(stream);
    isthmus_runtime_free(runtime);
    isthmus_shared_ring_free(ring);
}

/* Duplicates of the descriptor's files, for a reader in this process, which takes them. Answers how many. */
static size_t copy_files(const isthmus_descriptor* descriptor, int copies[8]) {
    size_t count = 0;
    const int* const fds = isthmus_descriptor_fds(descriptor, &count);
    for (size_t at = 0; at < count; ++at) {
        copies[at] = dup(fds[at]);
        CHECK(copies[at] >= 0);
    }
    return count;
}

/* Both ends in this process: what is kept beyond the ring, and what is refused. */
static void ends_go_in_any_order(void) {
    isthmus_runtime* runtime = open_runtime();
    isthmus_device* const device = isthmus_runtime_default_device(runtime);
    isthmus_shared_ring_options options = ISTHMUS_SHARED_RING_OPTIONS_INIT;
    options.rights = 1;
    isthmus_shared_ring* ring = NULL;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "", isthmus_shared_ring_create(device, 0, &options, &ring, ERR));
    options.slots = 1;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "", isthmus_shared_ring_create(device, 64, &options, &ring, ERR));
    options.slots = 3;
    options.policy = 2;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "options.policy", isthmus_shared_ring_create(device, 64, &options, &ring, ERR));
    options.policy = 0;
    options.element_bytes = 7;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "frame_bytes", isthmus_shared_ring_create(device, 64, &options, &ring, ERR));
    options.element_bytes = 0;
    WORKS(isthmus_shared_ring_create(device, 64, &options, &ring, ERR));
    isthmus_descriptor* descriptor = NULL;
    WORKS(isthmus_shared_ring_admit(ring, &descriptor, ERR));
    size_t size = 0;
    const void* const bytes = isthmus_descriptor_bytes(descriptor, &size);
    int copies[8], strangers[8];
    const size_t count = copy_files(descriptor, copies);
    CHECK(copy_files(descriptor, strangers) == count);
    isthmus_shared_reader* reader = NULL;
    /* The files are taken in every case. */
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "",
            isthmus_shared_reader_open(device, bytes, size - 1, strangers, count, &reader, ERR));
    for (size_t at = 0; at < count; ++at) CHECK(close(strangers[at]) != 0);
    WORKS(isthmus_shared_reader_open(device, bytes, size, copies, count, &reader, ERR));
    isthmus_descriptor_free(descriptor);

    isthmus_frame* written = NULL;
    WORKS(isthmus_shared_ring_begin(ring, ISTHMUS_WAIT_DEFAULT, &written, ERR));
    isthmus_frame* more = NULL;
    REFUSED(ISTHMUS_IN_USE, "", isthmus_shared_ring_begin(ring, ISTHMUS_WAIT_DEFAULT, &more, ERR));
    write_bytes(isthmus_frame_buffer(written), 42);
    isthmus_frame* read = NULL;
    REFUSED(ISTHMUS_NOT_READY, "", isthmus_shared_reader_next(reader, ISTHMUS_WAIT_NEVER, &read, ERR));
    REFUSED(ISTHMUS_TIMED_OUT, "", isthmus_shared_reader_next(reader, 1000000, &read, ERR));
    isthmus_shared_ring_free(ring); /* the frame keeps it */
    WORKS(isthmus_frame_publish(written, ISTHMUS_WAIT_DEFAULT, ERR));
    WORKS(isthmus_shared_reader_next(reader, ISTHMUS_WAIT_DEFAULT, &read, ERR));
    isthmus_shared_reader_free(reader);
    isthmus_buffer* kept = isthmus_buffer_ref(isthmus_frame_buffer(read));
    isthmus_runtime_free(runtime);
    check_bytes(kept, 0, 64, 42);
    isthmus_frame_free(read);
    check_bytes(kept, 0, 64, 42);
    isthmus_buffer_free(kept);
}

/* A frame that is overwritten while it is read: told once, and then there is nothing left to finish. */
static void slow_readers_are_told(void) {
    isthmus_runtime* runtime = open_runtime();
    isthmus_device* const device = isthmus_runtime_cpu(runtime);
    isthmus_shared_ring_options options = ISTHMUS_SHARED_RING_OPTIONS_INIT;
    options.slots = 2;
    isthmus_shared_ring* ring = NULL;
    WORKS(isthmus_shared_ring_create(device, 64, &options, &ring, ERR));
    isthmus_descriptor* descriptor = NULL;
    WORKS(isthmus_shared_ring_admit(ring, &descriptor, ERR));
    size_t size = 0;
    const void* const bytes = isthmus_descriptor_bytes(descriptor, &size);
    int copies[8];
    const size_t count = copy_files(descriptor, copies);
    isthmus_shared_reader* reader = NULL;
    WORKS(isthmus_shared_reader_open(device, bytes, size, copies, count, &reader, ERR));
    isthmus_descriptor_free(descriptor);
    isthmus_frame* slow = NULL;
    for (int number = 0; number < 5; ++number) {
        isthmus_frame* frame = NULL;
        WORKS(isthmus_shared_ring_begin(ring, ISTHMUS_WAIT_DEFAULT, &frame, ERR));
        write_bytes(isthmus_frame_buffer(frame), number);
        WORKS(isthmus_frame_publish(frame, ISTHMUS_WAIT_DEFAULT, ERR));
        if (number == 0) WORKS(isthmus_shared_reader_next(reader, ISTHMUS_WAIT_DEFAULT, &slow, ERR));
    }
    REFUSED(ISTHMUS_OVERTAKEN, "", isthmus_frame_finish(slow, ISTHMUS_WAIT_DEFAULT, ERR));
    CHECK(isthmus_frame_buffer(slow) == NULL);
    REFUSED(ISTHMUS_INVALID_HANDLE, "", isthmus_frame_finish(slow, ISTHMUS_WAIT_DEFAULT, ERR));
    isthmus_frame_free(slow);
    isthmus_frame* next = NULL;
    WORKS(isthmus_shared_reader_next(reader, ISTHMUS_WAIT_DEFAULT, &next, ERR));
    CHECK(isthmus_frame_missed(next) > 0);
    isthmus_frame_free(next);
    isthmus_shared_reader_free(reader);
    isthmus_shared_ring_free(ring);
    isthmus_runtime_free(runtime);
}

int main(void) {
    int sockets[2];
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(sockets[0]);
        read_frames(sockets[1]);
        exit(0);
    }
    close(sockets[1]);
    publish_frames(sockets[0]);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ends_go_in_any_order();
    slow_readers_are_told();
    return 0;
}
