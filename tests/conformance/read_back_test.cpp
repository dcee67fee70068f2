// SPDX-License-Identifier: Apache-2.0
// read_back: any buffer's content as a vector, and when that is refused.
#include "scenario.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 1000;

std::vector<Buffer<std::int32_t>> of_every_kind(Device& device) {
    std::vector<Buffer<std::int32_t>> made;
    made.push_back(device.allocate<std::int32_t>(count).value());
    made.push_back(device.allocate_shared<std::int32_t>(count).value());
    made.push_back(device.allocate_shared<std::int32_t>(count, {.kind = MemoryKind::device}).value());  // staged
    if (device.is_cpu()) return made;
    const std::pair<MemoryKind, Feature> kinds[] = {{MemoryKind::managed, Feature::managed},
                                                    {MemoryKind::pool, Feature::pools}};
    for (const auto& [kind, feature] : kinds) {
        if (!device.capabilities().has(feature)) continue;
        made.push_back(kind == MemoryKind::pool ? device.stream().allocate<std::int32_t>(count).value()
                                                : device.allocate<std::int32_t>(count, kind).value());
    }
    SharedUse pinned;
    pinned.kind = MemoryKind::pinned;
    made.push_back(device.allocate_shared<std::int32_t>(count, pinned).value());
    return made;
}

TEST(ReadBack, WaitsForWhatWritesTheBufferWhateverItsMemory) {  // keeps S12
    on_every_device([](Device& device, Stream stream) {
        for (Buffer<std::int32_t>& data : of_every_kind(device)) {
            SCOPED_TRACE(isthmus::name(data.kind()));
            stream.fill_bytes(data, 0).value();
            for (std::int32_t round = 1; round <= rounds(5); ++round) {
                (void)stream.launch(add_one, count, data).value();
                const std::vector<std::int32_t> content = read_back(data).value();
                ASSERT_EQ(content, std::vector<std::int32_t>(count, round));
            }
        }
    });
}

TEST(ReadBack, LongContentComesWhole) {  // keeps S12
    on_every_device([](Device& device) {
        const std::size_t long_count = (std::size_t{1} << 20) + 37;  // more than one pinned piece
        Buffer<std::uint64_t> data = device.allocate<std::uint64_t>(long_count).value();
        device.stream().fill(data, 0x1122334455667788u).value();
        const std::vector<std::uint64_t> content = read_back(data).value();
        EXPECT_EQ(content, std::vector<std::uint64_t>(long_count, 0x1122334455667788u));
        EXPECT_TRUE(read_back(device.allocate<std::uint64_t>(0).value()).value().empty());
    });
}

// Uses no stream that is ordered after all others of the process (S12: the legacy default stream).
TEST(ReadBack, WaitsForNothingElse) {  // keeps S12
    on_every_device([](Device& device) {
        if (device.is_cpu() || driver_calls() < 0) return;
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        device.stream().fill_bytes(data, 0).value();
        (void)read_back(data).value();
        const auto whole_waits = [] { return driver_calls("cuCtxSynchronize") + driver_calls("cuStreamSynchronize"); };
        const long before = whole_waits();
        (void)read_back(data).value();
        EXPECT_TRUE(unless_fault(whole_waits() == before));
        EXPECT_TRUE(unless_fault(driver_calls("cuMemcpyDtoH_v2") == 0)) << "that would be the default stream";
    });
}

TEST(ReadBack, IsRefusedInACaptureWhereACopyIsFine) {  // keeps S12, S14
    NEEDS(graph);
    on_every_device([](Device& device) {
        if (device.is_cpu()) return;
        Stream stream = device.create_stream().value();
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> copied = device.allocate<std::int32_t>(count).value();
        stream.fill_bytes(data, 0).value();
        stream.fill_bytes(copied, 0).value();
        Capture capture = stream.begin_capture().value();
        (void)stream.launch(add_one, count, data).value();
        const long before = driver_calls();
        const auto refused = read_back(data);
        EXPECT_TRUE(refused_as(refused, Code::capture_error));
        EXPECT_NE(refused.error().remedy().find("copy"), std::string_view::npos);
        EXPECT_TRUE(unless_fault(driver_calls() == before));
        stream.copy(copied, data).value();
        const GraphInstance instance = capture.end().value().instantiate().value();
        stream.launch(instance).value();
        EXPECT_EQ(read_back(copied).value()[count - 1], 1);
    });
}

TEST(ReadBack, SaysWhatStandsAgainstIt) {  // keeps S12, R1
    on_every_device([](Device& device) {
        EXPECT_TRUE(refused_as(read_back(Buffer<std::int32_t>()), Code::invalid_handle));
        Buffer<std::int32_t> host = device.allocate_shared<std::int32_t>(count).value();
        {
            auto view = host.write_on_host().value();
            EXPECT_TRUE(refused_as(read_back(host), Code::in_use));
        }
        EXPECT_TRUE(worked(read_back(host, Wait::never())));
        if (device.is_cpu()) return;
        Buffer<std::int32_t> apart = device.allocate<std::int32_t>(count).value();
        const auto refused = read_back(apart, Wait::never());
        EXPECT_TRUE(refused_as(refused, Code::not_ready)) << "a copy has to be waited for";
    });
}

}  // namespace
}  // namespace conformance
