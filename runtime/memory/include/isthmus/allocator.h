// SPDX-License-Identifier: Apache-2.0
/* A user's allocator as C callbacks (K17). isthmus/callback_allocator.hpp makes an isthmus::Allocator of them. */
#ifndef ISTHMUS_ALLOCATOR_H
#define ISTHMUS_ALLOCATOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A block of memory. `kind` is a number of isthmus::MemoryKind (1 host, 2 pinned, 3 registered, 5 device, …). The
 * kind decides which processors may access the memory: give the true kind, or 0 (unknown). `tag` belongs to the
 * allocator and is returned unchanged. */
typedef struct isthmus_memory_block {
    void* host;      /* address for the CPU; NULL: not accessible from the CPU */
    uint64_t device; /* address for the device */
    size_t bytes;
    int kind;
    uint64_t tag;
} isthmus_memory_block;

/* Called from any thread, possibly from several at once; never for 0 bytes. allocate and release answer 0 or a number
 * of isthmus::Code (6: out of memory). A failed allocate has allocated nothing; a failed release has released nothing
 * and may be called again. `stream` is isthmus::Stream::id(), 0 for none. `destroy` (may be NULL) is called once, after
 * the last use. */
typedef struct isthmus_allocator_callbacks {
    void* context;
    int (*allocate)(void* context, size_t bytes, size_t alignment, uint64_t stream, isthmus_memory_block* out);
    int (*release)(void* context, const isthmus_memory_block* block, uint64_t stream);
    void (*destroy)(void* context);
} isthmus_allocator_callbacks;

#ifdef __cplusplus
}
#endif
#endif
