// SPDX-License-Identifier: Apache-2.0
// Settings of contexts that programs set and read back. They change nothing about how simulated work runs.
#include "allocate.hpp"
#include "call.hpp"

#include <algorithm>

namespace isthmus::sim {
namespace {

enum Limit {
    stack = 0,
    printf_buffer = 1,
    heap = 2,
    pending_launches = 4,
    fetch_granularity = 5,
    persisting_cache = 6
};
constexpr int most_persisting_cache = 108;  // CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE

constexpr int affinity_of_multiprocessors = 0;  // CU_EXEC_AFFINITY_TYPE_SM_COUNT
constexpr int four_bytes = 1, eight_bytes = 2;  // CUsharedconfig; 0: the default

Result check_bank_size(int bank_size) {
    return bank_size >= 0 && bank_size <= eight_bytes ? result::ok : result::invalid_value;
}

// Values of a context that nobody changed; nullptr: 215. As drivers since 12 answer on GPUs since 7.5.
const std::size_t* first_value(int limit) {
    static constexpr std::size_t values[] = {1024, std::size_t{7} << 20, std::size_t{8} << 20, 0, 2048, 128, 0};
    const bool known = limit >= stack && limit <= persisting_cache && limit != 3;
    return known ? &values[limit] : nullptr;
}

}  // namespace

bool are_context_flags(unsigned flags) {
    constexpr unsigned schedules = 7, all = 0xff;
    const unsigned schedule = flags & schedules;
    return (flags & ~all) == 0 && (schedule & (schedule - 1)) == 0;
}

extern "C" {

Result cuCtxGetLimit(std::size_t* value, int limit) {
    return call_in_context(CallId::cuCtxGetLimit, [&](Driver& d, Context& context) -> Result {
        if (!value) return result::invalid_value;
        const std::size_t* const first = first_value(limit);
        if (!first) return result::unsupported_limit;
        const std::lock_guard lock(d.mutex);
        const auto set = context.limits.find(limit);
        *value = set != context.limits.end() ? set->second : *first;
        return result::ok;
    });
}

Result cuCtxSetLimit(int limit, std::size_t value) {
    return call_in_context(CallId::cuCtxSetLimit, [&](Driver& d, Context& context) -> Result {
        if (!first_value(limit)) return result::unsupported_limit;
        if (limit == fetch_granularity && value > 128) return result::invalid_value;  // documented: 0 to 128
        if (limit == persisting_cache) {
            // Documented: the driver takes the most that it has.
            const int most = std::max(0, d.fact(context.device, most_persisting_cache));
            value = std::min(value, static_cast<std::size_t>(most));
        }
        const std::lock_guard lock(d.mutex);
        if (limit == heap) value = std::max(value, std::size_t{4} << 20);  // as a driver 580 on an H200
        // Documented: it must be set before the first launch of a kernel that calls malloc() or free().
        if (limit == heap && heap_of(d, &context) != nullptr) return result::invalid_value;
        context.limits[limit] = value;
        return result::ok;
    });
}

Result cuCtxGetCacheConfig(int* preference) {
    return call_in_context(CallId::cuCtxGetCacheConfig, [&](Driver&, Context& context) -> Result {
        if (!preference) return result::invalid_value;
        *preference = context.cache_preference;
        return result::ok;
    });
}

Result cuCtxSetCacheConfig(int preference) {
    return call_in_context(CallId::cuCtxSetCacheConfig, [&](Driver&, Context& context) -> Result {
        if (preference < 0 || preference > 3) return result::invalid_value;
        context.cache_preference = preference;
        return result::ok;
    });
}

// Documented: GPUs since 5.0 have banks of four bytes, whatever is set.
Result cuCtxGetSharedMemConfig(int* bank_size) {
    return call_in_context(CallId::cuCtxGetSharedMemConfig, [&](Driver&, Context&) -> Result {
        if (!bank_size) return result::invalid_value;
        *bank_size = four_bytes;
        return result::ok;
    });
}

Result cuCtxSetSharedMemConfig(int bank_size) {
    return call_in_context(CallId::cuCtxSetSharedMemConfig,
                           [&](Driver&, Context&) { return check_bank_size(bank_size); });
}

Result cuFuncSetSharedMemConfig(Function* function, int bank_size) {
    return call_in_context(CallId::cuFuncSetSharedMemConfig, [&](Driver& d, Context&) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!d.functions.alive(function)) return lost_or_unknown(d.functions, function);
        return check_bank_size(bank_size);
    });
}

// Without the multi-process service a context has all multiprocessors of its device (580, H100).
Result cuCtxGetExecAffinity(ExecAffinity* affinity, int type) {
    return call_in_context(CallId::cuCtxGetExecAffinity, [&](Driver& d, Context& context) -> Result {
        if (!affinity || type != affinity_of_multiprocessors) return result::invalid_value;
        *affinity = {type, static_cast<unsigned>(std::max(0, d.fact(context.device, attribute::multiprocessors)))};
        return result::ok;
    });
}

Result cuDeviceGetExecAffinitySupport(int* supported, int type, DeviceOrdinal device) {
    return call(CallId::cuDeviceGetExecAffinitySupport, [&](Driver& d) -> Result {
        if (!supported || type != affinity_of_multiprocessors) return result::invalid_value;
        if (!d.valid(device)) return result::invalid_device;
        *supported = 0;
        return result::ok;
    });
}

// Nothing is kept in a cache here.
Result cuCtxResetPersistingL2Cache() {
    return call_in_context(CallId::cuCtxResetPersistingL2Cache,
                           [&](Driver&, Context&) -> Result { return result::ok; });
}

Result cuCtxSetFlags(unsigned flags) {
    return call_in_context(CallId::cuCtxSetFlags, [&](Driver& d, Context& context) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!are_context_flags(flags)) return result::invalid_value;
        context.flags = flags;
        return result::ok;
    });
}

// There is no profiler to start.
Result cuProfilerStart() {
    return call_in_context(CallId::cuProfilerStart, [](Driver&, Context&) -> Result { return result::ok; });
}

Result cuProfilerStop() {
    return call_in_context(CallId::cuProfilerStop, [](Driver&, Context&) -> Result { return result::ok; });
}

Result cuMemAllocPitch_v2(Address* address, std::size_t* pitch, std::size_t width, std::size_t height,
                          unsigned element_bytes) {
    return call_in_context(CallId::cuMemAllocPitch_v2, [&](Driver& d, Context& context) -> Result {
        constexpr std::size_t row_alignment = 512;  // of GPUs since 3.0
        if (!address || !pitch || width == 0 || height == 0) return result::invalid_value;
        if (element_bytes != 4 && element_bytes != 8 && element_bytes != 16) return result::invalid_value;
        std::size_t row = 0, bytes = 0;
        if (__builtin_add_overflow(width, row_alignment - 1, &row)) return result::out_of_memory;
        row -= row % row_alignment;
        if (__builtin_mul_overflow(row, height, &bytes)) return result::out_of_memory;
        if (const Result code = d.engine().unsafe_call()) return code;
        const std::lock_guard lock(d.mutex);
        const Region* const region = allocate_device_memory(d, context.device, &context, bytes);
        if (!region) return result::out_of_memory;
        *address = region->base;
        *pitch = row;
        return result::ok;
    });
}
}

}  // namespace isthmus::sim
