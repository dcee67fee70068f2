// SPDX-License-Identifier: Apache-2.0
/* The two functions that the simulator exports beside the driver's own, and that the CUDA backend looks for.
 * A real libcuda.so.1 has neither. Plain C: the two sides are separate binaries. */
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
    uint32_t use;           /* 0 value, 1 read, 2 write, 3 read and write, 4 both while the CPU may do so, too */
};

struct isthmus_sim_extent {
    uint64_t x, y, z;
};

/* How the GPU that a thread plays updates memory; laid out as isthmus::SimulatedGpu (detail/play_gpu.hpp). */
struct isthmus_sim_update {
    const void* word;
    uint32_t operation; /* CUatomicOperation */
    uint32_t bytes;
    uint32_t is_signed;
};
struct isthmus_sim_updates {
    /* 0: in one piece for everybody; else end() follows. Of no word (NULL): an alias fence, 0. */
    int (*begin)(const struct isthmus_sim_update* update);
    void (*between)(void); /* after its load, before its store */
    void (*end)(void);
};

/* A kernel's CPU twin. Everything pointed to outlives the process's use of the simulator. */
struct isthmus_sim_kernel {
    size_t struct_bytes;             /* sizeof(struct isthmus_sim_kernel): grows at its end */
    const char* image_hash;          /* hexadecimal text of the image that holds it */
    const unsigned char* image_data; /* what cuModuleLoadData will be given */
    size_t image_bytes;
    const char* symbol;
    const struct isthmus_sim_parameter* parameter;
    uint32_t parameter_count;
    uint32_t pack_bytes;
    uint32_t rank; /* 1, 2, 3; 0: block kernel */
    uint32_t block_threads;
    void (*twin)(const struct isthmus_sim_extent* extent, uint64_t first, uint64_t last, const void* pack);
    /* Called on the thread that runs the twin, before it and, with NULL, after it; NULL: the kernel asks for none. */
    void (*play_gpu)(const struct isthmus_sim_updates* updates);
};

/* Makes the twin known before its image is loaded. Registering the same kernel again is fine.
 * Returns 0, or 1 where another kernel has the same image and symbol. */
typedef int (*isthmus_sim_register_kernel_fn)(const struct isthmus_sim_kernel* kernel);

/* A fact about the simulated machine that the operating system would state, by key, e.g.
 * "nvidia_params.CoherentGPUMemoryMode", "imex_channels_major", "imex_channel_files", "addressing_mode",
 * "page_size_bytes", "kernel_release", "cpu_name", "machine",
 * "numa_nodes" (JSON-free: "id:cpus:bytes" joined by ','). Writes a C string.
 * Returns its length, or -1: the record does not say (then the operating system is asked). */
typedef int (*isthmus_sim_fact_fn)(const char* key, char* value, size_t value_bytes);

#ifdef __cplusplus
}
#endif
#endif
