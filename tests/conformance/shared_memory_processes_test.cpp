// SPDX-License-Identifier: Apache-2.0
// Memory in two processes, over a channel: kernels of each read what kernels of the other wrote, and hosts do where
// they have access.
#include "scenario.hpp"
#include "two_processes.hpp"

#include <isthmus/ipc/shared_memory.hpp>

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <utility>
#include <vector>

namespace conformance {
namespace {

using Numbers = ExportableBuffer<std::int32_t>;
constexpr std::size_t count = 1000;
constexpr int rounds = 5;
enum Kind : std::uint32_t { memory, no_memory, your_turn };

std::int32_t last_of(Device& device, const TypedBuffer<std::int32_t>& buffer) {
    Buffer<std::int32_t> out = pinned(device, count, -1);
    (void)device.stream().launch(scale_into, count, out, buffer, 1).value();
    const auto seen = out.read_on_host().value();
    for (std::size_t at = 1; at < count; ++at) EXPECT_EQ(seen[at], seen[0]) << "at " << at;
    return seen[count - 1];
}

// Four kernels over the shared buffer: four driver calls, where they are counted.
void add_four(Stream& stream, TypedBuffer<std::int32_t>& buffer, bool uncounted) {
    const long before = driver_calls();
    for (int launch = 0; launch < 4; ++launch) {
        (void)stream.launch(add_one, count, buffer).value();
    }
    if (!uncounted) {
        EXPECT_EQ(driver_calls() - before, 4);
    }
    stream.synchronize().value();
}

// Sends the buffer. Returns an empty one, with a message, where this machine has none.
Numbers hand_out(Device& device, Channel& line, const ExportableOptions& options) {
    Result<Numbers> made = Numbers::create(device, count, options);
    if (!made) {
        const auto& can = device.capabilities();
        EXPECT_FALSE(can.has(Feature::virtual_memory) && can.has(Feature::export_posix_fd) && !options.other_machines)
            << made.error().text();
        EXPECT_TRUE(made.code() == Code::unsupported || made.code() == Code::not_permitted) << made.error().text();
        line.send(no_memory, {}).value();
        line.wait_received().value();
        return {};
    }
    const SharedMemoryDescriptor descriptor = export_memory(*made).value();
    line.send(memory, descriptor.bytes(), descriptor.fds()).value();
    return std::move(made).value();
}
Buffer<std::int32_t> taken_in(Device& device, ChannelMessage message) {
    auto descriptor = SharedMemoryDescriptor::received(message.bytes, std::move(message.fds)).value();
    return isthmus::import_memory<std::int32_t>(device, std::move(descriptor)).value();
}
Buffer<std::int32_t> take_in(Device& device, Channel& line) {
    ChannelMessage message = line.receive().value();
    return message.kind == no_memory ? Buffer<std::int32_t>() : taken_in(device, std::move(message));
}

void take_turns(const ExportableOptions& options) {
    const auto exporter = [&](Channel line) {
        Device& device = runtime().default_device();
        Numbers mine = hand_out(device, line, options);
        if (!mine) return;
        Stream stream = device.create_stream().value();
        for (int round = 0; round < rounds; ++round) {
            add_four(stream, mine, round == 0 || !counts_calls(device));
            line.send(your_turn, {}).value();
            EXPECT_EQ(line.receive().value().kind, your_turn);
            EXPECT_EQ(last_of(device, mine), 8 * (round + 1)) << "what the importer's kernels wrote";
        }
        if (counts_calls(device)) {
            const bool tried = mine.share_method() != ShareMethod::posix_fd;
            EXPECT_EQ(driver_calls("cuMemExportToShareableHandle") + driver_calls("cuIpcGetMemHandle"), tried ? 2 : 1);
        }
        line.send(your_turn, {}).value();
        line.wait_received().value();
    };
    const auto importer = [](Channel line) {
        Device& device = runtime().default_device();
        Buffer<std::int32_t> theirs = take_in(device, line);
        if (!theirs) return;
        Stream stream = device.create_stream().value();
        // Memory of a GPU, for any share method: file descriptor, fabric handle or legacy IPC handle.
        EXPECT_EQ(theirs.kind(), device.is_cpu() ? MemoryKind::host : MemoryKind::imported);
        EXPECT_TRUE(device.can_access(theirs));
        EXPECT_EQ(static_cast<bool>(runtime().cpu().can_access(theirs)), device.is_cpu());
        const auto address = reinterpret_cast<const void*>(theirs.device_address());
        EXPECT_TRUE(device.can_access(address, theirs.size_bytes()));
        for (int round = 0; round < rounds; ++round) {
            EXPECT_EQ(line.receive().value().kind, your_turn);
            EXPECT_EQ(last_of(device, theirs), 8 * round + 4) << "what the exporter's kernels wrote";
            add_four(stream, theirs, round == 0 || !counts_calls(device));
            line.send(your_turn, {}).value();
        }
        EXPECT_EQ(line.receive().value().kind, your_turn);
        if (counts_calls(device)) {
            EXPECT_EQ(driver_calls("cuMemImportFromShareableHandle") + driver_calls("cuIpcOpenMemHandle_v2"), 1)
                << "once, however often it is used";
        }
    };
    EXPECT_EQ(play(exporter, importer), 0) << "the exporter";
}

// keeps I1, I7, K1
TEST(SharedMemoryProcesses, KernelsOfBothUseTheSameBytesByTheFirstMethodThatIsThere) {
    take_turns({});
}

// keeps I1, I7
TEST(SharedMemoryProcesses, KernelsOfBothUseTheSameBytesByAFabricHandle) {
    take_turns({.other_machines = true});
}

// keeps I1, I6: the driver opens the same memory at one address, which is one buffer; and tells its size
TEST(SharedMemoryProcesses, AnOlderHandleIsOpenedOnceAndChecked) {
    const auto exporter = [](Channel line) {
        Device& device = runtime().default_device();
        Numbers mine = hand_out(device, line, {});
        if (!mine) return;
        EXPECT_EQ(line.receive().value().kind, your_turn);
    };
    const auto importer = [](Channel line) {
        Device& device = runtime().default_device();
        const ChannelMessage message = line.receive().value();
        if (message.kind == no_memory) return;
        const auto import = [&](const std::vector<std::byte>& bytes) -> Result<Buffer<std::int32_t>> {
            auto descriptor = SharedMemoryDescriptor::received(bytes, {});
            if (!descriptor) return std::move(descriptor).error();
            return isthmus::import_memory<std::int32_t>(device, std::move(descriptor).value());
        };
        const bool legacy = message.fds.empty();
        if (legacy) {
            Result<Buffer<std::int32_t>> taken = import(message.bytes);
            ASSERT_TRUE(worked(taken));
            EXPECT_TRUE(refused_as(import(message.bytes), Code::in_use));
            EXPECT_TRUE(worked(taken->release()));
            std::vector<std::byte> larger = message.bytes;
            for (const std::size_t size : {std::size_t{16}, std::size_t{24}}) {  // both are 4 MiB
                std::fill_n(larger.begin() + static_cast<std::ptrdiff_t>(size), 8, std::byte{0});
                larger[size + 2] = std::byte{0x40};
            }
            EXPECT_TRUE(refused_as(import(larger), Code::invalid_argument)) << "the driver tells its size";
            ASSERT_TRUE(worked(import(message.bytes))) << "whoever let go may take it in again";
            if (counts_calls(device)) {
                EXPECT_EQ(driver_calls("cuIpcOpenMemHandle_v2"), driver_calls("cuIpcCloseMemHandle"));
            }
        }
        line.send(your_turn, {}).value();
        line.wait_received().value();
    };
    EXPECT_EQ(play(exporter, importer), 0) << "the exporter";
}

// keeps I6: by a file descriptor. A fabric handle that was imported holds the memory, too; an older one on driver 580,
// which does not promise it.
TEST(SharedMemoryProcesses, TheMemoryOutlivesAnExporterThatIsKilled) {
    for (const bool fabric : {false, true}) {
        const auto exporter = [&](Channel line) {
            Device& device = runtime().default_device();
            Numbers mine = hand_out(device, line, {.other_machines = fabric});
            if (!mine) return;
            device.stream().fill(mine, 41).value();
            device.stream().synchronize().value();
            line.send(your_turn, {}).value();
            EXPECT_EQ(line.receive().value().kind, your_turn);
            (void)::raise(SIGKILL);
        };
        const auto importer = [](Channel line) {
            Device& device = runtime().default_device();
            Buffer<std::int32_t> theirs = take_in(device, line);
            if (!theirs) return;
            EXPECT_EQ(line.receive().value().kind, your_turn);
            line.send(your_turn, {}).value();
            EXPECT_TRUE(refused_as(line.receive(), Code::peer_lost));
            (void)device.stream().launch(add_one, count, theirs).value();
            EXPECT_EQ(last_of(device, theirs), 42);
            EXPECT_TRUE(worked(theirs.release()));
        };
        const int status = play(exporter, importer);
        EXPECT_TRUE(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)) << status;
    }
}

bool all(const TypedBuffer<std::int32_t>& buffer, std::int32_t value) {
    const auto seen = buffer.read_on_host().value();
    return std::all_of(seen.begin(), seen.end(), [value](std::int32_t each) { return each == value; });
}
// Adds one by the host, and one by the device.
void add_two(Device& device, TypedBuffer<std::int32_t>& buffer) {
    {
        auto view = buffer.read_write_on_host().value();
        for (std::int32_t& each : view) ++each;
    }
    (void)device.stream().launch(add_one, count, buffer).value();
}
void hand_over(Channel& line, const TypedBuffer<std::int32_t>& buffer) {
    EXPECT_TRUE(worked(isthmus::flush_shared(buffer)));
    line.send(your_turn, {}).value();
}
void take_over(Channel& line, TypedBuffer<std::int32_t>& buffer) {
    EXPECT_EQ(line.receive().value().kind, your_turn);
    EXPECT_TRUE(worked(isthmus::invalidate_shared(buffer)));
}

// keeps I1, I7: in place, and where each side's device has a copy
TEST(SharedMemoryProcesses, HostsAndKernelsOfBothTakeTurnsWithMemoryOfTheHost) {
    for (const bool copied : {false, true}) {
        SharedUse use;
        if (copied) use.kind = MemoryKind::device;
        const auto exporter = [&](Channel line) {
            Device& device = runtime().default_device();
            Numbers mine = hand_out(device, line, {.seen_by = SeenBy::cpus_and_gpus, .use = use});
            for (int round = 0; round < rounds; ++round) {
                add_two(device, mine);
                hand_over(line, mine);
                take_over(line, mine);
                EXPECT_TRUE(all(mine, 4 * (round + 1)));
            }
            line.send(your_turn, {}).value();
            line.wait_received().value();
        };
        const auto importer = [&](Channel line) {
            Device& device = runtime().default_device();
            ChannelMessage message = line.receive().value();
            auto descriptor = SharedMemoryDescriptor::received(message.bytes, std::move(message.fds)).value();
            Buffer<std::int32_t> theirs =
                isthmus::import_memory<std::int32_t>(device, std::move(descriptor), {.use = use}).value();
            for (int round = 0; round < rounds; ++round) {
                take_over(line, theirs);
                EXPECT_TRUE(all(theirs, 4 * round + 2));
                add_two(device, theirs);
                hand_over(line, theirs);
            }
            EXPECT_EQ(line.receive().value().kind, your_turn);
        };
        EXPECT_EQ(play(exporter, importer), 0) << "the exporter";
    }
}

// keeps I3: whoever holds a descriptor has the memory, under any user; a channel sends none to others
// (channel_test.cpp)
TEST(SharedMemoryProcesses, AnotherUserImportsWhatItWasSent) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
    for (const SeenBy seen_by : {SeenBy::gpus_only, SeenBy::cpus_and_gpus}) {
        const auto exporter = [&](Channel line) {
            Device& device = runtime().default_device();
            Numbers mine = hand_out(device, line, {.seen_by = seen_by});
            if (!mine) return;
            if (mine.share_method() == ShareMethod::legacy_ipc) {  // its size cannot be checked
                EXPECT_TRUE(refused_as(line.receive(), Code::peer_lost));
                return;
            }
            device.stream().fill(mine, 6).value();
            hand_over(line, mine);
            take_over(line, mine);
            EXPECT_EQ(last_of(device, mine), 7);
        };
        const auto importer = [](Channel line) {
            constexpr ::gid_t nogroup = 65534;
            constexpr ::uid_t nobody = 65534;
            Device& device = runtime().default_device();
            EXPECT_EQ(::setresgid(nogroup, nogroup, nogroup), 0);
            EXPECT_EQ(::setresuid(nobody, nobody, nobody), 0);
            ChannelMessage message = line.receive().value();
            if (message.kind == no_memory || message.fds.empty()) return;
            Buffer<std::int32_t> theirs = taken_in(device, std::move(message));
            take_over(line, theirs);
            EXPECT_EQ(last_of(device, theirs), 6);
            (void)device.stream().launch(add_one, count, theirs).value();
            hand_over(line, theirs);
            line.wait_received().value();
        };
        EXPECT_EQ(play(exporter, importer), 0) << "the exporter";
    }
}

}  // namespace
}  // namespace conformance
