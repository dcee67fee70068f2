// SPDX-License-Identifier: Apache-2.0
// Versions, the names of enumerators, and that the numbers of isthmus.h are those of the C++ enumerations.
#include <isthmus/access.hpp>
#include <isthmus/capability.hpp>
#include <isthmus/log.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/result.hpp>
#include <isthmus/sharing_use.hpp>
#include <isthmus/version.hpp>

#include "calls.hpp"

namespace {

using namespace isthmus;

template <class E>
constexpr bool same(std::initializer_list<std::pair<int, E>> all) {
    for (const auto& [number, enumerator] : all) {
        if (number != static_cast<int>(enumerator)) return false;
    }
    return true;
}

static_assert(same<Code>({{ISTHMUS_OK, Code::ok},
                          {ISTHMUS_INVALID_ARGUMENT, Code::invalid_argument},
                          {ISTHMUS_WRONG_DEVICE, Code::wrong_device},
                          {ISTHMUS_NOT_ACCESSIBLE, Code::not_accessible},
                          {ISTHMUS_IN_USE, Code::in_use},
                          {ISTHMUS_UNSUPPORTED, Code::unsupported},
                          {ISTHMUS_OUT_OF_MEMORY, Code::out_of_memory},
                          {ISTHMUS_NOT_PERMITTED, Code::not_permitted},
                          {ISTHMUS_TIMED_OUT, Code::timed_out},
                          {ISTHMUS_NOT_READY, Code::not_ready},
                          {ISTHMUS_DEVICE_LOST, Code::device_lost},
                          {ISTHMUS_NO_DRIVER, Code::no_driver},
                          {ISTHMUS_DRIVER_TOO_OLD, Code::driver_too_old},
                          {ISTHMUS_DRIVER_MISMATCH, Code::driver_mismatch},
                          {ISTHMUS_NO_DEVICE, Code::no_device},
                          {ISTHMUS_SYSTEM_LIMIT, Code::system_limit},
                          {ISTHMUS_NO_GPU_CODE, Code::no_gpu_code},
                          {ISTHMUS_INVALID_HANDLE, Code::invalid_handle},
                          {ISTHMUS_FORKED, Code::forked},
                          {ISTHMUS_DRIVER_ERROR, Code::driver_error},
                          {ISTHMUS_SYSTEM_ERROR, Code::system_error},
                          {ISTHMUS_CAPTURE_ERROR, Code::capture_error},
                          {ISTHMUS_UNVERIFIED, Code::unverified},
                          {ISTHMUS_ALREADY_RELEASED, Code::already_released},
                          {ISTHMUS_INTERIOR_POINTER, Code::interior_pointer},
                          {ISTHMUS_UNKNOWN_POINTER, Code::unknown_pointer},
                          {ISTHMUS_NOT_ORDERED, Code::not_ordered},
                          {ISTHMUS_PEER_LOST, Code::peer_lost},
                          {ISTHMUS_PEER_BROKE_RULES, Code::peer_broke_rules},
                          {ISTHMUS_OVERTAKEN, Code::overtaken},
                          {ISTHMUS_ENDED, Code::ended}}));
static_assert(same<MemoryKind>({{ISTHMUS_KIND_UNKNOWN, MemoryKind::unknown},
                                {ISTHMUS_KIND_HOST, MemoryKind::host},
                                {ISTHMUS_KIND_PINNED, MemoryKind::pinned},
                                {ISTHMUS_KIND_REGISTERED, MemoryKind::registered},
                                {ISTHMUS_KIND_WRITE_COMBINED, MemoryKind::write_combined},
                                {ISTHMUS_KIND_DEVICE, MemoryKind::device},
                                {ISTHMUS_KIND_POOL, MemoryKind::pool},
                                {ISTHMUS_KIND_MANAGED, MemoryKind::managed},
                                {ISTHMUS_KIND_MANAGED_POOL, MemoryKind::managed_pool},
                                {ISTHMUS_KIND_GRAPH, MemoryKind::graph},
                                {ISTHMUS_KIND_VMM, MemoryKind::vmm},
                                {ISTHMUS_KIND_HOST_NUMA, MemoryKind::host_numa},
                                {ISTHMUS_KIND_IMPORTED, MemoryKind::imported}}));
static_assert(same<Use>({{ISTHMUS_USE_NEVER, Use::never},
                         {ISTHMUS_USE_READS_ONCE, Use::reads_once},
                         {ISTHMUS_USE_READS_OFTEN, Use::reads_often},
                         {ISTHMUS_USE_WRITES_ONCE, Use::writes_once},
                         {ISTHMUS_USE_WRITES_OFTEN, Use::writes_often},
                         {ISTHMUS_USE_READS_AND_WRITES, Use::reads_and_writes}}));
static_assert(same<Prefer>({{ISTHMUS_PREFER_THROUGHPUT, Prefer::throughput},
                            {ISTHMUS_PREFER_LATENCY, Prefer::latency}}));
static_assert(same<LaunchPath>({{ISTHMUS_PATH_PASS, LaunchPath::pass},
                                {ISTHMUS_PATH_ATTACH, LaunchPath::attach},
                                {ISTHMUS_PATH_STAGE, LaunchPath::stage},
                                {ISTHMUS_PATH_REFUSE, LaunchPath::refuse},
                                {ISTHMUS_PATH_PREFETCH, LaunchPath::prefetch}}));
static_assert(same<LaunchMode>({{ISTHMUS_MODE_RELAXED, LaunchMode::relaxed},
                                {ISTHMUS_MODE_CHECKED, LaunchMode::checked},
                                {ISTHMUS_MODE_STRICT, LaunchMode::strict},
                                {ISTHMUS_MODE_STAGED, LaunchMode::staged},
                                {ISTHMUS_MODE_VERIFY, LaunchMode::verify}}));
static_assert(same<Model>({{ISTHMUS_MODEL_CPU, Model::cpu},
                           {ISTHMUS_MODEL_DISCRETE, Model::discrete},
                           {ISTHMUS_MODEL_HMM, Model::hmm},
                           {ISTHMUS_MODEL_INTEGRATED, Model::integrated},
                           {ISTHMUS_MODEL_ATS, Model::ats},
                           {ISTHMUS_MODEL_C2C, Model::c2c}}));
static_assert(same<Severity>({{ISTHMUS_SEVERITY_INFO, Severity::info},
                              {ISTHMUS_SEVERITY_WARNING, Severity::warning},
                              {ISTHMUS_SEVERITY_ERROR, Severity::error}}));
static_assert(same<State>(
    {{ISTHMUS_STATE_NO, State::no}, {ISTHMUS_STATE_YES, State::yes}, {ISTHMUS_STATE_PROBED, State::probed}}));
static_assert(same<Origin>({{ISTHMUS_ORIGIN_ATTRIBUTE, Origin::attribute},
                            {ISTHMUS_ORIGIN_PROBE, Origin::probe},
                            {ISTHMUS_ORIGIN_ABSENT, Origin::absent},
                            {ISTHMUS_ORIGIN_REFUSED, Origin::refused}}));
static_assert(same<Feature>({{ISTHMUS_FEATURE_PAGEABLE_ACCESS, Feature::pageable_access},
                             {ISTHMUS_FEATURE_HOST_PAGE_TABLES, Feature::host_page_tables},
                             {ISTHMUS_FEATURE_MANAGED, Feature::managed},
                             {ISTHMUS_FEATURE_CONCURRENT_MANAGED, Feature::concurrent_managed},
                             {ISTHMUS_FEATURE_DIRECT_MANAGED, Feature::direct_managed},
                             {ISTHMUS_FEATURE_UNIFIED_ADDRESSING, Feature::unified_addressing},
                             {ISTHMUS_FEATURE_INTEGRATED, Feature::integrated},
                             {ISTHMUS_FEATURE_NATIVE_ATOMICS, Feature::native_atomics},
                             {ISTHMUS_FEATURE_PARTIAL_ATOMICS, Feature::partial_atomics},
                             {ISTHMUS_FEATURE_HOST_REGISTER, Feature::host_register},
                             {ISTHMUS_FEATURE_HOST_REGISTER_READ_ONLY, Feature::host_register_read_only},
                             {ISTHMUS_FEATURE_REGISTERED_SAME_POINTER, Feature::registered_same_pointer},
                             {ISTHMUS_FEATURE_POOLS, Feature::pools},
                             {ISTHMUS_FEATURE_HOST_POOLS, Feature::host_pools},
                             {ISTHMUS_FEATURE_HOST_NUMA_POOLS, Feature::host_numa_pools},
                             {ISTHMUS_FEATURE_VIRTUAL_MEMORY, Feature::virtual_memory},
                             {ISTHMUS_FEATURE_HOST_VIRTUAL_MEMORY, Feature::host_virtual_memory},
                             {ISTHMUS_FEATURE_HOST_NUMA_VIRTUAL_MEMORY, Feature::host_numa_virtual_memory},
                             {ISTHMUS_FEATURE_EXPORT_POSIX_FD, Feature::export_posix_fd},
                             {ISTHMUS_FEATURE_EXPORT_FABRIC, Feature::export_fabric},
                             {ISTHMUS_FEATURE_IPC_EVENTS, Feature::ipc_events},
                             {ISTHMUS_FEATURE_GPUDIRECT_RDMA, Feature::gpudirect_rdma},
                             {ISTHMUS_FEATURE_DMA_BUF, Feature::dma_buf},
                             {ISTHMUS_FEATURE_HOST_DMA_BUF, Feature::host_dma_buf},
                             {ISTHMUS_FEATURE_MULTICAST, Feature::multicast},
                             {ISTHMUS_FEATURE_CONCURRENT_KERNELS, Feature::concurrent_kernels},
                             {ISTHMUS_FEATURE_KERNEL_TIMEOUT, Feature::kernel_timeout},
                             {ISTHMUS_FEATURE_COOPERATIVE_LAUNCH, Feature::cooperative_launch}}));
static_assert(ISTHMUS_FEATURE_HOST_DMA_BUF + 1 == feature_count, "a new feature belongs into isthmus.h");
static_assert(ISTHMUS_KIND_IMPORTED + 1 == memory_kind_count, "a new kind of memory belongs into isthmus.h");
static_assert(ISTHMUS_MODEL_C2C + 1 == model_count, "a new model belongs into isthmus.h");
static_assert(ISTHMUS_USE_READS_AND_WRITES + 1 == use_count, "a new use belongs into isthmus.h");

// "unknown" also for what the enumeration's type cannot hold.
template <class E>
const char* name_of(std::int32_t number) noexcept {
    if (number < 0 || number > 255) return "unknown";
    return c::kept_text(name(static_cast<E>(number)));
}

}  // namespace

uint32_t isthmus_version(void) {
    return ISTHMUS_VERSION;
}
const char* isthmus_version_text(void) {
    return ISTHMUS_VERSION_STRING;
}
uint32_t isthmus_c_version(void) {
    return ISTHMUS_C_VERSION;
}
const char* isthmus_code_name(int32_t code) {
    return name_of<Code>(code);
}
const char* isthmus_kind_name(int32_t kind) {
    return name_of<MemoryKind>(kind);
}
const char* isthmus_use_name(int32_t use) {
    return name_of<Use>(use);
}
const char* isthmus_path_name(int32_t path) {
    return name_of<LaunchPath>(path);
}
const char* isthmus_model_name(int32_t model) {
    return name_of<Model>(model);
}
int32_t isthmus_feature_count(void) {
    return feature_count;
}
const char* isthmus_feature_name(int32_t feature) {
    return name_of<Feature>(feature);
}
const char* isthmus_state_name(int32_t state) {
    return name_of<State>(state);
}
const char* isthmus_origin_name(int32_t origin) {
    return name_of<Origin>(origin);
}
