// SPDX-License-Identifier: Apache-2.0
// A driver that does no work: it records its calls and gives the answers that its build defines. For one thread.
//   FAKE_VERSION  the answer of cuDriverGetVersion       FAKE_INIT       the answer of cuInit
//   FAKE_DEVICES  the number of devices                  FAKE_STUB       every call answers 34, as the toolkit's stub
//   FAKE_SIMULATOR  it also exports the simulator's two functions
//   FAKE_LACKS    the exported name of a function that it lacks (with -D<name>=<another name>)
//   FAKE_WITHOUT_PROC_ADDRESS  it is older than cuGetProcAddress
//   FAKE_ABSURD   its device attributes are outside every documented range
#include "fake_seen.hpp"

#include <driver_abi/sim_registration.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#ifndef FAKE_VERSION
#define FAKE_VERSION 13000
#endif
#ifndef FAKE_INIT
#define FAKE_INIT 0
#endif
#ifndef FAKE_DEVICES
#define FAKE_DEVICES 2
#endif
#ifndef FAKE_LACKS
#define FAKE_LACKS ""
#endif
#define EXPORT extern "C" [[gnu::visibility("default")]]

using namespace isthmus::cuda_abi;

#define X(member, symbol, exported, version, need, parameters) EXPORT CUresult exported parameters;
#include "functions.def"
#undef X

namespace {

// A primary context. It dies when its last reference is released; the next one has the same handle and another id.
struct Primary {
    int retained = 0;
    bool dead = false;
    unsigned long long generation = 1;
};
constexpr std::uintptr_t first_context = 0xC0;

struct State {
    std::string calls;
    std::map<std::string, std::vector<CUresult>, std::less<>> planned;  // answers in order
    std::vector<CUcontext> stack;                                       // of the one thread that calls
    bool streams_need_context = false;
    std::uintptr_t last_handle = 0x1000;
    CUdeviceptr last_address = 0x70000000;
    unsigned last_flags = 0;
    unsigned grid[3] = {}, block[3] = {};
    Primary primary[4];
    CUstreamCaptureMode capture_mode = capture_mode::global;  // of the one thread that calls
    CUstreamCaptureStatus capture_status = capture_status::none;
    std::size_t capture_dependencies = 1;
    CUgraphExecUpdateResult update_result = graph_update::success;
    FakeSeen seen{};
    isthmus_sim_kernel twin{};
    std::vector<isthmus_sim_parameter> twin_parameters;
};
State& state() {
    static State it;
    return it;
}

Primary* primary_of(CUcontext context) {
    const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(context) - first_context;
    return at < 4 ? &state().primary[at] : nullptr;
}
// A reset leaves the references.
void die(Primary& primary) {
    primary.dead = true;
}

template <class Pointer>
void make_handle(Pointer* out) {
    *out = reinterpret_cast<Pointer>(state().last_handle += 0x10);
}

// Functions that a real driver answers with 201 where no context is current.
[[maybe_unused]] bool belongs_to_current_context(std::string_view function) {
    for (const std::string_view one :
         {"cuStreamCreateWithPriority", "cuEventCreate",          "cuMemAlloc_v2",       "cuMemFree_v2",
          "cuMemAllocManaged",          "cuMemHostAlloc",         "cuMemFreeHost",       "cuMemHostGetDevicePointer_v2",
          "cuMemHostRegister_v2",       "cuMemHostUnregister",    "cuMemHostGetFlags",   "cuMemGetInfo_v2",
          "cuModuleLoadData",           "cuModuleUnload",         "cuModuleGetFunction", "cuMemPoolCreate",
          "cuCtxEnablePeerAccess",      "cuCtxDisablePeerAccess", "cuMemAdvise",         "cuMemAdvise_v2",
          "cuGraphInstantiateWithFlags"}) {
        if (function == one) return true;
    }
    return false;
}
[[maybe_unused]] bool takes_a_stream(std::string_view function) {
    return function.starts_with("cuStream") || function.starts_with("cuEvent") || function.ends_with("Async") ||
           function.ends_with("Async_v2") || function == "cuLaunchKernel" || function == "cuGraphLaunch";
}
// With a dead context current every call answers 709 (observed), and so does work for a dead context's streams; all
// streams belong to the first device here.
[[maybe_unused]] bool meets_a_dead_context(std::string_view function) {
    for (const std::string_view one : {"cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2",
                                       "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuMemPoolDestroy"}) {
        if (function == one) return false;
    }
    const Primary* current = state().stack.empty() ? nullptr : primary_of(state().stack.back());
    if (current) return current->dead;
    return state().primary[0].dead && takes_a_stream(function);
}

}  // namespace

extern "C" CUresult fake_answer(const char* function);
extern "C" CUresult fake_answer(const char* function) {
#ifdef FAKE_STUB
    (void)function;
    return result::stub_library;
#else
    state().calls.append(function).append(" ");
    if (const auto planned = state().planned.find(function); planned != state().planned.end()) {
        std::vector<CUresult>& answers = planned->second;
        const CUresult code = answers.front();
        answers.erase(answers.begin());
        if (answers.empty()) state().planned.erase(planned);
        return code;
    }
    if (meets_a_dead_context(function)) return result::context_is_destroyed;
    const bool needs_context =
        belongs_to_current_context(function) || (state().streams_need_context && takes_a_stream(function));
    return needs_context && state().stack.empty() ? result::invalid_context : result::success;
#endif
}

// --- functions for tests
EXPORT const char* fake_calls() {
    return state().calls.c_str();
}
EXPORT void fake_reset() {
    state() = State{};
}
EXPORT void fake_clear() {
    state().calls.clear();
}
EXPORT void fake_fail(const char* function, int code) {
    state().planned[function].push_back(code);
}
EXPORT void fake_streams_need_context(int needed) {
    state().streams_need_context = needed != 0;
}
EXPORT void* fake_current() {
    return state().stack.empty() ? nullptr : state().stack.back();
}
EXPORT void fake_set_current(void* context) {
    state().stack.clear();
    if (context) state().stack.push_back(static_cast<CUcontext>(context));
}
EXPORT void fake_kill_context() {
    die(state().primary[0]);
}
EXPORT void fake_revive_context() {
    CUcontext context = nullptr;
    (void)cuDevicePrimaryCtxRetain(&context, 0);
}
EXPORT int fake_retained() {
    return state().primary[0].retained;
}
EXPORT void fake_set_capture_status(int status) {
    state().capture_status = status;
}
EXPORT void fake_set_capture_dependencies(std::size_t count) {
    state().capture_dependencies = count;
}
EXPORT void fake_set_update_result(int result) {
    state().update_result = result;
}
EXPORT int fake_capture_mode() {
    return state().capture_mode;
}
EXPORT const FakeSeen* fake_seen() {
    return &state().seen;
}
EXPORT unsigned fake_flags() {
    return state().last_flags;
}
EXPORT const unsigned* fake_grid() {
    return state().grid;
}
EXPORT const unsigned* fake_block() {
    return state().block;
}

#ifdef FAKE_SIMULATOR
EXPORT int isthmus_sim_register_kernel(const isthmus_sim_kernel* kernel) {
    state().twin = *kernel;
    state().twin_parameters.assign(kernel->parameter, kernel->parameter + kernel->parameter_count);  // as documented
    state().twin.parameter = state().twin_parameters.data();
    return fake_answer("isthmus_sim_register_kernel");
}
EXPORT const isthmus_sim_kernel* fake_twin() {
    return &state().twin;
}
EXPORT int isthmus_sim_fact(const char* key, char* value, size_t value_bytes) {
    static const std::map<std::string, std::string> facts = {{"nvidia_params.CoherentGPUMemoryMode", "driver"},
                                                             {"imex_channels_major", "242"},
                                                             {"imex_channel_files", "2"},
                                                             {"addressing_mode", "ATS"},
                                                             {"page_size_bytes", "65536"},
                                                             {"numa_nodes", "0:72:1024,1:0:2048,10:x:1"},
                                                             {"numa_cpus.0", "0-71"},
                                                             {"pci.0", "2500:8:32000:16:1:0-3,8"},
                                                             {"pci.1", "not a place"},
                                                             {"cpu_name", "a simulated one"}};
    const auto found = facts.find(key);
    if (found == facts.end()) return -1;
    const std::size_t length = std::min(found->second.size(), value_bytes - 1);
    std::memcpy(value, found->second.data(), length);
    value[length] = '\0';
    return static_cast<int>(found->second.size());
}
#endif

// --- driver functions that do more than answer
#ifndef FAKE_STUB
extern "C" CUresult cuDriverGetVersion(int* version) {
    *version = FAKE_VERSION;
    return fake_answer("cuDriverGetVersion");
}
extern "C" CUresult cuInit(unsigned) {
    const CUresult code = fake_answer("cuInit");
    return code ? code : FAKE_INIT;
}
extern "C" CUresult cuGetErrorString(CUresult, const char** text) {
    *text = "the driver's own words";
    return 0;
}
extern "C" CUresult cuDeviceGetCount(int* count) {
    *count = FAKE_DEVICES;
    return fake_answer("cuDeviceGetCount");
}
extern "C" CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    *device = ordinal;
    return fake_answer("cuDeviceGet");
}
extern "C" CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
#ifdef FAKE_ABSURD
    std::memset(name, 'x', static_cast<std::size_t>(size));  // without a terminator
    return 0;
#endif
    const std::string text = "fake device " + std::to_string(device);
    std::memcpy(name, text.c_str(), std::min(text.size() + 1, static_cast<std::size_t>(size)));
    return 0;
}
extern "C" CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
    std::memset(uuid->bytes, 0x40 + device, sizeof(uuid->bytes));
    return 0;
}
// The second device is a MIG instance: the older function names the GPU that contains it.
extern "C" CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice) {
    std::memset(uuid->bytes, 0x40, sizeof(uuid->bytes));
    return 0;
}
extern "C" CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice) {
#ifdef FAKE_ABSURD
    *bytes = ~std::size_t{0};
#else
    *bytes = std::size_t{1} << 34;
#endif
    return 0;
}
// Knows 1 to 140 and 150; refuses 128 with 801; every device differs in 88.
extern "C" CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute id, CUdevice device) {
    ++state().seen.attributes_asked;
#ifdef FAKE_ABSURD
    *value = FAKE_ABSURD;
    return 0;  // also for unknown attributes
#endif
    if (id == 128) return result::not_supported;
    if (id > 140 && id != 150) return result::invalid_value;
    *value = id == 88 ? device : id * 10;
    return 0;
}
extern "C" CUresult cuDeviceGetHostAtomicCapabilities(unsigned* answers, const CUatomicOperation* operations,
                                                      unsigned count, CUdevice) {
    for (unsigned i = 0; i < count; ++i) answers[i] = 100 + static_cast<unsigned>(operations[i]);
    return fake_answer("cuDeviceGetHostAtomicCapabilities");
}
extern "C" CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
    *context = reinterpret_cast<CUcontext>(first_context + static_cast<unsigned>(device));
    const CUresult code = fake_answer("cuDevicePrimaryCtxRetain");
    if (code != 0) return code;
    Primary& primary = *primary_of(*context);
    if (primary.dead) {
        primary.dead = false;
        ++primary.generation;
    }
    ++primary.retained;
    return code;
}
extern "C" CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    Primary& primary = state().primary[device];
    if (--primary.retained <= 0) die(primary);
    return fake_answer("cuDevicePrimaryCtxRelease_v2");
}
extern "C" CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
    if (const CUresult code = fake_answer("cuCtxGetId")) return code;
    const Primary* primary = primary_of(context);
    if (!primary) return result::invalid_context;
    if (primary->dead) return result::context_is_destroyed;
    *id = primary->generation * 100 + (reinterpret_cast<std::uintptr_t>(context) - first_context);
    return result::success;
}
extern "C" CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned) {
    state().seen.contexts[0] = peer;
    return fake_answer("cuCtxEnablePeerAccess");
}
extern "C" CUresult cuCtxDisablePeerAccess(CUcontext peer) {
    state().seen.contexts[0] = peer;
    return fake_answer("cuCtxDisablePeerAccess");
}
extern "C" CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
    *can = device < peer;
    return fake_answer("cuDeviceCanAccessPeer");
}
// Streams from 0xF0000 on belong to a context that other code created.
extern "C" CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
    const bool foreign = reinterpret_cast<std::uintptr_t>(stream) >= 0xF0000;
    *context = foreign || state().stack.empty() ? reinterpret_cast<CUcontext>(0xEE) : state().stack.back();
    return fake_answer("cuStreamGetCtx");
}
extern "C" CUresult cuStreamGetId(CUstream stream, unsigned long long* id) {
    *id = reinterpret_cast<std::uintptr_t>(stream) + 1000;
    return fake_answer("cuStreamGetId");
}
extern "C" CUresult cuStreamGetPriority(CUstream, int* priority) {
    *priority = -1;
    return fake_answer("cuStreamGetPriority");
}
extern "C" CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
    *flags = 0;
    *active = state().primary[device].retained > 0;
    return fake_answer("cuDevicePrimaryCtxGetState");
}
extern "C" CUresult cuCtxPushCurrent_v2(CUcontext context) {
    const CUresult code = fake_answer("cuCtxPushCurrent_v2");
    if (code == 0) state().stack.push_back(context);
    return code;
}
extern "C" CUresult cuCtxGetCurrent(CUcontext* context) {
    *context = state().stack.empty() ? nullptr : state().stack.back();
    return fake_answer("cuCtxGetCurrent");
}
extern "C" CUresult cuCtxPopCurrent_v2(CUcontext* context) {
    const CUresult code = fake_answer("cuCtxPopCurrent_v2");
    if (state().stack.empty()) return result::invalid_context;
    *context = state().stack.back();
    state().stack.pop_back();
    return code;
}
extern "C" CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t) {
    *address = state().last_address += 0x1000;
    return fake_answer("cuMemAlloc_v2");
}
extern "C" CUresult cuMemAllocAsync(CUdeviceptr* address, std::size_t, CUstream) {
    *address = state().last_address += 0x1000;
    return fake_answer("cuMemAllocAsync");
}
extern "C" CUresult cuMemAllocManaged(CUdeviceptr* address, std::size_t, unsigned flags) {
    *address = state().last_address += 0x1000;
    state().last_flags = flags;
    return fake_answer("cuMemAllocManaged");
}
extern "C" CUresult cuMemHostAlloc(void** host, std::size_t, unsigned flags) {
    *host = reinterpret_cast<void*>(state().last_address += 0x1000);
    state().last_flags = flags;
    return fake_answer("cuMemHostAlloc");
}
extern "C" CUresult cuMemHostRegister_v2(void*, std::size_t, unsigned flags) {
    state().last_flags = flags;
    return fake_answer("cuMemHostRegister_v2");
}
// The device address of host memory differs from the host address (attribute 91 = 0).
extern "C" CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* host, unsigned) {
    *address = reinterpret_cast<std::uintptr_t>(host) + 0x5;
    return fake_answer("cuMemHostGetDevicePointer_v2");
}
extern "C" CUresult cuStreamAttachMemAsync(CUstream, CUdeviceptr, std::size_t, unsigned flags) {
    state().last_flags = flags;
    return fake_answer("cuStreamAttachMemAsync");
}
extern "C" CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int) {
    make_handle(stream);
    state().last_flags = flags;
    return fake_answer("cuStreamCreateWithPriority");
}
extern "C" CUresult cuEventCreate(CUevent* event, unsigned flags) {
    make_handle(event);
    state().last_flags = flags;
    return fake_answer("cuEventCreate");
}
extern "C" CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
    make_handle(pool);
    state().seen.pool_properties = *properties;
    return fake_answer("cuMemPoolCreate");
}
extern "C" CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
    state().seen.pool = pool;
    state().seen.attribute = attribute;
    std::memcpy(&state().seen.attribute_value, value, sizeof(std::uint64_t));
    return fake_answer("cuMemPoolSetAttribute");
}
extern "C" CUresult cuMemPoolGetAttribute(CUmemoryPool, CUmemPool_attribute attribute, void* value) {
    const std::uint64_t answer = 1000 + static_cast<std::uint64_t>(attribute);
    std::memcpy(value, &answer, sizeof answer);
    return fake_answer("cuMemPoolGetAttribute");
}
extern "C" CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* access, std::size_t count) {
    state().seen.pool = pool;
    if (count == 1) state().seen.access = *access;
    return fake_answer("cuMemPoolSetAccess");
}
extern "C" CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    state().seen.pool = pool;
    return fake_answer("cuMemPoolDestroy");
}
extern "C" CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, std::size_t, CUmemoryPool pool, CUstream) {
    *address = state().last_address += 0x1000;
    state().seen.pool = pool;
    return fake_answer("cuMemAllocFromPoolAsync");
}
extern "C" CUresult cuMemFreeAsync(CUdeviceptr, CUstream stream) {
    state().seen.stream = stream;
    return fake_answer("cuMemFreeAsync");
}
extern "C" CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream) {
    state().seen.copy_2d = *copy;
    return fake_answer("cuMemcpy2DAsync_v2");
}
extern "C" CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream) {
    state().seen.copy_3d = *copy;
    return fake_answer("cuMemcpy3DAsync_v2");
}
extern "C" CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream) {
    state().seen.copy_3d_peer = *copy;
    return fake_answer("cuMemcpy3DPeerAsync");
}
extern "C" CUresult cuMemcpyPeerAsync(CUdeviceptr, CUcontext to, CUdeviceptr, CUcontext from, std::size_t, CUstream) {
    state().seen.contexts[0] = to;
    state().seen.contexts[1] = from;
    return fake_answer("cuMemcpyPeerAsync");
}
extern "C" CUresult cuMemsetD2D16Async(CUdeviceptr first, std::size_t pitch, unsigned short value, std::size_t width,
                                       std::size_t rows, CUstream) {
    state().seen.fill = {first, pitch, value, width, rows};
    return fake_answer("cuMemsetD2D16Async");
}
extern "C" CUresult cuMemPrefetchAsync(CUdeviceptr, std::size_t, CUdevice device, CUstream) {
    state().seen.device = device;
    return fake_answer("cuMemPrefetchAsync");
}
extern "C" CUresult cuMemPrefetchAsync_v2(CUdeviceptr, std::size_t, CUmemLocation location, unsigned, CUstream) {
    state().seen.location = location;
    return fake_answer("cuMemPrefetchAsync_v2");
}
extern "C" CUresult cuMemAdvise(CUdeviceptr, std::size_t, CUmem_advise advice, CUdevice device) {
    state().seen.advice = advice;
    state().seen.device = device;
    return fake_answer("cuMemAdvise");
}
extern "C" CUresult cuMemAdvise_v2(CUdeviceptr, std::size_t, CUmem_advise advice, CUmemLocation location) {
    state().seen.advice = advice;
    state().seen.location = location;
    return fake_answer("cuMemAdvise_v2");
}
static void keep_batch(const CUdeviceptr* addresses, const std::size_t* sizes, std::size_t count,
                       const CUmemLocation* places, const std::size_t* first_of, std::size_t place_count) {
    auto& batch = state().seen.batch;
    batch = {};
    batch.count = count;
    batch.place_count = place_count;
    for (std::size_t at = 0; at < count && at < 4; ++at) {
        batch.addresses[at] = addresses[at];
        batch.sizes[at] = sizes[at];
    }
    for (std::size_t at = 0; at < place_count && at < 4; ++at) {
        batch.places[at] = places[at];
        batch.first_of[at] = first_of[at];
    }
}
extern "C" CUresult cuMemPrefetchBatchAsync(CUdeviceptr* addresses, std::size_t* sizes, std::size_t count,
                                            CUmemLocation* places, std::size_t* first_of, std::size_t place_count,
                                            unsigned long long, CUstream) {
    keep_batch(addresses, sizes, count, places, first_of, place_count);
    return fake_answer("cuMemPrefetchBatchAsync");
}
extern "C" CUresult cuMemDiscardBatchAsync(CUdeviceptr* addresses, std::size_t* sizes, std::size_t count,
                                           unsigned long long, CUstream) {
    keep_batch(addresses, sizes, count, nullptr, nullptr, 0);
    return fake_answer("cuMemDiscardBatchAsync");
}
extern "C" CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr* addresses, std::size_t* sizes, std::size_t count,
                                                      CUmemLocation* places, std::size_t* first_of,
                                                      std::size_t place_count, unsigned long long, CUstream) {
    keep_batch(addresses, sizes, count, places, first_of, place_count);
    return fake_answer("cuMemDiscardAndPrefetchBatchAsync");
}
// Read mostly, preferred on node 3 of the host (before 12.2: the host), accessed by the second device, prefetched to
// it.
extern "C" CUresult cuMemRangeGetAttributes(void** answers, std::size_t* sizes, CUmem_range_attribute* asked,
                                            std::size_t count, CUdeviceptr, std::size_t) {
    constexpr int values[] = {0, 1, -1, 1, 1, 3, 3, 1, 1};
    state().seen.attributes = count;
    for (std::size_t at = 0; at < count; ++at) {
        int* const answer = static_cast<int*>(answers[at]);
        for (std::size_t next = 0; next < sizes[at] / sizeof(int); ++next) answer[next] = device_invalid;
        answer[0] = values[asked[at]];
    }
    return fake_answer("cuMemRangeGetAttributes");
}
extern "C" CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void*) {
    *handle = 0x77;
    return fake_answer("cuMemRetainAllocationHandle");
}
// Four pages are mapped at 0x1000.
extern "C" CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* asked, void** answers, CUdeviceptr) {
    for (unsigned at = 0; at < count; ++at) {
        const std::uint64_t value = asked[at] == pointer_attribute::mapping_size        ? 0x4000
                                    : asked[at] == pointer_attribute::mapping_base_addr ? 0x1000
                                                                                        : 0;
        if (value != 0) std::memcpy(answers[at], &value, sizeof(value));
    }
    return fake_answer("cuPointerGetAttributes");
}
extern "C" CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    if (const CUresult code = fake_answer("cuThreadExchangeStreamCaptureMode")) return code;
    std::swap(*mode, state().capture_mode);
    return result::success;
}
extern "C" CUresult cuStreamBeginCapture_v2(CUstream, CUstreamCaptureMode mode) {
    state().last_flags = static_cast<unsigned>(mode);
    return fake_answer("cuStreamBeginCapture_v2");
}
extern "C" CUresult cuStreamEndCapture(CUstream, CUgraph* graph) {
    const CUresult code = fake_answer("cuStreamEndCapture");
    *graph = nullptr;
    if (code == 0) make_handle(graph);
    return code;
}
extern "C" CUresult cuStreamIsCapturing(CUstream, CUstreamCaptureStatus* status) {
    *status = state().capture_status;
    return fake_answer("cuStreamIsCapturing");
}
extern "C" CUresult cuStreamGetCaptureInfo_v2(CUstream, CUstreamCaptureStatus* status, std::uint64_t* id,
                                              CUgraph* graph, const CUgraphNode** dependencies, std::size_t* count) {
    static const CUgraphNode nodes[] = {reinterpret_cast<CUgraphNode>(0x51), reinterpret_cast<CUgraphNode>(0x52)};
    *status = state().capture_status;
    if (*status == capture_status::active) {
        if (id) *id = 77;
        if (graph) *graph = reinterpret_cast<CUgraph>(0x61);
        if (dependencies) *dependencies = nodes;
        if (count) *count = state().capture_dependencies;
    }
    return fake_answer("cuStreamGetCaptureInfo_v2");
}
extern "C" CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, std::size_t count,
                                             CUgraph child) {
    *node = reinterpret_cast<CUgraphNode>(0x53);
    state().seen.parent = graph;
    state().seen.child = child;
    state().seen.dependencies = count;
    return fake_answer("cuGraphAddChildGraphNode");
}
extern "C" CUresult cuStreamUpdateCaptureDependencies(CUstream, CUgraphNode* nodes, std::size_t count, unsigned flags) {
    state().seen.node = count == 1 ? nodes[0] : nullptr;
    state().last_flags = flags;
    return fake_answer("cuStreamUpdateCaptureDependencies");
}
extern "C" CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec, CUgraphNode node,
                                                      const CUDA_KERNEL_NODE_PARAMS* parameters) {
    state().seen.node = node;
    state().seen.kernel_node = *parameters;
    std::memcpy(&state().seen.kernel_node_extent_x, parameters->kernelParams[0], sizeof(std::uint64_t));
    std::memcpy(&state().seen.kernel_node_value, parameters->kernelParams[1], sizeof(int));
    return fake_answer("cuGraphExecKernelNodeSetParams_v2");
}
extern "C" CUresult cuGraphExecUpdate_v2(CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo* told) {
    *told = {state().update_result, nullptr, nullptr};
    const CUresult code = fake_answer("cuGraphExecUpdate_v2");
    if (code != result::success) return code;
    return state().update_result == graph_update::success ? result::success : result::graph_exec_update_failure;
}
extern "C" CUresult cuGraphInstantiateWithFlags(CUgraphExec* instance, CUgraph, unsigned long long flags) {
    make_handle(instance);
    state().last_flags = static_cast<unsigned>(flags);
    return fake_answer("cuGraphInstantiateWithFlags");
}
extern "C" CUresult cuModuleLoadData(CUmodule* module, const void*) {
    make_handle(module);
    return fake_answer("cuModuleLoadData");
}
extern "C" CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char*) {
    make_handle(function);
    return fake_answer("cuModuleGetFunction");
}
extern "C" CUresult cuLaunchKernel(CUfunction, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                   unsigned block_y, unsigned block_z, unsigned, CUstream, void**, void**) {
    const unsigned grid[3] = {grid_x, grid_y, grid_z};
    const unsigned block[3] = {block_x, block_y, block_z};
    std::copy(grid, grid + 3, state().grid);
    std::copy(block, block + 3, state().block);
    return fake_answer("cuLaunchKernel");
}

#ifndef FAKE_WITHOUT_PROC_ADDRESS
// As in the real one: 1 where a version newer than the driver's is requested, NULL with 0 for unknown names.
EXPORT CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, unsigned long long, int* status) {
    *function = nullptr;
    *status = 1;
    if (version > FAKE_VERSION) return result::invalid_value;
#define X(member, asked, exported, since, need, parameters)                                                \
    if (std::strcmp(symbol, #asked) == 0 && version >= since && std::strcmp(#exported, FAKE_LACKS) != 0) { \
        *function = reinterpret_cast<void*>(&exported);                                                    \
        *status = 0;                                                                                       \
    }
#include "functions.def"
#undef X
    return result::success;
}
#endif
#endif
