// SPDX-License-Identifier: Apache-2.0
// Memory that another library describes, as a kernel's argument: what the descriptor allows to check, and launches.
#include "foreign_driver.hpp"
#include "scenario.hpp"

#include <isthmus/descriptors.hpp>

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace conformance {

struct Four {
    float at[4];
};

}  // namespace conformance

namespace isthmus {
template <>
struct DescribedElement<conformance::Four> {
    static constexpr DlDataType type{DlDataType::floating, 32, 4};
};
}  // namespace isthmus

namespace conformance {
namespace {

constexpr std::size_t count = 24;
constexpr std::int64_t shape[] = {2, 3, 4};

DlTensor described(void* data, std::int32_t place = DlDevice::cpu, std::int32_t id = 0) {
    DlTensor made;
    made.data = data;
    made.device = {place, id};
    made.ndim = 3;
    made.type = {DlDataType::integer, 32, 1};
    made.shape = shape;
    return made;
}
CudaArray array_of(const void* data) {
    CudaArray made;
    made.data = data;
    made.shape = shape;
    made.typestr = "<i4";
    return made;
}

// What a producer's own declaration of the structure looks like: dlpack.h.
struct Theirs {
    void* data;
    struct {
        int device_type;
        std::int32_t device_id;
    } device;
    std::int32_t ndim;
    struct {
        std::uint8_t code, bits;
        std::uint16_t lanes;
    } dtype;
    std::int64_t* shape;
    std::int64_t* strides;
    std::uint64_t byte_offset;
};

template <class T>
bool refused_with(const Result<T>& answer, std::string_view id) {
    return !answer && answer.error().id() == id && !answer.error().remedy().empty();
}

TEST(Descriptors, ATensorIsReadFromTheProducersStructure) {  // keeps A19
    std::int64_t extents[] = {5, 2}, strides[] = {2, 1};
    std::array<std::int32_t, 16> memory{};
    const Theirs theirs{memory.data(), {1, 0}, 2, {0, 32, 1}, extents, strides, 8};
    Device& cpu = runtime().cpu();
    const auto view = foreign_view<std::int32_t>(cpu, DlTensor::read(&theirs)).value();
    EXPECT_EQ(view.data(), memory.data() + 2) << "behind the offset";
    EXPECT_EQ(view.size(), 10u);
    EXPECT_TRUE(view.on_host());
}

TEST(Descriptors, OnlyElementsInCOrderAreAView) {  // keeps A19
    Device& cpu = runtime().cpu();
    std::array<std::int32_t, count> memory{};
    struct Row {
        std::vector<std::int64_t> shape, strides;  // in elements
        bool whole;
        const char* named;
    };
    const Row rows[] = {
        {{2, 3, 4}, {12, 4, 1}, true, ""},
        {{2, 3, 4}, {12, 4, 2}, false, "a stride of 2"},
        {{2, 3, 4}, {24, 4, 1}, false, "a stride of 24"},
        {{2, 3, 4}, {4, 8, 1}, false, "a stride of 8"},
        {{2, 3, 4}, {-12, 4, 1}, false, "a stride of -12"},
        {{2, 1, 4}, {4, 77, 1}, true, ""},  // one element along it: any stride
        {{2, 0, 4}, {9, 9, 9}, true, ""},   // no elements
        {{1}, {0}, true, ""},
        {{4}, {0}, false, "a stride of 0"},  // broadcast
    };
    for (const Row& row : rows) {
        DlTensor tensor = described(memory.data());
        tensor.ndim = static_cast<std::int32_t>(row.shape.size());
        tensor.shape = row.shape.data();
        tensor.strides = row.strides.data();
        CudaArray array = array_of(memory.data());
        array.shape = row.shape;
        std::vector<std::int64_t> bytes;
        for (const std::int64_t one : row.strides) bytes.push_back(4 * one);
        array.strides = bytes;
        const auto from_tensor = foreign_view<std::int32_t>(cpu, tensor);
        const auto from_array = foreign_view<std::int32_t>(array);
        EXPECT_EQ(from_tensor.ok(), row.whole) << row.named;
        EXPECT_EQ(from_array.ok(), row.whole) << row.named;
        if (row.whole) continue;
        EXPECT_TRUE(refused_with(from_tensor, "L022"));
        EXPECT_TRUE(refused_with(from_array, "L022"));
        EXPECT_NE(from_tensor.error().message().find(row.named), std::string_view::npos);
    }
    EXPECT_EQ(foreign_view<std::int32_t>(cpu, described(memory.data())).value().size(), count) << "no strides: C order";
    DlTensor scalar = described(memory.data());
    scalar.ndim = 0;
    scalar.shape = nullptr;
    EXPECT_EQ(foreign_view<std::int32_t>(cpu, scalar).value().size(), 1u);
}

TEST(Descriptors, TheElementTypeIsThatOfTheView) {  // keeps A19
    Device& cpu = runtime().cpu();
    alignas(16) std::array<std::int32_t, count> memory{};
    struct Row {
        DlDataType type;
        const char* typestr;
        bool is_int32;
    };
    const Row rows[] = {
        {{DlDataType::integer, 32, 1}, "<i4", true},   {{DlDataType::unsigned_integer, 32, 1}, "<u4", false},
        {{DlDataType::integer, 16, 1}, "<i2", false},  {{DlDataType::floating, 32, 1}, "<f4", false},
        {{DlDataType::integer, 32, 4}, "|V16", false}, {{DlDataType::bfloat, 32, 1}, "<V4", false},
        {{DlDataType::opaque, 32, 1}, "|O4", false},   {{DlDataType::boolean, 8, 1}, "|b1", false},
        {{DlDataType::complex, 64, 1}, "<c8", false},  {{17, 32, 1}, "<X4", false},
        {{DlDataType::integer, 8, 4}, ">i4", false},
    };
    for (const Row& row : rows) {
        DlTensor tensor = described(memory.data());
        tensor.type = row.type;
        CudaArray array = array_of(memory.data());
        array.typestr = row.typestr;
        EXPECT_EQ(foreign_view<std::int32_t>(cpu, tensor).ok(), row.is_int32) << row.typestr;
        EXPECT_EQ(foreign_view<std::int32_t>(array).ok(), row.is_int32) << row.typestr;
        if (!row.is_int32) {
            EXPECT_TRUE(refused_with(foreign_view<std::int32_t>(cpu, tensor), "L027")) << row.typestr;
        }
    }
    for (const char* const wrong : {"", "i4", "<i", "<i4x", "<i-4", "*i4"}) {
        CudaArray array = array_of(memory.data());
        array.typestr = wrong;
        EXPECT_TRUE(refused_with(foreign_view<std::int32_t>(array), "L026")) << wrong;
    }
    CudaArray big = array_of(memory.data());
    big.typestr = ">i4";
    EXPECT_TRUE(refused_with(foreign_view<std::int32_t>(big), "L028"));
    DlTensor vectors = described(memory.data());
    vectors.type = {DlDataType::floating, 32, 4};
    constexpr std::int64_t six[] = {6};
    vectors.ndim = 1;
    vectors.shape = six;
    EXPECT_EQ(foreign_view<Four>(cpu, vectors).value().size(), 6u);
    CudaArray raw = array_of(memory.data());
    raw.shape = six;
    raw.typestr = "|V16";
    EXPECT_EQ(foreign_view<const Four>(raw).value().size(), 6u);
}

TEST(Descriptors, ReadOnlyMemoryIsViewedToReadAlone) {  // keeps A19
    Device& cpu = runtime().cpu();
    std::array<std::int32_t, count> memory{};
    CudaArray array = array_of(memory.data());
    array.read_only = true;
    EXPECT_TRUE(refused_as(foreign_view<std::int32_t>(array), Code::not_permitted));
    EXPECT_TRUE(worked(foreign_view<const std::int32_t>(array)));
    EXPECT_TRUE(refused_as(foreign_view<std::int32_t>(cpu, described(memory.data()), true), Code::not_permitted));
    EXPECT_TRUE(worked(foreign_view<const std::int32_t>(cpu, described(memory.data()), true)));
}

TEST(Descriptors, WhatNoMemoryCanBeIsRefused) {  // keeps A19
    Device& cpu = runtime().cpu();
    alignas(8) std::array<std::int32_t, count> memory{};
    const auto refused = [&](const DlTensor& tensor, std::string_view id) {
        EXPECT_TRUE(refused_with(foreign_view<std::int32_t>(cpu, tensor), id)) << id;
    };
    DlTensor odd = described(memory.data());
    odd.byte_offset = 2;
    refused(odd, "L025");
    DlTensor beyond = described(memory.data());
    beyond.byte_offset = std::numeric_limits<std::uint64_t>::max() - 3;
    refused(beyond, "L021");
    refused(described(nullptr), "L024");
    constexpr std::int64_t negative[] = {2, -3, 4};
    constexpr std::int64_t endless[] = {std::int64_t{1} << 40, std::int64_t{1} << 40, 1};
    DlTensor extents = described(memory.data());
    extents.shape = negative;
    refused(extents, "L020");
    extents.shape = endless;
    refused(extents, "L021");
    extents.shape = nullptr;
    refused(extents, "L031");
    constexpr std::int64_t none[] = {2, 0, 4};
    DlTensor empty = described(nullptr);
    empty.shape = none;
    EXPECT_EQ(foreign_view<std::int32_t>(cpu, empty).value().size(), 0u) << "one without elements may be null";
    constexpr std::int32_t metal = 8;
    refused(described(memory.data(), metal), "L029");
    CudaArray masked = array_of(memory.data());
    masked.masked = true;
    EXPECT_TRUE(refused_with(foreign_view<std::int32_t>(masked), "L032"));
    constexpr std::int64_t two[] = {16, 4};
    CudaArray ranks = array_of(memory.data());
    ranks.strides = two;
    EXPECT_TRUE(refused_with(foreign_view<std::int32_t>(ranks), "L033"));
    CudaArray nowhere = array_of(memory.data());
    nowhere.stream = 0;
    EXPECT_TRUE(refused_with(wait_for_producer(runtime().default_device().stream(), nowhere), "L034"));
}

TEST(Descriptors, AGpuTensorIsViewedForItsOwnGpu) {  // keeps A19
    on_every_device([](Device& device) {
        std::int32_t anything = 0;
        const std::int32_t own = device.is_cpu() ? -1 : device.facts().ordinal;
        for (const std::int32_t id : {-1, 0, 1, 7}) {
            const auto view = foreign_view<std::int32_t>(device, described(&anything, DlDevice::cuda, id));
            if (id == own && !device.is_cpu()) {
                EXPECT_TRUE(worked(view));
                EXPECT_FALSE(view->on_host());
            } else {
                EXPECT_TRUE(refused_as(view, Code::wrong_device)) << id;
            }
        }
        for (const std::int32_t place : {DlDevice::cuda_host, DlDevice::cuda_managed}) {
            EXPECT_TRUE(worked(foreign_view<std::int32_t>(device, described(&anything, place, 3))));
        }
    });
}

TEST(Descriptors, ALaunchTakesDescribedMemory) {  // keeps A17, A19
    on_every_device([](Device& device) {
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> seen = device.allocate_shared<std::int32_t>(count).value();
        device.stream().fill(data, 4).value();
        auto* const address = reinterpret_cast<std::int32_t*>(static_cast<std::uintptr_t>(data.device_address()));
        if (device.is_cpu()) {
            const auto own = foreign_view<std::int32_t>(device, described(address)).value();
            EXPECT_TRUE(worked(device.stream().launch(add_one, own.size(), own)));
        } else {
            const auto own =
                foreign_view<std::int32_t>(device, described(address, DlDevice::cuda, device.facts().ordinal)).value();
            EXPECT_TRUE(worked(device.stream().launch(add_one, own.size(), own)));
        }
        const auto read = foreign_view<const std::int32_t>(array_of(address)).value();
        EXPECT_TRUE(worked(device.stream().launch({.mode = LaunchMode::relaxed}, scale_into, count, seen, read, 3)));
        EXPECT_EQ(seen.read_on_host().value()[count - 1], 15);
        EXPECT_TRUE(worked(device.synchronize()));
    });
}

TEST(Descriptors, DescribedHostMemoryIsAHostSpan) {  // keeps A17, A19
    on_every_device([](Device& device) {
        std::vector<std::int32_t> memory(count, 0);
        const Settled afterwards(device);
        const auto view = foreign_view<std::int32_t>(device, described(memory.data())).value();
        for (const LaunchMode mode : {LaunchMode::relaxed, LaunchMode::checked}) {
            const auto launched = device.stream().launch({.mode = mode}, add_one, count, view);
            if (device.is_cpu()) {
                EXPECT_TRUE(worked(launched));
            } else {
                EXPECT_TRUE(refused_as(launched, Code::not_accessible)) << "whatever the machine could reach";
            }
        }
        EXPECT_EQ(memory[0], device.is_cpu() ? 2 : 0);
        EXPECT_TRUE(worked(device.stream().launch({.mode = LaunchMode::staged}, add_one, count, view)));
        EXPECT_TRUE(worked(device.synchronize()));  // where the device reaches it, nothing is copied, and nothing waits
        EXPECT_EQ(memory[count - 1], device.is_cpu() ? 3 : 1);
        if (!device.is_cpu()) {
            EXPECT_TRUE(refused_as(device.stream().launch({.mode = LaunchMode::strict}, add_one, count, view),
                                   Code::not_accessible));
        }
    });
}

TEST(Descriptors, WorkComesBehindTheProducersStream) {  // keeps A19, S10
    on_every_device([](Device& device, Stream consumer, Stream producer) {
        CudaArray array;
        EXPECT_TRUE(worked(wait_for_producer(consumer, array))) << "nothing to wait for";
        array.stream = 2;  // the per-thread default stream
        EXPECT_TRUE(refused_as(wait_for_producer(consumer, array), Code::unsupported));
        array.stream = 1;
        if (device.is_cpu()) {
            EXPECT_TRUE(refused_as(wait_for_producer(consumer, array), Code::unsupported));
            return;
        }
        EXPECT_TRUE(worked(wait_for_producer(consumer, array)));
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> seen = device.allocate_shared<std::int32_t>(count).value();
        array = array_of(reinterpret_cast<void*>(static_cast<std::uintptr_t>(data.device_address())));
        array.stream = reinterpret_cast<std::uintptr_t>(producer.native_handle().value());
        const auto view = foreign_view<const std::int32_t>(array).value();
        for (std::int32_t round = 1; round <= rounds(5); ++round) {
            (void)producer.launch(churn, count, data, 200).value();
            producer.fill(data, round).value();
            wait_for_producer(consumer, array).value();
            (void)consumer.launch(scale_into, count, seen, view, 2).value();
            ASSERT_EQ(seen.read_on_host().value()[count - 1], 2 * round);
        }
        ForeignStream beside(device);
        array.stream = reinterpret_cast<std::uintptr_t>(beside.get());
        EXPECT_TRUE(worked(wait_for_producer(consumer, array)));
        EXPECT_TRUE(worked(consumer.synchronize()));
    });
}

}  // namespace
}  // namespace conformance
