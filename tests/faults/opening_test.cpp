// SPDX-License-Identifier: Apache-2.0
// Faults while the runtime opens: it offers fewer features, reports why, and works. Unlike the scenarios of
// tests/conformance, these continue after an error with whatever is left, and so play faults to the end.
#include "scenario.hpp"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace conformance {
namespace {

// After a fault any result is lawful, if an error has a message and a remedy.
template <class T>
bool answered(const Result<T>& result) {
    if (result.ok()) return true;
    EXPECT_TRUE(fault_happened()) << result.error().text();
    EXPECT_NE(result.error().code(), Code::ok);
    EXPECT_FALSE(result.error().message().empty());
    EXPECT_FALSE(result.error().remedy().empty()) << result.error().text();
    return false;
}

void try_kinds(Device& device) {
    for (const MemoryKind kind :
         {MemoryKind::device, MemoryKind::pinned, MemoryKind::managed, MemoryKind::registered, MemoryKind::pool}) {
        SCOPED_TRACE(isthmus::name(kind));
        Result<Buffer<std::int32_t>> buffer = device.allocate<std::int32_t>(256, kind);
        if (!buffer && buffer.code() == Code::unsupported) continue;  // this machine, or a fact that could not be read
        if (!answered(buffer)) continue;
        (void)answered(device.stream().fill_bytes(*buffer, 1));
        (void)answered(device.stream().launch(add_one, 256, *buffer));
        if (kind != MemoryKind::pool) (void)answered(buffer->release());
    }
}

// Two streams and two host-visible buffers: work that is reported as done was done.
void try_work(Device& device) {
    Result<Stream> other = device.create_stream();
    Result<Buffer<std::int32_t>> in =
        device.allocate_shared<std::int32_t>(256, {.host = Use::writes_once, .device = Use::reads_often});
    Result<Buffer<std::int32_t>> out =
        device.allocate_shared<std::int32_t>(256, {.host = Use::reads_once, .device = Use::writes_often});
    if (!answered(other) || !answered(in) || !answered(out)) return;
    bool written = false;
    if (auto view = in->write_on_host(); answered(view)) {
        for (std::int32_t& value : *view) value = 3;
        written = true;
    }
    std::int32_t expected = 6;
    written &= answered(device.stream().launch(scale_into, 256, *out, *in, 2));
    if (answered(other->wait_stream(device.stream()))) {
        if (answered(other->launch(add_one, 256, *out))) ++expected;
    }
    if (auto view = out->read_on_host(); answered(view) && written) {
        EXPECT_EQ((*view)[255], expected);
    }
    if (auto event = device.stream().record({.timing = true}); answered(event)) (void)answered(event->synchronize());
}

TEST(Opening, WhatCanBeOpenedWorksAndTheRestSaysWhy) {  // keeps D7, D9, R1, R6
    if (const auto& absence = runtime().cuda_absence()) {
        EXPECT_FALSE(absence->message().empty());
        EXPECT_FALSE(absence->remedy().empty()) << absence->text();
    }
    for (std::size_t at = 0; at < runtime().device_count(); ++at) {
        Device& device = *runtime().device(at).value();
        SCOPED_TRACE(device.name());
        for (int f = 0; f < isthmus::feature_count; ++f) {
            const Capability& capability = device.capabilities().feature(static_cast<Feature>(f));
            EXPECT_FALSE(capability.reason.empty()) << isthmus::name(static_cast<Feature>(f));
            const bool unknown = capability.origin == Origin::absent || capability.origin == Origin::refused;
            EXPECT_FALSE(unknown && capability) << isthmus::name(static_cast<Feature>(f));
        }
        try_kinds(device);
        try_work(device);
        (void)answered(device.synchronize());
    }
    EXPECT_TRUE(runtime().cpu().healthy());
}

}  // namespace
}  // namespace conformance
