// SPDX-License-Identifier: Apache-2.0
// What other code gives a stream in the scenarios: driver calls on a CUstream; on the CPU device, the same at once.
#pragma once

#include "foreign_driver.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace conformance {

// Each returns a CUresult, as a library would; work of other code hands it on.
inline int set_numbers(void* cu_stream, std::int32_t* to, std::size_t count, std::int32_t value) {
    if (cu_stream == nullptr) return std::fill_n(to, count, value), 0;
    auto* const set = driver_function<int(std::uint64_t, unsigned, std::size_t, void*)>("cuMemsetD32Async");
    return set(reinterpret_cast<std::uintptr_t>(to), static_cast<unsigned>(value), count, cu_stream);
}
// Between addresses of the device: a copy by cuMemcpyAsync reads pageable memory before the stream comes to it.
inline int copy_numbers(void* cu_stream, std::int32_t* to, const std::int32_t* from, std::size_t count) {
    if (cu_stream == nullptr) return std::copy_n(from, count, to), 0;
    auto* const copy = driver_function<int(std::uint64_t, std::uint64_t, std::size_t, void*)>("cuMemcpyDtoDAsync_v2");
    return copy(reinterpret_cast<std::uintptr_t>(to), reinterpret_cast<std::uintptr_t>(from), count * sizeof *to,
                cu_stream);
}
// The same outside of enqueue_native(), which leaves no context current: a copy over two handles needs one, and memory
// in segments may lie in two.
inline int copy_in_context(const isthmus::Device& device, void* cu_stream, std::int32_t* to, const std::int32_t* from,
                           std::size_t count) {
    std::optional<ForeignContext> current;
    if (cu_stream != nullptr) current.emplace(device);
    return copy_numbers(cu_stream, to, from, count);
}
// Ends the scenario where such a call failed by plan.
inline void gave(int code) {
    if (code == 0) return;
    if (!fault_happened()) ADD_FAILURE() << "other code's call answered " << code;
    throw ScenarioEnded{};
}
inline void* current_context() {
    void* current = nullptr;
    driver_call(0, "cuCtxGetCurrent", &current);
    return current;
}

// A shared buffer of the kind that the runtime chooses, pinned, and managed where there is such memory.
inline std::vector<isthmus::Buffer<std::int32_t>> of_every_kind(isthmus::Device& device, std::size_t size) {
    std::vector<Buffer<std::int32_t>> all;
    all.push_back(device.allocate_shared<std::int32_t>(size).value());
    all.push_back(shared_numbers(device, size, MemoryKind::pinned));
    SharedUse managed;
    managed.kind = MemoryKind::managed;
    if (auto made = device.allocate_shared<std::int32_t>(size, managed)) all.push_back(std::move(made).value());
    return all;
}

// A CUevent of other code.
class ForeignEvent {
public:
    explicit ForeignEvent(const isthmus::Device& device) : context_(device) {
        const ForeignContext current(device);
        driver_call(0, "cuEventCreate", &event_, 0u);
    }
    ForeignEvent(const ForeignEvent&) = delete;
    ForeignEvent& operator=(const ForeignEvent&) = delete;
    ~ForeignEvent() {
        if (event_ != nullptr) (void)driver_function<int(void*)>("cuEventDestroy_v2")(event_);
    }
    void* get() const noexcept { return event_; }

private:
    const RetainedContext context_;
    void* event_ = nullptr;
};

}  // namespace conformance
