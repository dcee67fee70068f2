// SPDX-License-Identifier: Apache-2.0
/* Frames to other machines in C, over UCX: what libisthmus-c-ucx.so.1 exports beside isthmus.h. C99, C11 and C++20; the
 * C++ types are those of isthmus/ucx.hpp. How to use it: docs/network.md.
 *
 * The producer of frames is an isthmus_shared_ring, and their reader an isthmus_shared_reader, at both machines. At the
 * sending one, an isthmus_ucx_sender reads the ring as any reader does. At the receiving one, an isthmus_ucx_receiver
 * fills a ring, from which readers of that machine read.
 *
 * UCX parses what the other machine sends before any check of this library. So use these functions in a process of
 * their own, as the program isthmus-bridge does: when it ends, its remote readers end, and nothing else.
 *
 * Handles, errors, structs and wait_ns are as isthmus.h says. An address is HOST:PORT or [HOST]:PORT. Threads: one
 * thread at a time uses a listener, a connection, a sender or a receiver; other threads may use other handles
 * meanwhile, but not the ring that a receiver fills nor the reader that a sender reads.
 */
#ifndef ISTHMUS_UCX_C_H
#define ISTHMUS_UCX_C_H
#include <isthmus.h>
#ifdef __cplusplus
extern "C" {
#endif

typedef struct isthmus_ucx_listener isthmus_ucx_listener;
typedef struct isthmus_ucx_connection isthmus_ucx_connection;
typedef struct isthmus_ucx_sender isthmus_ucx_sender;
typedef struct isthmus_ucx_receiver isthmus_ucx_receiver;
typedef struct isthmus_ucx_frame isthmus_ucx_frame; /* in a buffer of the program */

/* ---- Connections to other machines */

#define ISTHMUS_UCX_KEY_BYTES 32
typedef struct isthmus_ucx_options {
    size_t size;
    /* Both ends have the same key, or none. Without one only loopback addresses are accepted. */
    const char* key_file;      /* 64 hexadecimal digits, mode 0600 or 0400; NULL: `key` */
    const uint8_t* key;        /* ISTHMUS_UCX_KEY_BYTES bytes, which are copied; NULL: none */
    uint64_t step_timeout_ns;  /* for connecting, and for the whole greeting; 0: 2 s */
    uint64_t setup_timeout_ns; /* until the receiver has its ring; 0: 30 s */
    uint64_t silence_ns;       /* without a word for so long the other end counts as lost; 0: 5 s */
    uint64_t most_bytes;       /* that the sender's frames may take, times its slots; 0: 4 GiB */
    /* Asked every 50 ms while a call waits for the other end; not 0: the call answers `ended`. NULL: nothing ends it.
     * It must not call this library. */
    int32_t (*stopped)(void* context);
    void* stopped_context;
} isthmus_ucx_options;
#define ISTHMUS_UCX_OPTIONS_INIT \
    { sizeof(isthmus_ucx_options), NULL, NULL, 0, 0, 0, 0, NULL, NULL }
/* Listens for receivers; reads and sends nothing. Port 0: one that is free. `options` may be NULL. Errors:
 * not_permitted (no key, and not a loopback address; or others may read the key file), invalid_argument, system_error.
 */
ISTHMUS_C_API isthmus_code isthmus_ucx_listener_create(const char* address, const isthmus_ucx_options* options,
                                                       isthmus_ucx_listener** listener, isthmus_error** error);
/* The port that it listens on; 0 for NULL. */
ISTHMUS_C_API uint16_t isthmus_ucx_listener_port(const isthmus_ucx_listener* listener);
/* For poll(), owned by the listener: readable when isthmus_ucx_listener_accept() does not wait; -1 for NULL. */
ISTHMUS_C_API int isthmus_ucx_listener_fd(const isthmus_ucx_listener* listener);
/* The next receiver that connects, as a file descriptor: the caller gives it to isthmus_ucx_connection_greet(), best in
 * a process of its own, or closes it. ISTHMUS_WAIT_DEFAULT: for 1 s. Errors: timed_out, not_ready, system_limit,
 * system_error. */
ISTHMUS_C_API isthmus_code isthmus_ucx_listener_accept(isthmus_ucx_listener* listener, int64_t wait_ns, int* fd,
                                                       isthmus_error** error);
/* Frees a listener; connections stay. */
ISTHMUS_C_API void isthmus_ucx_listener_free(isthmus_ucx_listener* listener);
/* The sending end: greets a receiver that isthmus_ucx_listener_accept() answered, for step_timeout_ns at most. Takes
 * the file descriptor in every case. Errors: as isthmus_ucx_connection_connect(). */
ISTHMUS_C_API isthmus_code isthmus_ucx_connection_greet(int fd, const isthmus_ucx_options* options,
                                                        isthmus_ucx_connection** connection, isthmus_error** error);
/* The receiving end. Errors: peer_lost (nobody listens, the name server does not answer, or the connection ended),
 * timed_out, not_permitted (no key for an address that is not loopback; another key, or a key at one end only; others
 * may read the key file), unsupported (another version), invalid_argument, peer_broke_rules, ended (`stopped`),
 * system_error. */
ISTHMUS_C_API isthmus_code isthmus_ucx_connection_connect(const char* address, const isthmus_ucx_options* options,
                                                          isthmus_ucx_connection** connection, isthmus_error** error);
/* Frees a connection; a sender or receiver that took it goes on. */
ISTHMUS_C_API void isthmus_ucx_connection_free(isthmus_ucx_connection* connection);

/* ---- Frames to another machine */

typedef struct isthmus_ucx_sent_counts {
    size_t size;
    uint64_t frames;    /* that the receiver got whole */
    uint64_t overtaken; /* overwritten while they were sent; the receiver discarded them */
    uint64_t missed;    /* overwritten before they were sent */
} isthmus_ucx_sent_counts;
#define ISTHMUS_UCX_SENT_COUNTS_INIT \
    { sizeof(isthmus_ucx_sent_counts), 0, 0, 0 }
/* Sends the frames of a reader's ring, each from where it lies. Takes what the connection's handle has, in every case
 * but that of an argument that is NULL, and keeps the reader: both handles stay the caller's to free, and of no other
 * use meanwhile. `note` (at most 256 bytes, copied) is for the receiver, such as the frames' shape. Waits until the
 * receiver has a ring for the frames, setup_timeout_ns at most. Errors: peer_lost, timed_out, peer_broke_rules,
 * invalid_argument, invalid_handle (the connection was taken before), unsupported (UCX has no transport; this library
 * and libisthmus-c are of different versions), out_of_memory. */
ISTHMUS_C_API isthmus_code isthmus_ucx_sender_create(isthmus_ucx_connection* connection, isthmus_shared_reader* reader,
                                                     const void* note, size_t note_bytes, isthmus_ucx_sender** sender,
                                                     isthmus_error** error);
/* Sends what is there, and waits for more, wait_ns at most (ISTHMUS_WAIT_DEFAULT: 50 ms). Repeat it: it also says that
 * this end lives. Errors end the sender: ended (the ring is closed, and the receiver has all frames), peer_lost (the
 * receiver, or the ring's producer), peer_broke_rules (either), and those of isthmus_shared_reader_next(). */
ISTHMUS_C_API isthmus_code isthmus_ucx_sender_step(isthmus_ucx_sender* sender, int64_t wait_ns, isthmus_error** error);
/* What was sent. Errors: invalid_argument. */
ISTHMUS_C_API isthmus_code isthmus_ucx_sender_counts(const isthmus_ucx_sender* sender, isthmus_ucx_sent_counts* counts,
                                                     isthmus_error** error);
/* Frees a sender. The receiver gets peer_lost, unless isthmus_ucx_sender_step() answered ended. */
ISTHMUS_C_API void isthmus_ucx_sender_free(isthmus_ucx_sender* sender);

/* ---- Frames from another machine */

typedef struct isthmus_ucx_offer {
    size_t size;
    uint64_t frame_bytes;
    uint32_t slots;
    uint32_t policy;  /* as isthmus_shared_ring_options.policy */
    const void* note; /* the sender's, as long as the receiver lives; validate it */
    size_t note_bytes;
} isthmus_ucx_offer;
#define ISTHMUS_UCX_OFFER_INIT \
    { sizeof(isthmus_ucx_offer), 0, 0, 0, NULL, 0 }
typedef struct isthmus_ucx_received_counts {
    size_t size;
    uint64_t frames;    /* published */
    uint64_t discarded; /* overwritten at the sender while they were sent */
    uint64_t missed;    /* that the sender did not send */
} isthmus_ucx_received_counts;
#define ISTHMUS_UCX_RECEIVED_COUNTS_INIT \
    { sizeof(isthmus_ucx_received_counts), 0, 0, 0 }
/* Waits for the sender's offer, setup_timeout_ns at most. Takes the connection as isthmus_ucx_sender_create() does.
 * Errors: peer_lost, timed_out, peer_broke_rules, out_of_memory (an offer beyond most_bytes), invalid_handle. */
ISTHMUS_C_API isthmus_code isthmus_ucx_receiver_create(isthmus_ucx_connection* connection,
                                                       isthmus_ucx_receiver** receiver, isthmus_error** error);
/* What the sender offers: the ring to make. Errors: invalid_argument. */
ISTHMUS_C_API isthmus_code isthmus_ucx_receiver_offer(const isthmus_ucx_receiver* receiver, isthmus_ucx_offer* offer,
                                                      isthmus_error** error);
/* Begins to receive into a ring of frames of the offer's size; once. Keeps the ring; nothing else may fill it, and
 * readers are admitted between two calls of isthmus_ucx_receiver_step(). Errors: invalid_argument (the ring's frames
 * have another size; again), peer_lost, unsupported (as isthmus_ucx_sender_create()), out_of_memory. */
ISTHMUS_C_API isthmus_code isthmus_ucx_receiver_begin(isthmus_ucx_receiver* receiver, isthmus_shared_ring* ring,
                                                      isthmus_error** error);
/* ISTHMUS_UCX_PATH_…: how frames come into buffers. */
enum {
    ISTHMUS_UCX_PATH_IN_PLACE = 0,   /* UCX writes into the buffer, which the CPU sees */
    ISTHMUS_UCX_PATH_UCX_CUDA = 1,   /* UCX, built with CUDA, writes into device memory: compiled, and never run */
    ISTHMUS_UCX_PATH_PINNED_COPY = 2 /* UCX writes into pinned host memory, and the device copies from there */
};
/* The same into `count` buffers of the program, instead of a ring: of any kind of memory that the stream's device has,
 * all of one kind and of the offer's size. isthmus_ucx_receiver_next() gives them out. Keeps stream and buffers; the
 * caller may free its handles. Device memory is filled in the order of `stream`: work on a frame belongs there, or is
 * ordered with it by events, until the frame is freed. A sender waits for buffers as for a ring: it drops frames, or
 * waits, by its policy. Do not capture the stream meanwhile: a frame that would be copied then ends the receiver
 * (capture_error). Errors: invalid_argument (also one buffer twice, or device memory of another device), peer_lost,
 * unsupported, out_of_memory, and those of isthmus_buffer_open_on_host(). */
ISTHMUS_C_API isthmus_code isthmus_ucx_receiver_begin_into(isthmus_ucx_receiver* receiver, isthmus_stream* stream,
                                                           isthmus_buffer* const* buffers, size_t count,
                                                           isthmus_error** error);
/* ISTHMUS_UCX_PATH_…; of a ring, and before frames are received, ISTHMUS_UCX_PATH_IN_PLACE. */
ISTHMUS_C_API int32_t isthmus_ucx_receiver_path(const isthmus_ucx_receiver* receiver);
/* "copied through pinned host memory" for ISTHMUS_UCX_PATH_PINNED_COPY; "unknown" for other numbers. */
ISTHMUS_C_API const char* isthmus_ucx_path_name(int32_t path);
/* The next whole frame in a buffer, for frames that go into buffers: steps for wait_ns at most. Errors: timed_out or
 * not_ready (call again), invalid_argument, and behind the last frame those of isthmus_ucx_receiver_step(). */
ISTHMUS_C_API isthmus_code isthmus_ucx_receiver_next(isthmus_ucx_receiver* receiver, int64_t wait_ns,
                                                     isthmus_ucx_frame** frame, isthmus_error** error);
/* Its buffer, borrowed until the frame is freed: one of those that were given. Another machine wrote its bytes:
 * validate them. A copy into it may still run on the receiver's stream: host views wait for it, and work of that stream
 * comes behind it. */
ISTHMUS_C_API isthmus_buffer* isthmus_ucx_frame_buffer(isthmus_ucx_frame* frame);
/* Its number, of this receiver, from 0. */
ISTHMUS_C_API uint64_t isthmus_ucx_frame_number(const isthmus_ucx_frame* frame);
/* Frames that were missed at the sender or on the way, since the last frame. */
ISTHMUS_C_API uint64_t isthmus_ucx_frame_missed(const isthmus_ucx_frame* frame);
/* Frees a frame, and gives its buffer back to the receiver, which it may outlive. */
ISTHMUS_C_API void isthmus_ucx_frame_free(isthmus_ucx_frame* frame);
/* Receives what is there, publishes whole frames, and waits for more, wait_ns at most (ISTHMUS_WAIT_DEFAULT: 50 ms).
 * Repeat it: it also says that this end lives, also before isthmus_ucx_receiver_begin(). Errors end the receiver: ended
 * (the sender's ring is closed, and all frames are here), peer_lost (the connection, or the sender's producer),
 * peer_broke_rules, and those of the ring. Close the ring behind `ended`. */
ISTHMUS_C_API isthmus_code isthmus_ucx_receiver_step(isthmus_ucx_receiver* receiver, int64_t wait_ns,
                                                     isthmus_error** error);
/* 1: the sender said that its ring ended without being closed; another connection would find no frames. */
ISTHMUS_C_API int32_t isthmus_ucx_receiver_producer_is_gone(const isthmus_ucx_receiver* receiver);
/* What was received. Errors: invalid_argument. */
ISTHMUS_C_API isthmus_code isthmus_ucx_receiver_counts(const isthmus_ucx_receiver* receiver,
                                                       isthmus_ucx_received_counts* counts, isthmus_error** error);
/* Frees a receiver, and gives the ring up; frames that are not whole are abandoned. */
ISTHMUS_C_API void isthmus_ucx_receiver_free(isthmus_ucx_receiver* receiver);
#ifdef __cplusplus
}
#endif
#endif
