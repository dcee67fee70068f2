// SPDX-License-Identifier: Apache-2.0
/* The functions that the simulator exports in addition to the driver's, and that the CUDA backend looks up.
 * A real libcuda.so.1 has none of them. Plain C: the two sides are separate binaries. */
#ifndef ISTHMUS_SIM_REGISTRATION_H
#define ISTHMUS_SIM_REGISTRATION_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct isthmus_sim_parameter {
    uint32_t offset_bytes;
    uint32_t size_bytes;
    uint32_t element_bytes; /* sizeof(T) of a view { T* data; uint64_t size; }; 0: a value */
    uint32_t use;           /* 0 value, 1 read, 2 write, 3 read and write, 4 both, also while the CPU does so */
};

struct isthmus_sim_extent {
    uint64_t x, y, z;
};

/* Atomic updates of the GPU that a thread simulates; same layout as isthmus::SimulatedGpu (detail/play_gpu.hpp). */
struct isthmus_sim_update {
    const void* word;
    uint32_t operation; /* CUatomicOperation */
    uint32_t bytes;
    uint32_t is_signed;
};
/* A multimem access to `bytes` bytes of a multicast object at `word`: an update with this operation, whose word is the
 * request. The simulator writes the addresses of every device's memory, at most `most`, and their number, which is
 * negative before. Where the GPU would fault, begin() does not return. */
enum { isthmus_sim_multimem_access = 255 };
struct isthmus_sim_multimem {
    const void* word;
    void** addresses;
    uint32_t bytes;
    uint32_t writes;
    uint32_t most;
    int32_t count;
};
struct isthmus_sim_updates {
    /* 0: atomic for CPU and GPU; otherwise end() must follow. Without a word (NULL): an alias fence, 0. */
    int (*begin)(const struct isthmus_sim_update* update);
    void (*between)(void); /* after the update's load, before its store */
    void (*end)(void);
};

/* A kernel's CPU twin. What the pointers name is copied, except for the functions: their library must stay loaded while
 * kernels of the image are launched and run. */
struct isthmus_sim_kernel {
    size_t struct_bytes;             /* sizeof(struct isthmus_sim_kernel): new members are added at the end */
    const char* image_hash;          /* hexadecimal text of the image that holds it */
    const unsigned char* image_data; /* the argument of cuModuleLoadData */
    size_t image_bytes;
    const char* symbol;
    const struct isthmus_sim_parameter* parameter;
    uint32_t parameter_count;
    uint32_t pack_bytes;
    uint32_t rank; /* 1, 2, 3; 0: block kernel */
    uint32_t block_threads;
    void (*twin)(const struct isthmus_sim_extent* extent, uint64_t first, uint64_t last, const void* pack);
    /* Called on the thread that runs the twin, before it and, with NULL, after it; NULL: not needed. */
    void (*play_gpu)(const struct isthmus_sim_updates* updates);
    /* Differs where two images lay at one address, one after the other: a library was closed, another one opened. */
    uint64_t image_first_use;
};

/* Registers the twin before its image is loaded. Registering the same kernel again is no error.
 * Returns 0, or 1 where another kernel has the same image and symbol. */
typedef int (*isthmus_sim_register_kernel_fn)(const struct isthmus_sim_kernel* kernel);

/* The function that runs in place of an entry of a ready-made module. */
struct isthmus_sim_stand_in {
    size_t struct_bytes; /* sizeof(struct isthmus_sim_stand_in) */
    /* On a thread of the simulator; `parameters`: one pointer for each parameter of the entry. */
    void (*run)(void* self, const struct isthmus_sim_extent* grid, const struct isthmus_sim_extent* block,
                uint32_t shared_bytes, void* const* parameters);
    void* self;
    /* Memory among the parameters, by its offset in the parameter block: a size of 8 bytes holds an address, one of 16
     * also a count. Copied. */
    const struct isthmus_sim_parameter* view;
    uint32_t view_count;
};
/* `function`: the CUfunction. 0, or 1: no such function, or it has a CPU twin. */
typedef int (*isthmus_sim_set_stand_in_fn)(void* function, const struct isthmus_sim_stand_in* stand_in);

/* A fact about the simulated machine that otherwise the operating system states, by key, e.g.
 * "nvidia_params.CoherentGPUMemoryMode", "imex_channels_major", "imex_channel_files", "addressing_mode",
 * "page_size_bytes", "kernel_release", "cpu_name", "machine",
 * "numa_nodes" (JSON-free: "id:cpus:bytes" joined by ','). Writes a C string.
 * Returns its length, or -1: the record does not have it (then the operating system's fact is used). */
typedef int (*isthmus_sim_fact_fn)(const char* key, char* value, size_t value_bytes);

/* Of the allocation or registration that contains this device address, only the first bytes may be accessed from now
 * on; 0: none. With a CUstream less than before is behind its work so far. Memory that a program keeps for its next
 * allocation is still the driver's allocation; this says how much of it is in use. Unknown addresses are ignored. Not a
 * call of the driver: it is not counted, and no fault meets it. In mapped memory (cuMemMap) a block begins at the
 * address, and from then on no part of the reservation that is in no block may be accessed.
 */
typedef void (*isthmus_sim_lend_fn)(uint64_t device_address, size_t bytes, void* stream);

/* These bytes are a part of an allocation that a program divides, and only the first `usable_bytes` of it may be
 * accessed from now on; 0: none. Of an allocation that has parts, nothing else may be accessed. Parts do not overlap,
 * and a part keeps its size or takes the place of parts that begin where it does. The CPU's accesses are not checked,
 * because parts share pages. Otherwise as above.
 */
typedef void (*isthmus_sim_lend_part_fn)(uint64_t device_address, size_t bytes, size_t usable_bytes);

#ifdef __cplusplus
}
#endif
#endif
