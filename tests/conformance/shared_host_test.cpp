// SPDX-License-Identifier: Apache-2.0
// Host memory that several processes use, on every machine and on the CPU device: here within one process, where each
// import is a separate mapping. Two processes: shared_memory_processes_test.cpp.
#include "scenario.hpp"

#include <isthmus/ipc/shared_memory.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace conformance {
namespace {

using Numbers = ExportableBuffer<std::int32_t>;
constexpr std::size_t count = 1000;
const ExportableOptions by_cpus{.seen_by = SeenBy::cpus_and_gpus};

Result<SharedMemoryDescriptor> received(const SharedMemoryDescriptor& sent, int file) {
    std::vector<FileDescriptor> fds;
    fds.emplace_back(::fcntl(file, F_DUPFD_CLOEXEC, 0));
    return SharedMemoryDescriptor::received(sent.bytes(), std::move(fds));
}
Result<Buffer<std::int32_t>> import(Device& device, const SharedMemoryDescriptor& sent, int file,
                                    const ImportOptions& options = {}) {
    Result<SharedMemoryDescriptor> arrived = received(sent, file);
    if (!arrived) return arrived.error();
    return isthmus::import_memory<std::int32_t>(device, std::move(arrived).value(), options);
}
bool all(const TypedBuffer<std::int32_t>& buffer, std::int32_t value) {
    const auto seen = buffer.read_on_host().value();
    return std::all_of(seen.begin(), seen.end(), [value](std::int32_t element) { return element == value; });
}
void add_one(Device& device, TypedBuffer<std::int32_t>& buffer) {
    (void)device.stream().launch(conformance::add_one, buffer.size(), buffer).value();
}

// keeps I1, I3
TEST(SharedHostMemory, HostsAndDevicesOfBothSidesUseTheSameBytes) {
    // A device that uses it often may get a copy, one that reads it once mostly not; the order of uses is the same.
    for (const SharedUse& use : {SharedUse{}, SharedUse{.host = Use::writes_once, .device = Use::reads_often},
                                 SharedUse{.kind = MemoryKind::device}}) {
        on_every_device([&](Device& device) {
            ExportableOptions options = by_cpus;
            options.use = use;
            Numbers mine = Numbers::create(device, count, options).value();
            EXPECT_EQ(mine.share_method(), ShareMethod::host_memory);
            EXPECT_TRUE(all(mine, 0));
            const SharedMemoryDescriptor sent = export_memory(mine).value();
            EXPECT_EQ(sent.facts().bytes, count * sizeof(std::int32_t));
            EXPECT_EQ(sent.facts().mapped_bytes, static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
            EXPECT_EQ(sent.facts().device, device.facts().uuid);
            ImportOptions taking;
            taking.use = use;
            Buffer<std::int32_t> theirs = import(device, sent, sent.fds()[0], taking).value();
            EXPECT_EQ(theirs.size(), count);
            // Each process has its own mapping, of the kind that it chose (K2); `imported` is memory of a GPU.
            EXPECT_NE(theirs.kind(), MemoryKind::imported);
            EXPECT_TRUE(unless_fault(theirs.kind() == mine.kind())) << isthmus::name(theirs.kind());
            EXPECT_TRUE(unless_fault(theirs.explain() == mine.explain())) << theirs.explain();
            EXPECT_EQ(mine.explain().find("shared memory of the host"), 0u) << mine.explain();
            if (use.kind == MemoryKind::device && !device.is_cpu()) {
                EXPECT_EQ(mine.path(), LaunchPath::stage);
            }
            set_all(mine, 4);
            EXPECT_TRUE(worked(isthmus::flush_shared(mine)));
            EXPECT_TRUE(worked(isthmus::invalidate_shared(theirs)));
            EXPECT_TRUE(all(theirs, 4));
            for (int round = 0; round < 2; ++round) {
                add_one(device, theirs);
                EXPECT_TRUE(worked(isthmus::flush_shared(theirs)));
                EXPECT_TRUE(worked(isthmus::invalidate_shared(mine)));
                add_one(device, mine);
                EXPECT_TRUE(worked(isthmus::flush_shared(mine)));
                EXPECT_TRUE(worked(isthmus::invalidate_shared(theirs)));
            }
            EXPECT_TRUE(all(mine, 8));
            EXPECT_TRUE(all(theirs, 8));
        });
    }
}

// keeps I1: whichever device exports it
TEST(SharedHostMemory, EveryDeviceImportsWhatAnyOtherOneExports) {
    on_every_device([](Device& device) {
        Numbers mine = Numbers::create(device, count, by_cpus).value();
        set_all(mine, 1);
        const SharedMemoryDescriptor sent = mine.export_memory().value();
        for (std::size_t at = 0; at < runtime().device_count(); ++at) {
            Device& other = *runtime().device(at).value();
            Buffer<std::int32_t> theirs = import(other, sent, sent.fds()[0]).value();
            add_one(other, theirs);
            EXPECT_TRUE(worked(isthmus::flush_shared(theirs)));
            EXPECT_TRUE(all(mine, static_cast<std::int32_t>(at) + 2));
            EXPECT_TRUE(refused_as(export_memory(theirs), Code::unsupported));
            EXPECT_EQ(theirs.can_export().verdict, Verdict::no);
        }
    });
}

// keeps I1: with no GPU at the end a CPU is among its users, whatever was declared
TEST(SharedHostMemory, IsWhatTheCpuDeviceExports) {
    Device& cpu = runtime().cpu();
    Numbers mine = Numbers::create(cpu, count).value();
    EXPECT_EQ(mine.share_method(), ShareMethod::host_memory);
    EXPECT_TRUE(all(mine, 0));
    EXPECT_TRUE(refused_as(Numbers::create(cpu, count, {.other_machines = true}), Code::unsupported));
    ExportableOptions elsewhere = by_cpus;
    elsewhere.other_machines = true;
    on_every_device([&](Device& device) {
        EXPECT_TRUE(refused_as(Numbers::create(device, count, elsewhere), Code::unsupported));
        EXPECT_TRUE(refused_as(Numbers::create(device, 0, by_cpus), Code::invalid_argument));
        EXPECT_TRUE(refused_as(Numbers::create(device, ~std::size_t{0}, by_cpus), Code::invalid_argument));
    });
}

// keeps I1: what would be lost, or read half old, is refused
TEST(SharedHostMemory, TurnsThatWouldLoseSomethingAreRefused) {
    on_every_device([](Device& device) {
        ExportableOptions copied = by_cpus;
        copied.use.kind = MemoryKind::device;
        Numbers mine = Numbers::create(device, count, device.is_cpu() ? by_cpus : copied).value();
        {
            const auto view = mine.read_write_on_host().value();
            EXPECT_TRUE(refused_as(isthmus::flush_shared(mine), Code::in_use));
            EXPECT_TRUE(refused_as(isthmus::invalidate_shared(mine), Code::in_use));
        }
        add_one(device, mine);
        if (mine.path() == LaunchPath::stage) {
            EXPECT_TRUE(refused_as(isthmus::invalidate_shared(mine), Code::in_use));
        }
        EXPECT_TRUE(worked(isthmus::flush_shared(mine)));
        EXPECT_TRUE(worked(isthmus::invalidate_shared(mine)));
        EXPECT_TRUE(all(mine, 1));
        auto own = device.allocate_shared<std::int32_t>(count).value();
        EXPECT_TRUE(refused_as(isthmus::flush_shared(own), Code::invalid_argument));
        EXPECT_TRUE(refused_as(isthmus::invalidate_shared(own), Code::invalid_argument));
        Buffer<std::int32_t> none;
        EXPECT_TRUE(refused_as(isthmus::flush_shared(none), Code::invalid_handle));
        EXPECT_TRUE(refused_as(isthmus::invalidate_shared(none), Code::invalid_handle));
    });
}

// keeps I6
TEST(SharedHostMemory, TheExporterMayEndFirstAndThenExportsNoMore) {
    on_every_device([](Device& device) {
        Numbers mine = Numbers::create(device, count, by_cpus).value();
        set_all(mine, 5);
        const SharedMemoryDescriptor sent = mine.export_memory().value();
        EXPECT_TRUE(worked(mine.release()));
        EXPECT_TRUE(refused_as(export_memory(mine), Code::invalid_handle));
        Buffer<std::int32_t> theirs = import(device, sent, sent.fds()[0]).value();
        add_one(device, theirs);
        EXPECT_TRUE(all(theirs, 6));
        EXPECT_TRUE(worked(theirs.release()));
    });
}

// keeps I7
TEST(SharedHostMemory, ASteadyStateImportsNothing) {
    on_every_device([](Device& device) {
        if (driver_calls() < 0) return;
        Numbers mine = Numbers::create(device, count, by_cpus).value();
        Buffer<std::int32_t> theirs =
            isthmus::import_memory<std::int32_t>(device, mine.export_memory().value()).value();
        const long before = driver_calls();
        for (std::int32_t round = 0; round < 10; ++round) {
            set_all(mine, round);
            EXPECT_TRUE(worked(isthmus::flush_shared(mine)));
            EXPECT_TRUE(worked(isthmus::invalidate_shared(theirs)));
            EXPECT_TRUE(all(theirs, round));
        }
        EXPECT_TRUE(unless_fault(driver_calls() == before));
    });
}

// A file of `bytes` bytes with `seals`, as another program may make it.
FileDescriptor file_of(std::size_t bytes, int seals, unsigned flags = MFD_ALLOW_SEALING) {
    FileDescriptor file(::memfd_create("of-somebody", MFD_CLOEXEC | flags));
    EXPECT_EQ(::ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
    if (seals != 0) {
        EXPECT_EQ(::fcntl(file.get(), F_ADD_SEALS, seals), 0);
    }
    return file;
}

// keeps I5: nothing of it is believed, and nothing is left of it
TEST(SharedHostMemory, AFileThatIsNotWhatItsDescriptorSaysIsRefused) {
    constexpr int right = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    on_every_device([&](Device& device) {
        Numbers mine = Numbers::create(device, count, by_cpus).value();
        const SharedMemoryDescriptor sent = mine.export_memory().value();
        const auto bytes = static_cast<std::size_t>(sent.facts().mapped_bytes);
        const auto answers = [&](const FileDescriptor& file) { return import(device, sent, file.get()); };
        EXPECT_TRUE(worked(answers(file_of(bytes, right))));
        for (const int lacking : {F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL}) {
            EXPECT_TRUE(refused_as(answers(file_of(bytes, right & ~lacking)), Code::peer_broke_rules)) << lacking;
        }
        EXPECT_TRUE(refused_as(answers(file_of(bytes, 0)), Code::peer_broke_rules));
        EXPECT_TRUE(refused_as(answers(file_of(bytes, 0, 0)), Code::peer_broke_rules));
        // Shrunk before it was sealed, or larger.
        for (const std::size_t other : {std::size_t{0}, bytes - 1, bytes / 2, bytes + 1, 2 * bytes}) {
            EXPECT_TRUE(refused_as(answers(file_of(other, right)), Code::peer_broke_rules)) << other;
        }
        // Sealed against writing: it cannot be mapped with the rights that its description claims.
        EXPECT_FALSE(answers(file_of(bytes, right | F_SEAL_WRITE)).ok());
        const FileDescriptor good(::fcntl(sent.fds()[0], F_DUPFD_CLOEXEC, 0));
        const std::string path = "/proc/self/fd/" + std::to_string(good.get());
        const FileDescriptor reading(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        EXPECT_TRUE(refused_as(answers(reading), Code::peer_broke_rules));
        std::array<int, 2> pipe_ends{-1, -1};
        ASSERT_EQ(::pipe2(pipe_ends.data(), O_CLOEXEC), 0);
        const FileDescriptor in(pipe_ends[0]), out(pipe_ends[1]);
        EXPECT_TRUE(refused_as(answers(in), Code::peer_broke_rules));
        EXPECT_TRUE(worked(answers(good))) << "as before";
        // More than this process permits an import to map, and elements of another size.
        ImportOptions small;
        small.max_bytes = bytes - 1;
        EXPECT_TRUE(refused_as(import(device, sent, good.get(), small), Code::out_of_memory));
        EXPECT_TRUE(refused_as(isthmus::import_memory<std::int64_t>(device, received(sent, good.get()).value()),
                               Code::invalid_argument));
    });
}

// keeps I5: files of one share method with the bytes of another one
TEST(SharedHostMemory, FilesOfTheHostAndOfGpusAreNotTakenForEachOther) {
    on_every_device([](Device& device) {
        const Result<Numbers> gpu = Numbers::create(device, count);
        if (!gpu || gpu->share_method() != ShareMethod::posix_fd) return;
        Numbers host = Numbers::create(device, count, by_cpus).value();
        const SharedMemoryDescriptor of_gpu = gpu->export_memory().value(), of_host = host.export_memory().value();
        EXPECT_TRUE(refused_as(import(device, of_gpu, of_host.fds()[0]), Code::invalid_argument));
        EXPECT_TRUE(refused_as(import(device, of_host, of_gpu.fds()[0]), Code::peer_broke_rules));
        EXPECT_TRUE(unless_fault(device.healthy()));
    });
}

}  // namespace
}  // namespace conformance
