// SPDX-License-Identifier: Apache-2.0
// What every scenario includes: the machine under test, the whole library, and what several scenarios do.
// Scenarios stand in `namespace conformance { namespace { ... } }`, where the names of the library need no prefix.
#pragma once

#include "components.hpp"
#include "conformance.hpp"

#include <isthmus/isthmus.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace conformance {

using namespace isthmus;

// The devices of the runtime, including the CPU.
inline std::vector<std::reference_wrapper<Device>> all_devices() {
    std::vector<std::reference_wrapper<Device>> all;
    for (std::size_t at = 0; at < runtime().device_count(); ++at) all.emplace_back(*runtime().device(at).value());
    return all;
}

// Runs the body for every GPU, as on_every_device() does. Skips the scenario where there is none.
template <class Body>
void on_every_gpu(Body body) {
    bool any = false;
    on_every_device([&](Device& device) {
        if (device.is_cpu()) return;
        any = true;
        play_on(device, body);
    });
    if (!any) GTEST_SKIP() << "no GPU";
}

inline bool maps_memory(const Device& device) {
    return device.capabilities().has(Feature::virtual_memory);
}
// Whether driver_calls() counts the driver calls for this device.
inline bool counts_calls(const Device& device) {
    return !device.is_cpu() && driver_calls() >= 0;
}

inline AllocationRequest request_of(std::size_t bytes) {
    AllocationRequest request;
    request.bytes = bytes;
    return request;
}
inline GrowableOptions on_the_host() {
    GrowableOptions options;
    options.where = MemoryPlace::Where::host;
    return options;
}

inline Buffer<std::int32_t> shared_numbers(Device& device, std::size_t count, MemoryKind kind) {
    SharedUse use;
    use.kind = kind;
    return device.allocate_shared<std::int32_t>(count, use).value();
}
inline void set_all(TypedBuffer<std::int32_t>& buffer, std::int32_t value) {
    auto view = buffer.write_on_host().value();
    for (std::int32_t& one : view) one = value;
}
// Memory that every GPU and the host can use on every machine, filled with one value.
inline Buffer<std::int32_t> pinned(Device& device, std::size_t count, std::int32_t value) {
    Buffer<std::int32_t> made = shared_numbers(device, count, MemoryKind::pinned);
    set_all(made, value);
    return made;
}

inline void expect_all(const TypedBuffer<std::int32_t>& buffer, std::int32_t value) {
    const auto view = buffer.read_on_host().value();
    for (std::size_t at = 0; at < view.size(); ++at) ASSERT_EQ(view[at], value) << "at " << at;
}
// Whether the buffer holds frame `number` of a ring: number, number + 1, ...
inline bool holds_frame(const TypedBuffer<std::int32_t>& buffer, std::int32_t number) {
    const auto view = buffer.read_on_host().value();
    for (std::size_t i = 0; i < view.size(); ++i) {
        if (view[i] != number + static_cast<std::int32_t>(i)) return false;
    }
    return true;
}

}  // namespace conformance
