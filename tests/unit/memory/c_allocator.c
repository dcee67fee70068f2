// SPDX-License-Identifier: Apache-2.0
/* A user's allocator in plain C, as a pipeline not written in C++ passes it to the runtime. */
#include <isthmus/allocator.h>

#include <stdlib.h>

struct counting {
    int out;
    int destroyed;
};

static int allocate(void* context, size_t bytes, size_t alignment, uint64_t stream, isthmus_memory_block* out) {
    (void)stream;
    out->host = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (out->host == NULL) return 6; /* out_of_memory */
    out->bytes = bytes;
    out->kind = 1; /* host */
    out->tag = bytes;
    ((struct counting*)context)->out++;
    return 0;
}

static int release(void* context, const isthmus_memory_block* block, uint64_t stream) {
    (void)stream;
    if (block->tag != block->bytes) return 1; /* invalid_argument */
    free(block->host);
    ((struct counting*)context)->out--;
    return 0;
}

static void destroy(void* context) {
    ((struct counting*)context)->destroyed++;
}

isthmus_allocator_callbacks c_allocator(struct counting* counts);
isthmus_allocator_callbacks c_allocator(struct counting* counts) {
    isthmus_allocator_callbacks made = {counts, allocate, release, destroy};
    return made;
}
