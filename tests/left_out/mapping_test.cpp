// SPDX-License-Identifier: Apache-2.0
// A library without the component mapping: no virtual memory, multicast objects, growable buffers and mirrored buffers.
#include "left_out.hpp"

namespace left_out {
namespace {

template <class T>
testing::AssertionResult refused(const Result<T>& answer) {
    return refused_without("mapping", answer);
}

// Empty arguments for the calls below: nothing can be made, and a refusal does not use them.
PhysicalMemory no_memory() {
    return PhysicalMemory(std::shared_ptr<detail::PhysicalState>());
}

TEST(MappingLeftOut, NothingIsMade) {
    conformance::on_every_device([](Device& device) {
        EXPECT_TRUE(refused(GrowableBuffer<std::int32_t>::create(device, 16)));
        EXPECT_TRUE(refused(GrowableBuffer<std::int32_t>::create(device, 0)));
        EXPECT_TRUE(refused(MirroredBuffer<std::int32_t>::create(device, 16)));
        EXPECT_TRUE(refused(memory_granularity(device)));
        EXPECT_TRUE(refused(PhysicalMemory::create(device, 0)));
        EXPECT_TRUE(refused(PhysicalMemory::import_posix_fd(device, FileDescriptor(), 0)));
        EXPECT_TRUE(refused(PhysicalMemory::import_fabric(device, FabricHandle{}, 0)));
        EXPECT_TRUE(refused(PhysicalMemory::mapped_at(device, 4096)));
        EXPECT_TRUE(refused(AddressReservation::reserve(device, 0)));
        EXPECT_TRUE(refused(PagedPool::create(device, 1)));
        EXPECT_TRUE(refused(multicast_granularity(device, 0)));
        EXPECT_TRUE(refused(MulticastGroup::create(device, 0, 0)));
        EXPECT_TRUE(refused(MulticastGroup::import_posix_fd(device, FileDescriptor(), 0, 0)));
        for (const AccessAnswer& answer : {can_multicast(device), can_multimem(device), no_memory().can_export({})}) {
            EXPECT_EQ(answer.verdict, Verdict::no);
            EXPECT_NE(answer.remedy.find("-Dcomponents=mapping"), std::string_view::npos);
        }
    });
}

TEST(MappingLeftOut, EveryCallOfWhatCannotBeMadeIsRefused) {
    Device& device = conformance::runtime().default_device();
    GrowableBuffer<std::int32_t> growable;
    EXPECT_TRUE(refused(growable.resize(1)));
    EXPECT_TRUE(refused(growable.reserve(1)));
    EXPECT_TRUE(refused(growable.trim()));
    EXPECT_EQ(growable.capacity(), 0U);
    EXPECT_FALSE(growable.place(0).has_value());

    EXPECT_TRUE(refused(no_memory().properties()));
    EXPECT_TRUE(refused(no_memory().export_posix_fd()));
    EXPECT_TRUE(refused(no_memory().export_fabric()));
    EXPECT_EQ(no_memory().native_handle(), 0U);
    EXPECT_EQ(Page().references(), 0U);
    PagedRange<std::int32_t> range;
    EXPECT_TRUE(refused(range.map(0, Page())));
    EXPECT_TRUE(refused(range.unmap(0)));
    EXPECT_EQ(range.slots(), 0U);
    EXPECT_FALSE(range.page(0));
    EXPECT_EQ(no_memory().size_bytes() + no_memory().asked_bytes(), 0U);

    AddressReservation reservation{std::shared_ptr<detail::ReservationState>()};
    EXPECT_TRUE(refused(reservation.map(0, no_memory())));
    EXPECT_TRUE(refused(reservation.release()));
    EXPECT_EQ(reservation.base(), 0U);
    EXPECT_EQ(reservation.size_bytes() + reservation.asked_bytes() + reservation.mapped_bytes(), 0U);

    Mapping mapping{std::shared_ptr<detail::MappingState>()};
    EXPECT_FALSE(mapping);
    EXPECT_TRUE(refused(mapping.set_access({&device})));
    EXPECT_TRUE(refused(mapping.query_access(device)));
    EXPECT_TRUE(refused(mapping.unmap()));
    EXPECT_EQ(mapping.access(device), RangeAccess::none);
    EXPECT_EQ(mapping.offset_bytes() + mapping.size_bytes(), 0U);
}

}  // namespace
}  // namespace left_out
