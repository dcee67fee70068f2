// SPDX-License-Identifier: Apache-2.0
// Multicast objects in processes of their own, forked before they open a runtime: one object of two processes, and the
// faults of kernels. On the simulator only, as multicast_test.cpp.
#include "multicast_scenario.hpp"
#include "multimem_kernels.hpp"
#include "two_processes.hpp"

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 200;
enum Kind : std::uint32_t { group, no_group, added, bound, stored, seen };

void expect(Channel& line, Kind kind) {
    EXPECT_EQ(line.receive().value().kind, kind);
}

// Memory of one device, bound to all of the object, and a mapping of the object for that device.
struct End {
    PhysicalMemory memory;
    AddressReservation where;
    Mapping mapping;

    End(Device& device, MulticastObject& object)
        : memory(PhysicalMemory::create(device, object.size_bytes(), {.exports = ExportKinds::posix_fd}).value()),
          where(AddressReservation::reserve(device, object.size_bytes(), object.size_bytes()).value()),
          mapping((object.bind(0, memory).value(), where.map(0, object).value())) {
        mapping.set_access({&device}).value();
    }
};

std::int32_t sum_of(Device& device, const Mapping& object) {
    Buffer<std::int32_t> sums = pinned(device, count, -1);
    (void)device.stream().launch(multimem_sum, count, sums, object.address()).value();
    const auto all = sums.read_on_host().value();
    for (std::size_t at = 1; at < count; ++at) EXPECT_EQ(all[at], all[0]) << "at " << at;
    return all[0];
}

// keeps V14: a group is joined by two processes, each binds its own device's memory, and kernels of each reach both
TEST(MulticastProcesses, JoinOneGroupAndReachTheMemoryOfBoth) {
    const auto maker = [](Channel line) {
        const Devices all = taking_part();
        if (all.size() < 2 || !all.front()->capabilities().has(Feature::export_posix_fd)) {
            line.send(no_group, {}).value();
            line.wait_received().value();
            return;
        }
        Device& device = *runtime().device(all[0]->index()).value();
        const std::size_t granule = granule_of(device, 2);
        MulticastGroup made = MulticastGroup::create(device, 2, granule, {.exports = ExportKinds::posix_fd}).value();
        made.add(device).value();
        const FileDescriptor fd = made.export_posix_fd().value();
        EXPECT_TRUE(refused_as(complete(made), Code::not_ready));
        std::vector<std::byte> bytes(sizeof granule);
        std::memcpy(bytes.data(), &granule, sizeof granule);
        const int number = fd.get();
        line.send(group, bytes, {&number, 1}).value();
        expect(line, added);
        MulticastObject object = complete(made, 1).value();
        End end(device, object);
        line.send(bound, {}).value();
        expect(line, bound);
        (void)device.stream().launch(multimem_change, count, end.mapping.address(), 0, 20).value();
        device.stream().synchronize().value();
        line.send(stored, {}).value();
        expect(line, stored);
        EXPECT_EQ(sum_of(device, end.mapping), 2 * 21) << "the other process's kernel added one to both";
        line.send(seen, {}).value();
        line.wait_received().value();
    };
    const auto joiner = [](Channel line) {
        ChannelMessage message = line.receive().value();
        if (message.kind == no_group) return;
        const Devices all = taking_part();
        Device& device = *runtime().device(all[1]->index()).value();
        std::size_t bytes = 0;
        std::memcpy(&bytes, message.bytes.data(), sizeof bytes);
        MulticastGroup made = MulticastGroup::import_posix_fd(device, message.fds.at(0), 2, bytes).value();
        EXPECT_TRUE(refused_as(made.add(*all[0]), Code::invalid_argument)) << "the other process did";
        made.add(device).value();
        line.send(added, {}).value();
        MulticastObject object = complete(made, 1).value();
        expect(line, bound);
        End end(device, object);
        line.send(bound, {}).value();
        expect(line, stored);
        EXPECT_EQ(sum_of(device, end.mapping), 2 * 20) << "the other process's kernel stored into both";
        (void)device.stream().launch(multimem_change, count, end.mapping.address(), 1, 1).value();
        device.stream().synchronize().value();
        line.send(stored, {}).value();
        expect(line, seen);
    };
    EXPECT_EQ(play(maker, joiner), 0);
}

enum Wrong { nothing, one_unbound, not_let_in, no_object };

void update_all(Wrong wrong) {
    const Devices all = taking_part();
    if (all.size() < 2) return;
    Device& device = *runtime().device(all[0]->index()).value();
    const std::size_t granule = granule_of(device, all.size());
    MulticastGroup made = MulticastGroup::create(device, all.size(), granule).value();
    for (const Device* each : all) made.add(*each).value();
    MulticastObject object = complete(made).value();
    for (const Device* each : all) {
        if (wrong == one_unbound && each == all.back()) continue;
        object.bind(0, PhysicalMemory::create(*each, granule).value()).value();
    }
    AddressReservation where = AddressReservation::reserve(device, granule, granule).value();
    Mapping mapping = where.map(0, object).value();
    if (wrong != not_let_in) mapping.set_access({&device}).value();
    const Buffer<std::int32_t> plain = device.allocate<std::int32_t>(count, MemoryKind::device).value();
    const std::uint64_t address = wrong == no_object ? plain.device_address() : mapping.address();
    (void)device.stream().launch(multimem_change, count, address, 1, 1).value();
    const Result<void> ended = device.stream().synchronize();
    EXPECT_TRUE(wrong == nothing ? worked(ended) : refused_as(ended, Code::device_lost)) << wrong;
}

// keeps V14, L8: a multimem access that not every device's memory can take is a fault
TEST(MulticastProcesses, AnAccessWhereADeviceHasNothingBoundIsAFault) {
    for (const Wrong wrong : {nothing, one_unbound, not_let_in, no_object}) {
        const int status = end_of(process([&] { update_all(wrong); }));
        EXPECT_EQ(status, 0) << wrong;
    }
}

}  // namespace
}  // namespace conformance
