// SPDX-License-Identifier: Apache-2.0
/* isthmus in C: what libisthmus-c.so.1 exports. C11 and C++20. How to use it: docs/c.md.
 *
 * Handles are opaque. A function that answers a handle gives one owner to the caller, which frees it with
 * isthmus_X_free(); NULL is nothing to free. Handles marked "borrowed" are not freed. Every handle keeps alive what it
 * needs, the runtime included: handles may be freed in any order, on any thread.
 *
 * Errors: a fallible function answers an isthmus_code, ISTHMUS_OK (0) on success, and writes its results only then.
 * `error` may be NULL; otherwise *error becomes NULL on success, and on failure an error that the caller frees with
 * isthmus_error_free(). No C++ exception leaves the library. NULL where a handle or a result is needed is
 * ISTHMUS_INVALID_ARGUMENT; functions without an isthmus_code answer 0 or NULL to it. A handle that was freed is not
 * recognised.
 *
 * Threads: unless a comment says otherwise, any thread may call any function, also several with the same handle. Only
 * freeing a handle excludes every other use of it.
 *
 * Structs that may grow begin with `size`; their _INIT macro fills it in. The library takes fields beyond `size` as 0,
 * which is the default of every later field. Bytes that it does not know must be 0 (else ISTHMUS_INVALID_ARGUMENT).
 * Enumerations are int32_t with the numbers of the C++ ones, which never change. Texts are UTF-8 and end with 0; they
 * belong to the handle that they were asked of, or to the library. Sizes and offsets are in bytes.
 *
 * wait_ns: at most so many nanoseconds; ISTHMUS_WAIT_NEVER (0): do not wait, ISTHMUS_NOT_READY instead;
 * ISTHMUS_WAIT_DEFAULT (-1): the runtime's wait_timeout_ns. A wait that expires is ISTHMUS_TIMED_OUT, and the work goes
 * on. Each function that takes wait_ns may block for that long.
 */
#ifndef ISTHMUS_C_H
#define ISTHMUS_C_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#define ISTHMUS_C_API __attribute__((visibility("default")))
#define ISTHMUS_C_VERSION 1 /* grows with functions; the SONAME grows with what breaks */

#define ISTHMUS_WAIT_DEFAULT INT64_C(-1)
#define ISTHMUS_WAIT_NEVER INT64_C(0)
#define ISTHMUS_REST UINT64_MAX /* as a number of bytes: up to the end of the buffer */

/* Numbers of isthmus::Code; docs/errors.md lists the errors. */
typedef int32_t isthmus_code;
enum {
    ISTHMUS_OK = 0,
    ISTHMUS_INVALID_ARGUMENT = 1,
    ISTHMUS_WRONG_DEVICE = 2,
    ISTHMUS_NOT_ACCESSIBLE = 3,
    ISTHMUS_IN_USE = 4,
    ISTHMUS_UNSUPPORTED = 5,
    ISTHMUS_OUT_OF_MEMORY = 6,
    ISTHMUS_NOT_PERMITTED = 7,
    ISTHMUS_TIMED_OUT = 8,
    ISTHMUS_NOT_READY = 9,
    ISTHMUS_DEVICE_LOST = 10,
    ISTHMUS_NO_DRIVER = 11,
    ISTHMUS_DRIVER_TOO_OLD = 12,
    ISTHMUS_DRIVER_MISMATCH = 13,
    ISTHMUS_NO_DEVICE = 14,
    ISTHMUS_SYSTEM_LIMIT = 15,
    ISTHMUS_NO_GPU_CODE = 16,
    ISTHMUS_INVALID_HANDLE = 17,
    ISTHMUS_FORKED = 18,
    ISTHMUS_DRIVER_ERROR = 19,
    ISTHMUS_SYSTEM_ERROR = 20,
    ISTHMUS_CAPTURE_ERROR = 21,
    ISTHMUS_UNVERIFIED = 22,
    ISTHMUS_ALREADY_RELEASED = 23,
    ISTHMUS_INTERIOR_POINTER = 24,
    ISTHMUS_UNKNOWN_POINTER = 25,
    ISTHMUS_NOT_ORDERED = 26,
    ISTHMUS_PEER_LOST = 27,
    ISTHMUS_PEER_BROKE_RULES = 28,
    ISTHMUS_OVERTAKEN = 29,
    ISTHMUS_ENDED = 30
};
/* isthmus::MemoryKind: how memory was obtained. */
enum {
    ISTHMUS_KIND_UNKNOWN = 0,
    ISTHMUS_KIND_HOST = 1,
    ISTHMUS_KIND_PINNED = 2,
    ISTHMUS_KIND_REGISTERED = 3,
    ISTHMUS_KIND_WRITE_COMBINED = 4,
    ISTHMUS_KIND_DEVICE = 5,
    ISTHMUS_KIND_POOL = 6,
    ISTHMUS_KIND_MANAGED = 7,
    ISTHMUS_KIND_MANAGED_POOL = 8,
    ISTHMUS_KIND_GRAPH = 9,
    ISTHMUS_KIND_VMM = 10,
    ISTHMUS_KIND_HOST_NUMA = 11,
    ISTHMUS_KIND_IMPORTED = 12
};
/* isthmus::Use: how one side uses a shared buffer, for each content that is produced. */
enum {
    ISTHMUS_USE_NEVER = 0,
    ISTHMUS_USE_READS_ONCE = 1,
    ISTHMUS_USE_READS_OFTEN = 2,
    ISTHMUS_USE_WRITES_ONCE = 3,
    ISTHMUS_USE_WRITES_OFTEN = 4,
    ISTHMUS_USE_READS_AND_WRITES = 5
};
/* isthmus::Prefer. */
enum { ISTHMUS_PREFER_THROUGHPUT = 0, ISTHMUS_PREFER_LATENCY = 1 };
/* isthmus::LaunchPath: how a launch uses a buffer. */
enum {
    ISTHMUS_PATH_PASS = 0,
    ISTHMUS_PATH_ATTACH = 1,
    ISTHMUS_PATH_STAGE = 2,
    ISTHMUS_PATH_REFUSE = 3,
    ISTHMUS_PATH_PREFETCH = 4
};
/* isthmus::LaunchMode. */
enum {
    ISTHMUS_MODE_RELAXED = 0,
    ISTHMUS_MODE_CHECKED = 1,
    ISTHMUS_MODE_STRICT = 2,
    ISTHMUS_MODE_STAGED = 3,
    ISTHMUS_MODE_VERIFY = 4
};
/* isthmus::Model: the class of machine, for display. */
enum {
    ISTHMUS_MODEL_CPU = 0,
    ISTHMUS_MODEL_DISCRETE = 1,
    ISTHMUS_MODEL_HMM = 2,
    ISTHMUS_MODEL_INTEGRATED = 3,
    ISTHMUS_MODEL_ATS = 4,
    ISTHMUS_MODEL_C2C = 5
};
/* isthmus::Severity of a line of the log. */
enum { ISTHMUS_SEVERITY_INFO = 0, ISTHMUS_SEVERITY_WARNING = 1, ISTHMUS_SEVERITY_ERROR = 2 };
/* isthmus::State and isthmus::Origin of a capability. */
enum { ISTHMUS_STATE_NO = 0, ISTHMUS_STATE_YES = 1, ISTHMUS_STATE_PROBED = 2 };
enum { ISTHMUS_ORIGIN_ATTRIBUTE = 0, ISTHMUS_ORIGIN_PROBE = 1, ISTHMUS_ORIGIN_ABSENT = 2, ISTHMUS_ORIGIN_REFUSED = 3 };
/* isthmus::Feature. */
enum {
    ISTHMUS_FEATURE_PAGEABLE_ACCESS = 0,
    ISTHMUS_FEATURE_HOST_PAGE_TABLES = 1,
    ISTHMUS_FEATURE_MANAGED = 2,
    ISTHMUS_FEATURE_CONCURRENT_MANAGED = 3,
    ISTHMUS_FEATURE_DIRECT_MANAGED = 4,
    ISTHMUS_FEATURE_UNIFIED_ADDRESSING = 5,
    ISTHMUS_FEATURE_INTEGRATED = 6,
    ISTHMUS_FEATURE_NATIVE_ATOMICS = 7,
    ISTHMUS_FEATURE_PARTIAL_ATOMICS = 8,
    ISTHMUS_FEATURE_HOST_REGISTER = 9,
    ISTHMUS_FEATURE_HOST_REGISTER_READ_ONLY = 10,
    ISTHMUS_FEATURE_REGISTERED_SAME_POINTER = 11,
    ISTHMUS_FEATURE_POOLS = 12,
    ISTHMUS_FEATURE_HOST_POOLS = 13,
    ISTHMUS_FEATURE_HOST_NUMA_POOLS = 14,
    ISTHMUS_FEATURE_VIRTUAL_MEMORY = 15,
    ISTHMUS_FEATURE_HOST_VIRTUAL_MEMORY = 16,
    ISTHMUS_FEATURE_HOST_NUMA_VIRTUAL_MEMORY = 17,
    ISTHMUS_FEATURE_EXPORT_POSIX_FD = 18,
    ISTHMUS_FEATURE_EXPORT_FABRIC = 19,
    ISTHMUS_FEATURE_IPC_EVENTS = 20,
    ISTHMUS_FEATURE_GPUDIRECT_RDMA = 21,
    ISTHMUS_FEATURE_DMA_BUF = 22,
    ISTHMUS_FEATURE_MULTICAST = 23,
    ISTHMUS_FEATURE_CONCURRENT_KERNELS = 24,
    ISTHMUS_FEATURE_KERNEL_TIMEOUT = 25,
    ISTHMUS_FEATURE_COOPERATIVE_LAUNCH = 26,
    ISTHMUS_FEATURE_HOST_DMA_BUF = 27
};
/* Flags of views and native uses. ISTHMUS_WRITE alone promises to write every byte: what was there need not be kept. */
enum { ISTHMUS_READ = 1, ISTHMUS_WRITE = 2, ISTHMUS_READ_WRITE = 3 };

typedef struct isthmus_error isthmus_error;
typedef struct isthmus_runtime isthmus_runtime;
typedef struct isthmus_device isthmus_device; /* borrowed from its runtime: never freed */
typedef struct isthmus_stream isthmus_stream;
typedef struct isthmus_event isthmus_event;
typedef struct isthmus_buffer isthmus_buffer;
typedef struct isthmus_host_view isthmus_host_view;
typedef struct isthmus_native_scope isthmus_native_scope;
typedef struct isthmus_module isthmus_module;
typedef struct isthmus_module_kernel isthmus_module_kernel;
typedef struct isthmus_frame isthmus_frame;
typedef struct isthmus_shared_ring isthmus_shared_ring;     /* frames to other processes: the producer */
typedef struct isthmus_shared_reader isthmus_shared_reader; /* frames of another process */
typedef struct isthmus_descriptor isthmus_descriptor;       /* bytes and file descriptors, for any transport */
typedef struct isthmus_listener isthmus_listener;
typedef struct isthmus_channel isthmus_channel; /* one end of a connection between two processes */
typedef struct isthmus_message isthmus_message;
typedef struct isthmus_trace isthmus_trace; /* a recording for Perfetto */

/* ---- Library and errors */

/* The version of libisthmus: 10203 is 1.2.3. */
ISTHMUS_C_API uint32_t isthmus_version(void);
/* The same as text: "0.1.0". */
ISTHMUS_C_API const char* isthmus_version_text(void);
/* ISTHMUS_C_VERSION of the library: functions that the header marks with a larger number are missing. */
ISTHMUS_C_API uint32_t isthmus_c_version(void);
/* The kind of the failure; ISTHMUS_OK for NULL. */
ISTHMUS_C_API isthmus_code isthmus_error_code(const isthmus_error* error);
/* What the driver (CUresult) or the system (errno) answered; 0: no such call was made. */
ISTHMUS_C_API int32_t isthmus_error_driver_code(const isthmus_error* error);
/* What was asked, and which fact refused it. Lives as long as the error, like the next texts. */
ISTHMUS_C_API const char* isthmus_error_message(const isthmus_error* error);
/* What works instead; may be empty. */
ISTHMUS_C_API const char* isthmus_error_remedy(const isthmus_error* error);
/* The entry in docs/errors.md, "M012"; empty for errors of this C interface itself, such as a NULL argument. */
ISTHMUS_C_API const char* isthmus_error_id(const isthmus_error* error);
/* The function of the driver or the system that failed, "cuMemAlloc_v2"; empty: none was called. */
ISTHMUS_C_API const char* isthmus_error_call(const isthmus_error* error);
/* Everything in one line, for logs. */
ISTHMUS_C_API const char* isthmus_error_text(const isthmus_error* error);
/* Frees an error. */
ISTHMUS_C_API void isthmus_error_free(isthmus_error* error);
/* "out_of_memory" for ISTHMUS_OUT_OF_MEMORY; "unknown" for other numbers, like the next functions. Never freed. */
ISTHMUS_C_API const char* isthmus_code_name(int32_t code);
/* "write_combined" for ISTHMUS_KIND_WRITE_COMBINED. */
ISTHMUS_C_API const char* isthmus_kind_name(int32_t kind);
/* "reads_once" for ISTHMUS_USE_READS_ONCE. */
ISTHMUS_C_API const char* isthmus_use_name(int32_t use);
/* "pass" for ISTHMUS_PATH_PASS. */
ISTHMUS_C_API const char* isthmus_path_name(int32_t path);
/* "integrated" for ISTHMUS_MODEL_INTEGRATED. */
ISTHMUS_C_API const char* isthmus_model_name(int32_t model);
/* How many features the library knows: 0 to isthmus_feature_count() - 1. */
ISTHMUS_C_API int32_t isthmus_feature_count(void);
/* "pageable_access" for ISTHMUS_FEATURE_PAGEABLE_ACCESS. */
ISTHMUS_C_API const char* isthmus_feature_name(int32_t feature);
/* "probed" for ISTHMUS_STATE_PROBED. */
ISTHMUS_C_API const char* isthmus_state_name(int32_t state);
/* "attribute" for ISTHMUS_ORIGIN_ATTRIBUTE. */
ISTHMUS_C_API const char* isthmus_origin_name(int32_t origin);

/* ---- Observers and traces */

/* isthmus::Span: what lasts from a begin to an end (isthmus/observer.hpp says what each is). */
enum {
    ISTHMUS_SPAN_LAUNCH = 0,
    ISTHMUS_SPAN_COPY = 1,
    ISTHMUS_SPAN_FILL = 2,
    ISTHMUS_SPAN_READ_BACK = 3,
    ISTHMUS_SPAN_GRAPH_LAUNCH = 4,
    ISTHMUS_SPAN_NATIVE_WORK = 5,
    ISTHMUS_SPAN_NATIVE_SCOPE = 6,
    ISTHMUS_SPAN_HOST_VIEW = 7,
    ISTHMUS_SPAN_WAIT = 8,
    ISTHMUS_SPAN_ALLOCATE = 9,
    ISTHMUS_SPAN_RELEASE = 10,
    ISTHMUS_SPAN_ADOPT = 11,
    ISTHMUS_SPAN_RING_BEGIN = 12,
    ISTHMUS_SPAN_RING_PUBLISH = 13,
    ISTHMUS_SPAN_RING_NEXT = 14,
    ISTHMUS_SPAN_RING_FINISH = 15,
    ISTHMUS_SPAN_HINT = 16 /* of a prefetch, a discard or advice */
};
/* isthmus::Mark: what happens at one moment. */
enum {
    ISTHMUS_MARK_UPLOAD = 0,
    ISTHMUS_MARK_DOWNLOAD = 1,
    ISTHMUS_MARK_FENCE = 2,
    ISTHMUS_MARK_PREFETCH = 3,
    ISTHMUS_MARK_ATTACH = 4,
    ISTHMUS_MARK_DETACH = 5,
    ISTHMUS_MARK_REFUSED = 6,
    ISTHMUS_MARK_BUDGET_REFUSED = 7,
    ISTHMUS_MARK_READER_LOST = 8,
    ISTHMUS_MARK_BUFFER = 9,
    ISTHMUS_MARK_BUFFER_END = 10,
    ISTHMUS_MARK_ARGUMENT = 11
};
/* What is known of a span or a mark; 0, NULL or ISTHMUS_KIND_UNKNOWN where it does not apply or is not known yet. The
 * texts do not end with 0: their length stands beside them. They are valid during the callback only. */
typedef struct isthmus_observed {
    size_t size;       /* as the library knows it: later versions append members */
    int32_t what;      /* ISTHMUS_SPAN_…; in mark(): ISTHMUS_MARK_… */
    uint32_t device;   /* its index */
    uint64_t stream;   /* its number, as messages name it */
    uint64_t position; /* of the operation in its stream */
    uint64_t bytes;
    uint64_t address; /* of the buffer's memory */
    int32_t kind;     /* ISTHMUS_KIND_… */
    int32_t code;     /* at the end of a span, and of a refusal */
    const char* name; /* of the kernel, of the operation */
    size_t name_length;
    const char* error; /* the entry in docs/errors.md, with the code */
    size_t error_length;
    const char* reason; /* why this memory, this copy, this refusal */
    size_t reason_length;
} isthmus_observed;
/* Functions that are told what a runtime does, on the thread that makes the call, also with locks of the library held;
 * several threads call them at once. They must not call this library, nor wait for a thread that does. NULL: not told.
 * A begin and its end come from one thread, in nested order, except for host views and native scopes. */
typedef struct isthmus_observer {
    size_t size;
    void* context;
    void (*begin)(void* context, const isthmus_observed* span);
    void (*end)(void* context, const isthmus_observed* span); /* as in begin(), with what has become known */
    void (*mark)(void* context, const isthmus_observed* mark);
} isthmus_observer;
#define ISTHMUS_OBSERVER_INIT \
    { sizeof(isthmus_observer), NULL, NULL, NULL, NULL }
/* Records what runtimes do (isthmus_runtime_options.trace) for ui.perfetto.dev and `isthmus trace`. `file` is written
 * by isthmus_trace_close(); NULL: the file that ISTHMUS_TRACE names in the environment, and without it nothing is
 * recorded. Recording takes no lock and allocates nothing. Errors: invalid_argument, out_of_memory, system_error (the
 * file may not be written, or its directory is not there; no file is made). */
ISTHMUS_C_API isthmus_code isthmus_trace_open(const char* file, isthmus_trace** trace, isthmus_error** error);
/* Ends the recording and writes the file: after the work that it shall hold. Later calls do nothing; runtimes work on.
 * Errors: system_error, forked (in a child of the process that opened it: the file is the parent's). */
ISTHMUS_C_API isthmus_code isthmus_trace_close(isthmus_trace* trace, isthmus_error** error);
/* Events that found no room, because a thread made more than 16384 or more than 32 threads came. */
ISTHMUS_C_API uint64_t isthmus_trace_dropped(const isthmus_trace* trace);
/* Closes the recording where that was not done, and frees it; runtimes that it records work on. In a child of fork() it
 * writes nothing. */
ISTHMUS_C_API void isthmus_trace_free(isthmus_trace* trace);

/* ---- Runtime */

/* Called from any thread, and from several at once; must not call this library. `line` is valid during the call. */
typedef void (*isthmus_log_fn)(void* context, int32_t severity, const char* line);
typedef struct isthmus_runtime_options {
    size_t size;
    int32_t use_cuda;         /* 0: the CPU device alone */
    int32_t launch_mode;      /* 0: what ISTHMUS_LAUNCH_MODE names in the environment, otherwise relaxed */
    const char* cuda_library; /* NULL: ISTHMUS_CUDA_LIBRARY in the environment, otherwise libcuda.so.1 */
    uint64_t wait_timeout_ns; /* of waits without a number; 0: 60 s */
    isthmus_log_fn log;       /* NULL: silent */
    void* log_context;
    const char* profile;  /* file of `isthmus tune`; "none": no file; NULL: RuntimeOptions::profile says where */
    uint64_t cache_bytes; /* released memory that each device keeps; 0: the default; UINT64_MAX: none */
    uint32_t cpu_threads; /* that run a kernel of the CPU device; 0: the launching one alone */
    int32_t wait_policy;  /* 0 adaptive, 1 spin, 2 sleep */
    int32_t order_check;  /* 0 off, 1 report, 2 refuse */
    int32_t oversubscribe_managed;
    /* Read in place: it lives until the runtime and all handles of it are gone. */
    const isthmus_observer* observer;
    isthmus_trace* trace; /* told before the observer; may be closed or freed before the runtime */
} isthmus_runtime_options;
#define ISTHMUS_RUNTIME_OPTIONS_INIT \
    { sizeof(isthmus_runtime_options), 1, 0, NULL, 0, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, NULL }
/* Opens all devices of this machine. The CPU device always exists: a machine without a driver is no error, see
 * isthmus_runtime_cuda_absence(). `options` may be NULL. A profile that was measured elsewhere is ignored, and the log
 * says why. Errors: invalid_argument, unsupported (a profile of another version). */
ISTHMUS_C_API isthmus_code isthmus_runtime_open(const isthmus_runtime_options* options, isthmus_runtime** runtime,
                                                isthmus_error** error);
/* Gives up the caller's runtime. Buffers, streams, events and other handles of it work on: the last one closes it. */
ISTHMUS_C_API void isthmus_runtime_free(isthmus_runtime* runtime);
/* How many devices there are; the CPU device is the last. */
ISTHMUS_C_API size_t isthmus_runtime_device_count(const isthmus_runtime* runtime);
/* A device (borrowed); NULL beyond the end. Valid while the runtime or any handle of it lives. */
ISTHMUS_C_API isthmus_device* isthmus_runtime_device(isthmus_runtime* runtime, size_t index);
/* The first healthy GPU, otherwise the CPU device (borrowed). */
ISTHMUS_C_API isthmus_device* isthmus_runtime_default_device(isthmus_runtime* runtime);
/* The CPU device (borrowed). */
ISTHMUS_C_API isthmus_device* isthmus_runtime_cpu(isthmus_runtime* runtime);
/* Why there is no CUDA device, or why some are missing; NULL: none is missing. */
ISTHMUS_C_API const char* isthmus_runtime_cuda_absence(const isthmus_runtime* runtime);
/* 13000 for a driver of CUDA 13.0; 0: no driver. */
ISTHMUS_C_API int32_t isthmus_runtime_driver_version(const isthmus_runtime* runtime);
/* 1 where the driver is isthmus' simulator. */
ISTHMUS_C_API int32_t isthmus_runtime_is_simulated(const isthmus_runtime* runtime);
/* What the runtime has counted since it was opened (copies and their bytes, waits, refusals, kept memory), in the text
 * exposition format of Prometheus. The caller frees the text with free(). Errors: out_of_memory. */
ISTHMUS_C_API isthmus_code isthmus_runtime_counters_text(const isthmus_runtime* runtime, char** text,
                                                         isthmus_error** error);
/* What the machine and its devices can do, as JSON with the keys of `isthmus caps --json`, without what that command
 * derives from them (memory_kinds, shared_memory). The caller frees the text with free(). Errors: out_of_memory. */
ISTHMUS_C_API isthmus_code isthmus_runtime_capabilities_json(const isthmus_runtime* runtime, char** json,
                                                             isthmus_error** error);
/* Waits for all work of all devices. Errors: timed_out, not_ready, device_lost, capture_error. */
ISTHMUS_C_API isthmus_code isthmus_runtime_synchronize(isthmus_runtime* runtime, int64_t wait_ns,
                                                       isthmus_error** error);

/* ---- Devices */

/* The product's name. */
ISTHMUS_C_API const char* isthmus_device_name(const isthmus_device* device);
/* 1 for the CPU device. */
ISTHMUS_C_API int32_t isthmus_device_is_cpu(const isthmus_device* device);
/* CUDA's number of the device; -1 for the CPU device. */
ISTHMUS_C_API int32_t isthmus_device_ordinal(const isthmus_device* device);
/* Its place in isthmus_runtime_device(). */
ISTHMUS_C_API size_t isthmus_device_index(const isthmus_device* device);
/* ISTHMUS_MODEL_…. */
ISTHMUS_C_API int32_t isthmus_device_model(const isthmus_device* device);
/* 0 after a fault from which the device does not recover in this process. */
ISTHMUS_C_API int32_t isthmus_device_healthy(const isthmus_device* device);
/* 1 where the device has an ISTHMUS_FEATURE_…; 0 also for unknown numbers. */
ISTHMUS_C_API int32_t isthmus_device_has(const isthmus_device* device, int32_t feature);
/* Why, in one sentence. */
ISTHMUS_C_API const char* isthmus_device_why(const isthmus_device* device, int32_t feature);
/* ISTHMUS_STATE_…: no, yes, or yes and tried. */
ISTHMUS_C_API int32_t isthmus_device_feature_state(const isthmus_device* device, int32_t feature);
/* ISTHMUS_ORIGIN_…: how the library knows. */
ISTHMUS_C_API int32_t isthmus_device_feature_origin(const isthmus_device* device, int32_t feature);
/* The day (UTC, "2026-11-24") on which the profile was measured by which this device chooses memory; NULL: it uses no
 * profile. */
ISTHMUS_C_API const char* isthmus_device_profile_date(const isthmus_device* device);
/* The device's own stream: a handle to free. NULL: no memory for it. */
ISTHMUS_C_API isthmus_stream* isthmus_device_stream(isthmus_device* device);
/* Wraps a CUstream (cudaStream_t) of other code, of the device's primary context; NULL is its legacy default stream.
 * The other code destroys it, after the last handle is freed. Errors: wrong_device, unsupported (the CPU device), …. */
ISTHMUS_C_API isthmus_code isthmus_device_wrap_stream(isthmus_device* device, void* cu_stream, isthmus_stream** stream,
                                                      isthmus_error** error);
/* Makes a stream. `priority`: -1 high, 0 ordinary. */
ISTHMUS_C_API isthmus_code isthmus_device_create_stream(isthmus_device* device, int32_t priority,
                                                        isthmus_stream** stream, isthmus_error** error);
/* Waits for all work of the device. Errors: timed_out, not_ready, capture_error, device_lost. */
ISTHMUS_C_API isthmus_code isthmus_device_synchronize(isthmus_device* device, int64_t wait_ns, isthmus_error** error);

/* ---- Buffers: memory in bytes, with any number of owners */

/* The declared use of a shared buffer, as isthmus::SharedUse. It lies within other structs and keeps its size. */
typedef struct isthmus_shared_use {
    size_t size;
    int32_t host;             /* ISTHMUS_USE_… */
    int32_t device;           /* ISTHMUS_USE_… */
    int32_t prefer;           /* ISTHMUS_PREFER_… */
    int32_t kind;             /* ISTHMUS_KIND_…; 0: the machine's choice */
    uint64_t alignment_bytes; /* a power of two, at most a page; 0: at least 256 */
    int32_t device_passes;    /* over the bytes, between two turns of the host; 0: as `device` says */
    int32_t reserved_number;
    uint64_t reserved[3];
} isthmus_shared_use;
#define ISTHMUS_SHARED_USE_INIT                            \
    {                                                      \
        sizeof(isthmus_shared_use), 5, 5, 0, 0, 0, 0, 0, { \
            0, 0, 0                                        \
        }                                                  \
    }
typedef struct isthmus_adopt_options {
    size_t size;
    isthmus_shared_use use;
    void* context;
    /* Called once, from the thread that ends the last use. Must not call this library, and must not throw. Not called
     * if adopting fails. */
    void (*release)(void* context, void* pointer, size_t bytes);
    isthmus_event* after; /* the first use waits for it; NULL: for nothing. Its owner may free it after the call */
} isthmus_adopt_options;
#define ISTHMUS_ADOPT_OPTIONS_INIT \
    { sizeof(isthmus_adopt_options), ISTHMUS_SHARED_USE_INIT, NULL, NULL, NULL }
/* Memory for CPU and device; the machine's capabilities and the use decide its kind. `use` may be NULL. Errors:
 * invalid_argument, unsupported, out_of_memory, capture_error, device_lost. */
ISTHMUS_C_API isthmus_code isthmus_device_allocate_shared(isthmus_device* device, uint64_t bytes,
                                                          const isthmus_shared_use* use, isthmus_buffer** buffer,
                                                          isthmus_error** error);
/* Memory of one ISTHMUS_KIND_…. Errors as above; unsupported: the machine lacks it. */
ISTHMUS_C_API isthmus_code isthmus_device_allocate(isthmus_device* device, uint64_t bytes, int32_t kind,
                                                   isthmus_buffer** buffer, isthmus_error** error);
/* Pool memory in the order of the stream, without waiting. Errors as above; unsupported: the device has no pools. */
ISTHMUS_C_API isthmus_code isthmus_stream_allocate(isthmus_stream* stream, uint64_t bytes, isthmus_buffer** buffer,
                                                   isthmus_error** error);
/* Makes a buffer of memory of other code, which stays valid until `release` was called. `options` may be NULL. Errors,
 * after which nothing is adopted: in_use (it overlaps a buffer), not_accessible, unsupported, wrong_device, …. */
ISTHMUS_C_API isthmus_code isthmus_device_adopt(isthmus_device* device, void* pointer, uint64_t bytes,
                                                const isthmus_adopt_options* options, isthmus_buffer** buffer,
                                                isthmus_error** error);
/* Makes a buffer of these bytes of a dma-buf, such as a camera's frame. The descriptor stays the caller's, and may be
 * closed after the call. Views are bracketed by DMA_BUF_IOCTL_SYNC. `release` gets the library's mapping, before it is
 * unmapped. Errors: as isthmus_device_adopt(); invalid_argument (no dma-buf, or a range that leaves it), unsupported
 * (its exporter cannot map it), system_limit, system_error. */
ISTHMUS_C_API isthmus_code isthmus_device_adopt_dma_buf(isthmus_device* device, int fd, uint64_t offset_bytes,
                                                        uint64_t bytes, const isthmus_adopt_options* options,
                                                        isthmus_buffer** buffer, isthmus_error** error);
typedef struct isthmus_exportable_options {
    size_t size;
    int32_t seen_by;   /* 0: CPUs and GPUs, pinned host memory; 1: GPUs only, device memory */
    uint32_t reserved; /* 0 */
} isthmus_exportable_options;
#define ISTHMUS_EXPORTABLE_OPTIONS_INIT \
    { sizeof(isthmus_exportable_options), 1, 0 }
/* Memory that other drivers (V4L2, displays, network cards) take as a dma-buf: zero at creation, whole pages, never
 * kept for other buffers. `options` may be NULL. Device memory needs ISTHMUS_FEATURE_DMA_BUF, on an integrated
 * GPU also ISTHMUS_FEATURE_VIRTUAL_MEMORY; pinned host memory needs ISTHMUS_FEATURE_HOST_DMA_BUF. Errors: unsupported
 * (the device lacks one of them: the message says what works; or the build has no component ipc), invalid_argument,
 * out_of_memory, capture_error, in_use (a service runs), device_lost. */
ISTHMUS_C_API isthmus_code isthmus_device_allocate_exportable(isthmus_device* device, uint64_t bytes,
                                                              const isthmus_exportable_options* options,
                                                              isthmus_buffer** buffer, isthmus_error** error);
/* A new descriptor of a dma-buf over the buffer's memory, from its first byte on, in whole pages; the caller closes it
 * with close(). It gives the right to read and write the memory for as long as it is open, also
 * behind isthmus_buffer_free(). Does not wait for work that uses the buffer, and nothing orders the other driver's work
 * with this process's: stop using the buffer while the other driver writes. Errors: unsupported (not made by
 * isthmus_device_allocate_exportable()), system_limit, device_lost. */
ISTHMUS_C_API isthmus_code isthmus_buffer_export_dma_buf(const isthmus_buffer* buffer, int* fd, isthmus_error** error);
/* Another owner of the same buffer: answers its argument, which is then freed once more. */
ISTHMUS_C_API isthmus_buffer* isthmus_buffer_ref(isthmus_buffer* buffer);
/* Frees one owner's handle. The last one releases the memory behind the work that uses it; it may wait for that work,
 * at most the runtime's wait_timeout_ns. Open views and scopes keep the memory. */
ISTHMUS_C_API void isthmus_buffer_free(isthmus_buffer* buffer);
/* Its size. */
ISTHMUS_C_API uint64_t isthmus_buffer_bytes(const isthmus_buffer* buffer);
/* ISTHMUS_KIND_… of the memory that the device uses. */
ISTHMUS_C_API int32_t isthmus_buffer_kind(const isthmus_buffer* buffer);
/* ISTHMUS_KIND_… of the host's side; another one where copies are made between the two. */
ISTHMUS_C_API int32_t isthmus_buffer_host_kind(const isthmus_buffer* buffer);
/* ISTHMUS_PATH_…: how a launch on its device uses it. */
ISTHMUS_C_API int32_t isthmus_buffer_path(const isthmus_buffer* buffer);
/* Why the memory is of that kind, in one sentence. */
ISTHMUS_C_API const char* isthmus_buffer_explain(const isthmus_buffer* buffer);
/* Bytes copied between the two sides so far; 0 where the memory is used in place. */
ISTHMUS_C_API uint64_t isthmus_buffer_staged_bytes(const isthmus_buffer* buffer);
/* The address for its device, which claims nothing: work of other code uses isthmus_stream_open_native_scope(). */
ISTHMUS_C_API uint64_t isthmus_buffer_device_address(const isthmus_buffer* buffer);
/* The device that made it (borrowed). */
ISTHMUS_C_API isthmus_device* isthmus_buffer_device(const isthmus_buffer* buffer);
/* Whether the device may access the buffer: 1 yes, 0 no, -1 not verified. `reason` may be NULL; it gets the fact that
 * decides, a text that is never freed. No driver call. */
ISTHMUS_C_API int32_t isthmus_device_can_access(const isthmus_device* device, const isthmus_buffer* buffer,
                                                const char** reason);

/* ---- Host views: scopes in which the CPU uses a buffer */

/* Opens [offset, offset + bytes) for the CPU; bytes may be ISTHMUS_REST. Waits for device work that conflicts; while it
 * is open, device work that conflicts is in_use. `data` points to the first byte until the view is freed. One thread at
 * a time uses a view. Errors: invalid_argument, in_use, not_accessible, timed_out, not_ready, device_lost. */
ISTHMUS_C_API isthmus_code isthmus_buffer_open_on_host(isthmus_buffer* buffer, uint64_t offset, uint64_t bytes,
                                                       uint32_t flags, int64_t wait_ns, isthmus_host_view** view,
                                                       void** data, isthmus_error** error);
/* Closes the view; if DLPack tensors were made of it, behind the last of them. Any thread may free it. */
ISTHMUS_C_API void isthmus_host_view_free(isthmus_host_view* view);
/* Its size. */
ISTHMUS_C_API uint64_t isthmus_host_view_bytes(const isthmus_host_view* view);
/* Its first byte. */
ISTHMUS_C_API void* isthmus_host_view_data(const isthmus_host_view* view);

/* ---- Native work: other code's GPU work on buffers (docs/native-work.md) */

/* One buffer of native work. `flags`: ISTHMUS_READ, ISTHMUS_WRITE or both. `reserved` is 0. */
typedef struct isthmus_native_use {
    isthmus_buffer* buffer;
    uint32_t flags;
    uint32_t reserved;
    void* pointer; /* result: for the device, or for the host on the CPU device */
} isthmus_native_use;
/* Claims the buffers for other code, and fills in the pointers. While the scope is open, views, launches, copies and
 * scopes that conflict are in_use. `name` is copied, for messages, of the first 4096 names of the process. One thread
 * at a time uses a scope. Errors: as isthmus_stream_launch(); capture_error (the stream is captured). */
ISTHMUS_C_API isthmus_code isthmus_stream_open_native_scope(isthmus_stream* stream, const char* name,
                                                            isthmus_native_use* uses, size_t count,
                                                            isthmus_native_scope** scope, isthmus_error** error);
/* The CUstream (cudaStream_t) that gets the work; NULL on the CPU device. */
ISTHMUS_C_API void* isthmus_native_scope_stream(const isthmus_native_scope* scope);
/* Ends the claim behind the work that the stream has by now, and frees the handle, also after an error. `failed` other
 * than 0: the work failed; what it was to write has no defined content. Any thread may close. Errors: capture_error,
 * device_lost, timed_out. */
ISTHMUS_C_API isthmus_code isthmus_native_scope_close(isthmus_native_scope* scope, int32_t failed,
                                                      isthmus_error** error);
/* Calls work() once, on this thread, with the buffers claimed. It gives its work to cu_stream (NULL on the CPU device:
 * it does the work) and answers 0, a CUresult or a cudaError_t. It calls nothing of this library, waits for nothing,
 * and does not throw. `uses` has the pointers during the call and behind it. `name` is copied. In a capture of the CPU
 * device, work() is called again at each launch of the graph: `context` must live as long. Errors: as
 * isthmus_stream_launch(), before work() is called; driver_error or device_lost with what work() answered. */
ISTHMUS_C_API isthmus_code isthmus_stream_enqueue_native(isthmus_stream* stream, const char* name,
                                                         isthmus_native_use* uses, size_t count,
                                                         int32_t (*work)(void* context, void* cu_stream,
                                                                         const isthmus_native_use* uses),
                                                         void* context, isthmus_error** error);

/* ---- Streams, events and copies */

/* Frees a handle; the work goes on. */
ISTHMUS_C_API void isthmus_stream_free(isthmus_stream* stream);
/* Its device (borrowed). */
ISTHMUS_C_API isthmus_device* isthmus_stream_device(const isthmus_stream* stream);
/* A number that no other stream of this process gets. */
ISTHMUS_C_API uint64_t isthmus_stream_id(const isthmus_stream* stream);
/* Its CUstream, valid while a handle lives. Errors: unsupported (the CPU device), device_lost. */
ISTHMUS_C_API isthmus_code isthmus_stream_native_handle(isthmus_stream* stream, void** cu_stream,
                                                        isthmus_error** error);
/* Records an event behind the stream's work. Does not wait. Errors: capture_error, device_lost. */
ISTHMUS_C_API isthmus_code isthmus_stream_record(isthmus_stream* stream, isthmus_event** event, isthmus_error** error);
/* Later work of the stream waits for the event, of any device. The host does not wait. Errors: as above. */
ISTHMUS_C_API isthmus_code isthmus_stream_wait(isthmus_stream* stream, const isthmus_event* event,
                                               isthmus_error** error);
/* Later work of the stream waits for the present work of `other`. The host does not wait. */
ISTHMUS_C_API isthmus_code isthmus_stream_wait_stream(isthmus_stream* stream, isthmus_stream* other,
                                                      isthmus_error** error);
/* Later work of the stream waits for a CUevent of other code. On the CPU device the host waits. */
ISTHMUS_C_API isthmus_code isthmus_stream_wait_native(isthmus_stream* stream, void* cu_event, isthmus_error** error);
/* Whether all work of the stream has ended: 1 or 0. Does not wait. */
ISTHMUS_C_API isthmus_code isthmus_stream_finished(isthmus_stream* stream, int32_t* finished, isthmus_error** error);
/* Waits for the stream's work. Errors: timed_out, not_ready, capture_error, in_use, device_lost. */
ISTHMUS_C_API isthmus_code isthmus_stream_synchronize(isthmus_stream* stream, int64_t wait_ns, isthmus_error** error);
/* Copies between buffers, in the order of the stream; not waited for. A copy of 0 bytes does nothing, within the same
 * bounds. Errors: invalid_argument (beyond an end, overlapping), in_use, wrong_device, unsupported, capture_error,
 * device_lost. */
ISTHMUS_C_API isthmus_code isthmus_stream_copy(isthmus_stream* stream, isthmus_buffer* to, uint64_t to_offset,
                                               const isthmus_buffer* from, uint64_t from_offset, uint64_t bytes,
                                               isthmus_error** error);
/* Copies host memory of the caller into a buffer. Page-locked memory must stay unchanged until the stream has done it;
 * other memory has been read when the call returns. */
ISTHMUS_C_API isthmus_code isthmus_stream_copy_from_host(isthmus_stream* stream, isthmus_buffer* to, uint64_t to_offset,
                                                         const void* from, uint64_t bytes, isthmus_error** error);
/* Copies a part of a buffer into host memory of the caller. Page-locked memory is written when the stream has done it;
 * other memory when the call returns. */
ISTHMUS_C_API isthmus_code isthmus_stream_copy_to_host(isthmus_stream* stream, void* to, const isthmus_buffer* from,
                                                       uint64_t from_offset, uint64_t bytes, isthmus_error** error);
/* Sets `bytes` bytes (or ISTHMUS_REST), in the order of the stream. Errors: as isthmus_stream_copy(). */
ISTHMUS_C_API isthmus_code isthmus_stream_fill(isthmus_stream* stream, isthmus_buffer* buffer, uint64_t offset,
                                               uint64_t bytes, uint8_t value, isthmus_error** error);
/* The same with an element of 1, 2, 4, 8 or 16 bytes, such as a float: one driver call for up to 4 bytes, and for those
 * that repeat. `offset` and `bytes` count bytes and are multiples of `element_bytes`. Also invalid_argument: another
 * size, no multiple, adopted memory that does not begin at one. */
ISTHMUS_C_API isthmus_code isthmus_stream_fill_elements(isthmus_stream* stream, isthmus_buffer* buffer, uint64_t offset,
                                                        uint64_t bytes, const void* element, uint64_t element_bytes,
                                                        isthmus_error** error);
/* Frees an event; streams that wait for it go on waiting. */
ISTHMUS_C_API void isthmus_event_free(isthmus_event* event);
/* Whether all work before the record has ended: 1 or 0. Does not wait. Errors: device_lost. */
ISTHMUS_C_API isthmus_code isthmus_event_finished(const isthmus_event* event, int32_t* finished, isthmus_error** error);
/* Waits until it has. Errors: timed_out, not_ready, device_lost. */
ISTHMUS_C_API isthmus_code isthmus_event_synchronize(const isthmus_event* event, int64_t wait_ns,
                                                     isthmus_error** error);
/* Its CUevent, for other code to wait for, valid while the handle lives; NULL on the CPU device, whose work is done. */
ISTHMUS_C_API isthmus_code isthmus_event_native_handle(const isthmus_event* event, void** cu_event,
                                                       isthmus_error** error);

/* ---- Kernels that C++ code registered (<isthmus/c_kernels.hpp>), by name */

/* One argument: a buffer, or a value with its size. The other fields are 0. */
typedef struct isthmus_argument {
    isthmus_buffer* buffer;
    const void* value;
    size_t value_bytes;
} isthmus_argument;
/* A registered kernel; NULL: none of this name. Never freed. */
ISTHMUS_C_API const void* isthmus_kernel_by_name(const char* name);
/* How many kernels are registered. */
ISTHMUS_C_API size_t isthmus_kernel_count(void);
/* The name of a registered kernel, in the order of registration; NULL beyond the end. */
ISTHMUS_C_API const char* isthmus_kernel_name(size_t index);
/* Its parameters as its source declares them: "Index i, View<float> out"; NULL for what is not a kernel. */
ISTHMUS_C_API const char* isthmus_kernel_parameters(const void* kernel);
/* The dimensions of its index space: 1, 2, 3, or 0 for a block kernel, whose extent counts blocks; -1: no kernel. */
ISTHMUS_C_API int32_t isthmus_kernel_rank(const void* kernel);
/* Runs a registered kernel over extent[0] × extent[1] × extent[2] items. A View, Out or AtomicView takes a whole
 * buffer, a value its exact bytes; dimensions that the kernel does not have are 1. The call does not wait. Errors:
 * invalid_argument (names kernel, argument and what it takes), in_use, not_accessible, wrong_device, no_gpu_code,
 * capture_error, device_lost. A refused launch changes nothing. */
ISTHMUS_C_API isthmus_code isthmus_stream_launch(isthmus_stream* stream, const void* kernel, const uint64_t extent[3],
                                                 const isthmus_argument* arguments, size_t count,
                                                 isthmus_error** error);
/* For <isthmus/c_kernels.hpp> alone: registers an isthmus::KernelInfo, which stays where it is. `abi` is that of its
 * header. Errors: invalid_argument (another ABI, an empty name), in_use (another kernel has the name). */
ISTHMUS_C_API isthmus_code isthmus_kernel_register(const char* name, const void* info, size_t info_bytes, uint32_t abi,
                                                   isthmus_error** error);
/* Of libisthmus-c-camera.so.1: registers the kernels of <isthmus/kernels/camera.hpp> as "camera.to_gray", …. May be
 * called again. Errors: in_use (the program gave one of the names to another kernel), out_of_memory. */
ISTHMUS_C_API isthmus_code isthmus_camera_register_kernels(isthmus_error** error);

/* ---- Modules: ready-made GPU code (a cubin, a fatbin or PTX) */

/* A parameter of an entry. `flags` 0: a value of `bytes` bytes; ISTHMUS_READ, ISTHMUS_WRITE or both: a pointer to
 * elements of `bytes` bytes. `alignment` of a value; 0: its size, a power of two up to 16. `reserved` is 0. */
typedef struct isthmus_parameter {
    uint32_t flags;
    uint32_t bytes;
    uint32_t alignment;
    uint32_t reserved;
} isthmus_parameter;
/* As <<<grid, block, shared>>>; a cluster of 0: as the kernel was compiled. */
typedef struct isthmus_launch_shape {
    size_t size;
    uint64_t grid[3];
    uint64_t block[3];
    uint64_t cluster[3];
    uint64_t shared_bytes;
} isthmus_launch_shape;
#define ISTHMUS_LAUNCH_SHAPE_INIT \
    { sizeof(isthmus_launch_shape), {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, 0 }
/* What runs in place of an entry on the CPU device and on simulated machines: run() is called once for the whole grid,
 * with a pointer to each parameter (of memory: to its address). Threads of the library call it; it must not throw. */
typedef struct isthmus_stand_in {
    const char* entry;
    const isthmus_parameter* parameters;
    size_t parameter_count;
    void (*run)(void* context, const isthmus_launch_shape* shape, void* const* parameters);
    void* context; /* must live as long as the module and what it launched */
} isthmus_stand_in;
typedef struct isthmus_module_options {
    size_t size;
    const char* cache_folder; /* keeps what the driver makes of PTX; must exist. NULL: the driver's own cache */
    const isthmus_stand_in* stand_ins;
    size_t stand_in_count;
} isthmus_module_options;
#define ISTHMUS_MODULE_OPTIONS_INIT \
    { sizeof(isthmus_module_options), NULL, NULL, 0 }
/* Loads an image from memory, which may go when the call returns. `options` may be NULL. Errors: no_gpu_code (not for
 * this GPU; damaged; PTX that does not compile, with the compiler's words), in_use, out_of_memory, device_lost. */
ISTHMUS_C_API isthmus_code isthmus_device_load_module(isthmus_device* device, const void* image, size_t bytes,
                                                      const isthmus_module_options* options, isthmus_module** module,
                                                      isthmus_error** error);
/* The same from a file. Also: system_error, not_permitted. */
ISTHMUS_C_API isthmus_code isthmus_device_load_module_file(isthmus_device* device, const char* path,
                                                           const isthmus_module_options* options,
                                                           isthmus_module** module, isthmus_error** error);
/* Frees the handle. The code is unloaded behind the last kernel handle and the last launch. */
ISTHMUS_C_API void isthmus_module_free(isthmus_module* module);
/* How many entries can be read from the image: all, unless it is compressed. */
ISTHMUS_C_API size_t isthmus_module_entry_count(const isthmus_module* module);
/* The name of an entry; NULL beyond the end. */
ISTHMUS_C_API const char* isthmus_module_entry(const isthmus_module* module, size_t index);
/* Finds an entry and declares its parameters, which are compared with the image's. Errors: invalid_argument (no such
 * entry; other parameters), unsupported (a stand-in is missing), device_lost. */
ISTHMUS_C_API isthmus_code isthmus_module_find(const isthmus_module* module, const char* entry,
                                               const isthmus_parameter* parameters, size_t count,
                                               isthmus_module_kernel** kernel, isthmus_error** error);
/* Frees the handle. */
ISTHMUS_C_API void isthmus_module_kernel_free(isthmus_module_kernel* kernel);
/* Launches a kernel of a module; arguments as in isthmus_stream_launch(). Errors: as there; invalid_argument (a shape
 * beyond the limits of the device or the kernel). */
ISTHMUS_C_API isthmus_code isthmus_stream_launch_module(isthmus_stream* stream, const isthmus_module_kernel* kernel,
                                                        const isthmus_launch_shape* shape,
                                                        const isthmus_argument* arguments, size_t count,
                                                        isthmus_error** error);

/* ---- Frames between processes. One thread at a time uses a ring, a reader or a frame */

typedef struct isthmus_shared_ring_options {
    size_t size;
    uint32_t slots;              /* 2 to 256 */
    uint32_t policy;             /* 0: overwrite what a slow reader holds; 1: wait until reader_deadline_ns */
    uint32_t rights;             /* of the readers: 0 read only, 1 read and write */
    uint32_t most_readers;       /* 1 to 64 */
    uint64_t reader_deadline_ns; /* 0: 1 s */
    isthmus_shared_use use;      /* by this process */
    uint32_t element_bytes;      /* for readers in C++ that want elements of that size; 0: 1 */
    uint32_t waiting;            /* 0 adaptive, 1 spin, 2 sleep */
} isthmus_shared_ring_options;
#define ISTHMUS_SHARED_RING_OPTIONS_INIT                                       \
    {                                                                          \
        sizeof(isthmus_shared_ring_options), 4, 0, 0, 16, 0,                   \
            {sizeof(isthmus_shared_use), 4, 1, 0, 0, 0, 0, 0, {0, 0, 0}}, 0, 0 \
    }
typedef struct isthmus_shared_reader_options {
    size_t size;
    isthmus_shared_use use; /* by this process */
    uint64_t most_bytes;    /* that the ring may make this process map; 0: 4 GiB */
    uint64_t frame_bytes;   /* a ring with frames of another size is refused; 0: any */
    uint32_t waiting;       /* 0 adaptive, 1 spin, 2 sleep */
    uint32_t reserved;
} isthmus_shared_reader_options;
#define ISTHMUS_SHARED_READER_OPTIONS_INIT \
    { sizeof(isthmus_shared_reader_options), {sizeof(isthmus_shared_use), 1, 1, 0, 0, 0, 0, 0, {0, 0, 0}}, 0, 0, 0, 0 }
/* Makes a ring of frames of frame_bytes each, initially zero. `options` may be NULL. Errors: invalid_argument,
 * unsupported (also: a build without the component ipc), out_of_memory, system_limit. */
ISTHMUS_C_API isthmus_code isthmus_shared_ring_create(isthmus_device* device, uint64_t frame_bytes,
                                                      const isthmus_shared_ring_options* options,
                                                      isthmus_shared_ring** ring, isthmus_error** error);
/* Admits one reader, which gets the frames from the next one on. Send the descriptor to its process, then free it.
 * Errors: in_use (most_readers are there), ended, system_limit. */
ISTHMUS_C_API isthmus_code isthmus_shared_ring_admit(isthmus_shared_ring* ring, isthmus_descriptor** descriptor,
                                                     isthmus_error** error);
/* A frame to fill, through isthmus_frame_buffer(). Two fewer than there are slots may be held, at least one; they are
 * published in the order in which they were begun. Errors: timed_out, not_ready, ended, in_use (so many are held). */
ISTHMUS_C_API isthmus_code isthmus_shared_ring_begin(isthmus_shared_ring* ring, int64_t wait_ns, isthmus_frame** frame,
                                                     isthmus_error** error);
/* How many frames were published. */
ISTHMUS_C_API uint64_t isthmus_shared_ring_published(const isthmus_shared_ring* ring);
/* No more frames come: readers get the remaining ones, then ISTHMUS_ENDED. */
ISTHMUS_C_API void isthmus_shared_ring_close(isthmus_shared_ring* ring);
/* Frees the ring; the ring ends behind its last frame. */
ISTHMUS_C_API void isthmus_shared_ring_free(isthmus_shared_ring* ring);
/* The producer's frame: waits for device work that writes it, then shows it to all readers. Frees it where it answers
 * ISTHMUS_OK. Errors, behind which the call may be repeated: in_use (a view is open), timed_out, not_ready. */
ISTHMUS_C_API isthmus_code isthmus_frame_publish(isthmus_frame* frame, int64_t wait_ns, isthmus_error** error);
/* The reader's frame: waits for device work that reads it. Frees it where it answers ISTHMUS_OK: the frame was whole,
 * and results from it are valid. overtaken: it was overwritten meanwhile; results are invalid, and the frame is free
 * for nothing but isthmus_frame_free(). Others as above; peer_broke_rules. */
ISTHMUS_C_API isthmus_code isthmus_frame_finish(isthmus_frame* frame, int64_t wait_ns, isthmus_error** error);
/* Its memory (borrowed until the frame is freed; isthmus_buffer_ref() keeps the memory, not its content). Bytes of
 * another process may have any value. */
ISTHMUS_C_API isthmus_buffer* isthmus_frame_buffer(isthmus_frame* frame);
/* Its number, from 0. */
ISTHMUS_C_API uint64_t isthmus_frame_number(const isthmus_frame* frame);
/* Of a reader's frame: how many frames were overwritten between the previous one and this one. */
ISTHMUS_C_API uint64_t isthmus_frame_missed(const isthmus_frame* frame);
/* Frees a frame: a producer's unpublished one is abandoned, and its number goes to the next, or, where a later one was
 * begun already, is missed by readers; a reader's one is finished. */
ISTHMUS_C_API void isthmus_frame_free(isthmus_frame* frame);
/* Opens the ring that a descriptor names. Takes the file descriptors in every case, also on failure. Errors:
 * invalid_argument (no such descriptor), peer_broke_rules, out_of_memory, those of isthmus_device_adopt(). */
ISTHMUS_C_API isthmus_code isthmus_shared_reader_open(isthmus_device* device, const void* bytes, size_t size,
                                                      const int* fds, size_t fd_count, isthmus_shared_reader** reader,
                                                      isthmus_error** error);
/* The same with options, which may be NULL. */
ISTHMUS_C_API isthmus_code isthmus_shared_reader_open_with(isthmus_device* device, const void* bytes, size_t size,
                                                           const int* fds, size_t fd_count,
                                                           const isthmus_shared_reader_options* options,
                                                           isthmus_shared_reader** reader, isthmus_error** error);
/* The next frame. Errors: timed_out, not_ready, ended (the ring was closed), peer_lost, peer_broke_rules, in_use (the
 * slot's previous frame is still held). */
ISTHMUS_C_API isthmus_code isthmus_shared_reader_next(isthmus_shared_reader* reader, int64_t wait_ns,
                                                      isthmus_frame** frame, isthmus_error** error);
/* The size of a frame. */
ISTHMUS_C_API uint64_t isthmus_shared_reader_frame_bytes(const isthmus_shared_reader* reader);
/* Frees the reader; the producer then stops counting it, behind its last frame. */
ISTHMUS_C_API void isthmus_shared_reader_free(isthmus_shared_reader* reader);
/* The bytes to send; `size` gets their number. They live as long as the descriptor. */
ISTHMUS_C_API const void* isthmus_descriptor_bytes(const isthmus_descriptor* descriptor, size_t* size);
/* The file descriptors to send with them, in this order (SCM_RIGHTS); `count` gets their number. The descriptor owns
 * them and closes them when it is freed: the system duplicates what is sent. */
ISTHMUS_C_API const int* isthmus_descriptor_fds(const isthmus_descriptor* descriptor, size_t* count);
/* Frees a descriptor and closes its files. While it is open here, the ring does not notice that the reader is gone. */
ISTHMUS_C_API void isthmus_descriptor_free(isthmus_descriptor* descriptor);

/* ---- Channels: messages and file descriptors to another process of this user. One thread at a time uses one */

/* Listens in a directory, which is created with mode 0700 where it is missing, but not its parents; one listener in
 * each. Processes of other users are refused. Errors: not_permitted (others may enter the directory), in_use (another
 * listener is there), unsupported (a build without the component channel), system_error. */
ISTHMUS_C_API isthmus_code isthmus_listener_create(const char* directory, isthmus_listener** listener,
                                                   isthmus_error** error);
/* The next process that connects. ISTHMUS_WAIT_DEFAULT: for 1 s. Errors: timed_out, not_ready; those of one connection
 * (not_permitted, peer_lost, peer_broke_rules), behind which the listener goes on. */
ISTHMUS_C_API isthmus_code isthmus_listener_accept(isthmus_listener* listener, int64_t wait_ns,
                                                   isthmus_channel** channel, isthmus_error** error);
/* For poll(), owned by the listener: readable when isthmus_listener_accept() may go on; -1 for NULL. */
ISTHMUS_C_API int isthmus_listener_fd(const isthmus_listener* listener);
/* Frees a listener and removes its name. */
ISTHMUS_C_API void isthmus_listener_free(isthmus_listener* listener);
/* Connects to the listener of a directory. Errors: peer_lost (there is none), not_permitted, timed_out,
 * peer_broke_rules, unsupported (a build without the component channel). */
ISTHMUS_C_API isthmus_code isthmus_channel_connect(const char* directory, isthmus_channel** channel,
                                                   isthmus_error** error);
/* Sends a message of at most 16 KiB with at most 16 file descriptors, which stay the caller's. `kind` is the program's
 * own number. Waits for at most 1 s for room. Errors: invalid_argument (too large; the channel goes on), peer_lost,
 * timed_out. */
ISTHMUS_C_API isthmus_code isthmus_channel_send(isthmus_channel* channel, uint32_t kind, const void* bytes, size_t size,
                                                const int* fds, size_t fd_count, isthmus_error** error);
/* The next message. timed_out or not_ready: none came, and the channel goes on. ISTHMUS_WAIT_DEFAULT: the peer owes
 * one; without it for 1 s the channel ends. Other errors end it: peer_lost, peer_broke_rules. */
ISTHMUS_C_API isthmus_code isthmus_channel_receive(isthmus_channel* channel, int64_t wait_ns, isthmus_message** message,
                                                   isthmus_error** error);
/* For poll(), owned by the channel: readable when a message or the peer's end has come; -1 for NULL. */
ISTHMUS_C_API int isthmus_channel_fd(const isthmus_channel* channel);
/* The process at the other end, as the kernel tells it; 0: it is in another pid namespace. */
ISTHMUS_C_API int32_t isthmus_channel_peer_pid(const isthmus_channel* channel);
/* Frees a channel. The peer gets peer_lost behind the last message. */
ISTHMUS_C_API void isthmus_channel_free(isthmus_channel* channel);
/* The sender's number. */
ISTHMUS_C_API uint32_t isthmus_message_kind(const isthmus_message* message);
/* Its bytes, which another process wrote; `size` gets their number. */
ISTHMUS_C_API const void* isthmus_message_bytes(const isthmus_message* message, size_t* size);
/* Its file descriptors; `count` gets their number. The message closes them when it is freed, unless they were taken. */
ISTHMUS_C_API const int* isthmus_message_fds(const isthmus_message* message, size_t* count);
/* Gives the file descriptors to the caller, who then hands them to isthmus_shared_reader_open() or closes them. The
 * numbers that isthmus_message_fds() answered stay readable. */
ISTHMUS_C_API void isthmus_message_take_fds(isthmus_message* message);
/* Frees a message, and closes its file descriptors unless they were taken. */
ISTHMUS_C_API void isthmus_message_free(isthmus_message* message);

/* ---- DLPack 1.x: DLManagedTensorVersioned of dlpack.h. Tensors come from scopes, never from buffers */

struct DLManagedTensorVersioned;
/* A tensor of the first bytes of a view, as kDLCPU. `dtype`: code | bits << 8 | lanes << 16 of its DLDataType, whole
 * bytes. The view stays open until the tensor's deleter has been called and the view's handle is freed. A view opened
 * for reading gives a tensor that is marked read-only. Errors: invalid_argument (it does not fit; ndim beyond 64). */
ISTHMUS_C_API isthmus_code isthmus_host_view_to_dlpack(isthmus_host_view* view, const int64_t* shape, int32_t ndim,
                                                       uint32_t dtype, struct DLManagedTensorVersioned** tensor,
                                                       isthmus_error** error);
/* A tensor of use number `index` of a scope: kDLCUDA, or kDLCPU on the CPU device. It keeps the memory, not the claim:
 * closing the scope ends that, and the tensor is then of no use until it is deleted. Errors: as above. */
ISTHMUS_C_API isthmus_code isthmus_native_scope_to_dlpack(isthmus_native_scope* scope, size_t index,
                                                          const int64_t* shape, int32_t ndim, uint32_t dtype,
                                                          struct DLManagedTensorVersioned** tensor,
                                                          isthmus_error** error);
/* Adopts a tensor's memory, in C order without gaps, as isthmus_device_adopt(). On success the library calls its
 * deleter behind the last use; otherwise the caller keeps it. Read-only tensors give buffers that both sides read:
 * uses that write are not_accessible. `after` may be NULL: the first use waits for it. Errors: as
 * isthmus_device_adopt(); unsupported (another version of DLPack, another kind of device, gaps, other orders). */
ISTHMUS_C_API isthmus_code isthmus_device_adopt_dlpack(isthmus_device* device, struct DLManagedTensorVersioned* tensor,
                                                       isthmus_event* after, isthmus_buffer** buffer,
                                                       isthmus_error** error);
#ifdef __cplusplus
}
#endif
#endif
