// SPDX-License-Identifier: Apache-2.0
// Memory that is exported and imported: here within one process, where each import is a separate mapping. Two
// processes: shared_memory_processes_test.cpp.
#include "scenario.hpp"

#include <isthmus/ipc/export_probe.hpp>
#include <isthmus/ipc/shared_memory.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace conformance {
namespace {

using Numbers = ExportableBuffer<std::int32_t>;
using Bytes = std::vector<std::byte>;
constexpr std::size_t count = 1000;
constexpr LaunchOptions checked{.mode = LaunchMode::checked};

bool exports(const Device& device) {
    const auto& can = device.capabilities();
    return can.has(Feature::virtual_memory) && can.has(Feature::export_posix_fd);
}
template <class Body>
void on_every_exporting_device(Body body) {
    on_every_device([&](Device& device) {
        if (exports(device)) body(device);
    });
}

Bytes bytes_of(const SharedMemoryDescriptor& descriptor) {
    return {descriptor.bytes().begin(), descriptor.bytes().end()};
}
// As received over a transport; duplicates `file`.
Result<SharedMemoryDescriptor> received(const Bytes& bytes, int file) {
    std::vector<FileDescriptor> fds;
    if (file >= 0) fds.emplace_back(::fcntl(file, F_DUPFD_CLOEXEC, 0));
    return SharedMemoryDescriptor::received(bytes, std::move(fds));
}
void put(Bytes& bytes, std::size_t at, std::uint64_t value) {
    for (std::size_t byte = 0; byte < 8; ++byte) bytes[at + byte] = static_cast<std::byte>(value >> (8 * byte));
}

void expect_all(Device& device, const TypedBuffer<std::int32_t>& buffer, std::int32_t value) {
    Buffer<std::int32_t> out = pinned(device, buffer.size(), -1);
    (void)device.stream().launch(checked, scale_into, buffer.size(), out, buffer, 1).value();
    conformance::expect_all(out, value);
}

// keeps I1
TEST(SharedMemory, BothSidesUseTheSameBytes) {
    on_every_exporting_device([](Device& device) {
        Numbers made = Numbers::create(device, count).value();
        EXPECT_EQ(made.share_method(), ShareMethod::posix_fd);
        EXPECT_EQ(made.kind(), MemoryKind::vmm);
        EXPECT_FALSE(made.explain().empty());
        const SharedMemoryDescriptor sent = export_memory(made).value();
        EXPECT_EQ(sent.facts().bytes, count * sizeof(std::int32_t));
        EXPECT_EQ(sent.facts().device, device.facts().uuid);
        EXPECT_EQ(sent.facts().mapped_bytes % sent.facts().granularity_bytes, 0u);
        auto arrived = received(bytes_of(sent), sent.fds()[0]).value();
        EXPECT_EQ(arrived.facts(), sent.facts());
        Buffer<std::int32_t> taken = isthmus::import_memory<std::int32_t>(device, std::move(arrived)).value();
        EXPECT_EQ(taken.size(), count);
        EXPECT_NE(taken.device_address(), made.device_address());
        (void)device.stream().launch(checked, add_one, count, made).value();
        expect_all(device, taken, 1);
        (void)device.stream().launch(checked, add_one, count, taken).value();
        expect_all(device, made, 2);
    });
}

// keeps K1, K2, K3, A1, A6, A16: by handle and by address, whatever mode judges it
TEST(SharedMemory, WhatWasImportedIsOfAKindOfItsOwn) {
    on_every_exporting_device([](Device& device) {
        Numbers made = Numbers::create(device, count).value();
        Buffer<std::int32_t> taken = isthmus::import_memory<std::int32_t>(device, made.export_memory().value()).value();
        EXPECT_EQ(made.kind(), MemoryKind::vmm) << "its maker's";
        EXPECT_EQ(taken.kind(), MemoryKind::imported);
        EXPECT_EQ(taken.host_kind(), MemoryKind::unknown) << "no CPU finds it";
        EXPECT_EQ(taken.part(1, 2).value().kind(), MemoryKind::imported);
        EXPECT_FALSE(taken.read_on_host().ok());
        EXPECT_NE(taken.can_export().verdict, Verdict::yes);
        const View<std::int32_t> raw{reinterpret_cast<std::int32_t*>(taken.device_address()), count};
        EXPECT_EQ(device.stream().explain(add_one, count, raw).arguments.at(0).kind, MemoryKind::imported);
        std::int32_t rounds = 0;
        for (const LaunchMode mode : {LaunchMode::checked, LaunchMode::strict, LaunchMode::staged}) {
            const LaunchOptions options{.mode = mode};
            EXPECT_TRUE(worked(device.stream().launch(options, add_one, count, taken)));
            EXPECT_TRUE(worked(device.stream().launch(options, add_one, count, raw)));
            rounds += 2;
        }
        expect_all(device, made, rounds);
        on_every_device([&](Device& other) {
            const bool own = &other == &device;
            EXPECT_EQ(static_cast<bool>(other.can_access(taken)), own);
            EXPECT_EQ(static_cast<bool>(other.can_access(raw.data, count * sizeof(std::int32_t))), own);
            if (own) return;
            EXPECT_TRUE(refused_as(other.stream().launch(checked, add_one, count, taken), Code::not_accessible));
        });
        EXPECT_TRUE(worked(taken.release()));
        EXPECT_EQ(taken.kind(), MemoryKind::unknown);
    });
}

// keeps I3: by a fill of its own, whatever the driver does
TEST(SharedMemory, IsZeroWhenItIsMadeAndNotUsedAgainForAnythingElse) {
    on_every_exporting_device([](Device& device) {
        for (int round = 0; round < 2; ++round) {
            const long fills = driver_calls("cuMemsetD8Async"), creations = driver_calls("cuMemCreate");
            Numbers made = Numbers::create(device, count).value();
            if (fills >= 0) {
                EXPECT_TRUE(unless_fault(driver_calls("cuMemsetD8Async") == fills + 1));
                EXPECT_TRUE(unless_fault(driver_calls("cuMemCreate") == creations + 1)) << "from no pool";
            }
            expect_all(device, made, 0);
            device.stream().fill(made, 77).value();
            const long releases = driver_calls("cuMemRelease");
            EXPECT_TRUE(worked(made.release()));
            if (releases >= 0) {
                EXPECT_TRUE(unless_fault(driver_calls("cuMemRelease") == releases + 1)) << "to no pool";
            }
        }
    });
}

// keeps I6
TEST(SharedMemory, TheExporterMayEndFirst) {
    on_every_exporting_device([](Device& device) {
        Buffer<std::int32_t> taken;
        {
            Numbers made = Numbers::create(device, count).value();
            device.stream().fill(made, 5).value();
            device.synchronize().value();
            taken = isthmus::import_memory<std::int32_t>(device, made.export_memory().value()).value();
        }
        expect_all(device, taken, 5);
        EXPECT_TRUE(worked(taken.release()));
    });
}

// keeps I7
TEST(SharedMemory, ASteadyStateCallsTheDriverForItsLaunchesOnly) {
    on_every_exporting_device([](Device& device) {
        if (driver_calls() < 0) return;
        Numbers made = Numbers::create(device, count).value();
        SharedMemoryDescriptor descriptor = made.export_memory().value();
        const long nothing = driver_calls();
        Buffer<std::int32_t> taken = isthmus::import_memory<std::int32_t>(device, std::move(descriptor)).value();
        EXPECT_TRUE(unless_fault(driver_calls() - nothing == 7)) << "as often as docs/performance.md says";
        Stream stream = device.create_stream().value();
        const auto launches = [&](int times) {
            for (int round = 0; round < times; ++round) {
                (void)stream.launch(checked, add_one, count, made).value();
                (void)stream.launch(checked, add_one, count, taken).value();
            }
        };
        launches(2);
        const long before = driver_calls(), launched = driver_calls("cuLaunchKernel");
        launches(10);
        EXPECT_TRUE(unless_fault(driver_calls() - before == 20));
        EXPECT_TRUE(unless_fault(driver_calls("cuLaunchKernel") - launched == 20));
        stream.synchronize().value();
        expect_all(device, taken, 24);
        const long all = driver_calls();
        taken.release().value();
        EXPECT_TRUE(unless_fault(driver_calls() - all == 3)) << "unmap, release, free";
    });
}

// keeps I1, V1
TEST(SharedMemory, ADeviceThatSharesNoneOfItsMemorySaysWhatWorks) {
    on_every_device([](Device& device) {
        if (exports(device) || device.is_cpu()) return;
        const Result<Numbers> made = Numbers::create(device, count);
        // The last method; only an attempt shows whether it works.
        if (made && made->share_method() == ShareMethod::legacy_ipc) return;
        EXPECT_TRUE(refused_as(made, Code::unsupported));
        if (!made) {
            EXPECT_TRUE(unless_fault(made.error().text().find("seen_by") != std::string::npos)) << made.error().text();
        }
    });
}

// keeps I1, I3: where there is nothing better; in two processes in shared_memory_processes_test.cpp
TEST(SharedMemory, AnOlderHandleIsTheLastMethod) {
    on_every_device([](Device& device) {
        if (exports(device) || device.is_cpu()) return;
        const long allocations = driver_calls("cuMemAlloc_v2"), frees = driver_calls("cuMemFree_v2");
        Result<Numbers> made = Numbers::create(device, count);
        if (!made) {
            EXPECT_TRUE(unless_fault(frees < 0 || driver_calls("cuMemFree_v2") - frees ==
                                                      driver_calls("cuMemAlloc_v2") - allocations));
            return;
        }
        EXPECT_EQ(made->share_method(), ShareMethod::legacy_ipc);
        EXPECT_EQ(made->size(), count);
        EXPECT_FALSE(made->explain().empty());
        EXPECT_TRUE(unless_fault(allocations < 0 || driver_calls("cuMemAlloc_v2") == allocations + 1)) << "no pool";
        expect_all(device, *made, 0);
        const SharedMemoryDescriptor sent = made->export_memory().value();
        EXPECT_TRUE(sent.fds().empty());
        EXPECT_EQ(sent.facts().device, device.facts().uuid);
        EXPECT_EQ(sent.facts().mapped_bytes, std::uint64_t{2} << 20) << "nothing else lies in what the driver shares";
        const auto import = [&](Device& with, const Bytes& bytes) -> Result<Buffer<std::int32_t>> {
            Result<SharedMemoryDescriptor> arrived = received(bytes, -1);
            if (!arrived) return std::move(arrived).error();
            return isthmus::import_memory<std::int32_t>(with, std::move(arrived).value());
        };
        const Result<Buffer<std::int32_t>> here = import(device, bytes_of(sent));
        EXPECT_TRUE(refused_as(here, Code::invalid_argument)) << "it is this process's own";
        if (!here) {
            EXPECT_TRUE(unless_fault(here.error().driver_code() == 201)) << here.error().text();
        }
        Bytes altered = bytes_of(sent);
        altered[64] ^= std::byte{0xff};
        EXPECT_TRUE(refused_as(import(device, altered), Code::invalid_argument)) << "no handle of the driver's";
        EXPECT_TRUE(refused_as(import(runtime().cpu(), bytes_of(sent)), Code::unsupported));
        (void)device.stream().launch(checked, add_one, count, *made).value();
        expect_all(device, *made, 1);
        EXPECT_TRUE(worked(made->release()));
        EXPECT_TRUE(refused_as(export_memory(*made), Code::invalid_handle));
        EXPECT_TRUE(unless_fault(frees < 0 || driver_calls("cuMemFree_v2") == frees + 1)) << "and to none";
    });
}

// keeps I1
TEST(SharedMemory, WhatIsNoneOfItIsNotMade) {
    on_every_exporting_device([](Device& device) {
        EXPECT_TRUE(refused_as(Numbers::create(device, 0), Code::invalid_argument));
        EXPECT_TRUE(refused_as(Numbers::create(device, ~std::size_t{0}), Code::invalid_argument));
        const Numbers never;
        EXPECT_TRUE(refused_as(export_memory(never), Code::invalid_handle));
        Numbers made = Numbers::create(device, count).value();
        EXPECT_TRUE(worked(made.release()));
        EXPECT_TRUE(refused_as(export_memory(made), Code::invalid_handle));
    });
}

// keeps I3, K15
TEST(SharedMemory, OtherBuffersAreNotExportedAndTheRefusalSaysWhatIs) {
    on_every_device([](Device& device) {
        const auto explains = [](const Result<SharedMemoryDescriptor>& answer) {
            EXPECT_TRUE(refused_as(answer, Code::unsupported));
            return !answer && answer.error().text().find("ExportableBuffer") != std::string::npos;
        };
        EXPECT_TRUE(explains(export_memory(device.allocate<std::int32_t>(count).value())));
        EXPECT_TRUE(explains(export_memory(device.allocate_shared<std::int32_t>(count).value())));
        EXPECT_TRUE(refused_as(export_memory(Buffer<std::int32_t>()), Code::invalid_handle));
        if (!exports(device)) return;
        Numbers made = Numbers::create(device, count).value();
        const Buffer<std::int32_t> taken =
            isthmus::import_memory<std::int32_t>(device, made.export_memory().value()).value();
        EXPECT_TRUE(explains(export_memory(taken)));
    });
}

// keeps I1: by the UUID, which is the same in every process
TEST(SharedMemory, OtherDevicesDoNotImportIt) {
    on_every_exporting_device([](Device& device) {
        Numbers made = Numbers::create(device, count).value();
        for (Device& other : all_devices()) {
            if (&other == &device) continue;
            const Code wanted = other.is_cpu() ? Code::unsupported : Code::wrong_device;
            EXPECT_TRUE(refused_as(isthmus::import_memory<std::int32_t>(other, made.export_memory().value()), wanted));
        }
        EXPECT_TRUE(refused_as(isthmus::import_memory<std::int64_t>(device, made.export_memory().value()),
                               Code::invalid_argument));
        // Altered as if it came from a machine with another GPU.
        const SharedMemoryDescriptor sent = made.export_memory().value();
        Bytes bytes = bytes_of(sent);
        bytes[48] ^= std::byte{1};
        auto elsewhere = received(bytes, sent.fds()[0]).value();
        EXPECT_TRUE(refused_as(isthmus::import_memory<std::int32_t>(device, std::move(elsewhere)), Code::wrong_device));
    });
}

// keeps I6: nothing of it is believed, and nothing is left of it
TEST(SharedMemory, WhatIsNotWhatItsDescriptorSaysIsRefused) {
    on_every_exporting_device([](Device& device) {
        Numbers made = Numbers::create(device, count).value();
        const SharedMemoryDescriptor sent = made.export_memory().value();
        const Bytes good = bytes_of(sent);
        const auto import = [&](const Bytes& bytes, int file) -> Result<Buffer<std::int32_t>> {
            Result<SharedMemoryDescriptor> arrived = received(bytes, file);
            if (!arrived) return arrived.error();
            return isthmus::import_memory<std::int32_t>(device, std::move(arrived).value());
        };
        EXPECT_TRUE(worked(import(good, sent.fds()[0])));
        // A descriptor of something else: the driver answers 999.
        std::array<int, 2> pipe_ends{-1, -1};
        ASSERT_EQ(::pipe2(pipe_ends.data(), O_CLOEXEC), 0);
        const FileDescriptor in(pipe_ends[0]), out(pipe_ends[1]);
        const Result<Buffer<std::int32_t>> wrong = import(good, in.get());
        EXPECT_TRUE(refused_as(wrong, Code::invalid_argument));
        if (!wrong) {
            EXPECT_TRUE(unless_fault(wrong.error().driver_code() == 999)) << wrong.error().text();
        }
        EXPECT_TRUE(refused_as(import(good, -1), Code::invalid_argument));
        // Another size than the memory has: only mapping it detects that.
        const std::uint64_t granule = sent.facts().granularity_bytes;
        Bytes larger = good;
        put(larger, 16, 2 * granule);
        put(larger, 24, 2 * granule);
        EXPECT_TRUE(refused_as(import(larger, sent.fds()[0]), Code::invalid_argument));
        Numbers twice = Numbers::create(device, 2 * granule / sizeof(std::int32_t)).value();
        const SharedMemoryDescriptor other = twice.export_memory().value();
        EXPECT_TRUE(refused_as(import(good, other.fds()[0]), Code::invalid_argument))
            << "bytes and file of two exports";
        // Truncated, and altered.
        EXPECT_TRUE(refused_as(import(Bytes(good.begin(), good.end() - 1), sent.fds()[0]), Code::invalid_argument));
        Bytes altered = good;
        altered[8] ^= std::byte{2};
        EXPECT_TRUE(refused_as(import(altered, sent.fds()[0]), Code::invalid_argument));
        EXPECT_TRUE(unless_fault(device.healthy()));
        EXPECT_TRUE(worked(import(good, sent.fds()[0]))) << "as before";
    });
}

// keeps I1: bytes of one GPU with the file of another
TEST(SharedMemory, MemoryOfAnotherDeviceUnderThisOnesNameIsRefused) {
    on_every_exporting_device([](Device& device) {
        for (Device& other : all_devices()) {
            if (&other == &device || !exports(other)) continue;
            Numbers mine = Numbers::create(device, count).value();
            Numbers theirs = Numbers::create(other, count).value();
            const SharedMemoryDescriptor file = theirs.export_memory().value();
            auto mixed = received(bytes_of(mine.export_memory().value()), file.fds()[0]).value();
            EXPECT_TRUE(
                refused_as(isthmus::import_memory<std::int32_t>(device, std::move(mixed)), Code::invalid_argument));
        }
    });
}

// keeps I1: only a try tells whether a fabric works
TEST(SharedMemory, AFabricCarriesMemoryWhereItWorksAndElseSaysWhatIsMissing) {
    on_every_device([](Device& device) {
        Result<Numbers> made = Numbers::create(device, count, {.other_machines = true});
        if (!made) {
            const auto& can = device.capabilities();
            const bool says = can.has(Feature::virtual_memory) && can.has(Feature::export_fabric);
            EXPECT_TRUE(refused_as(made, says ? Code::not_permitted : Code::unsupported));
            return;
        }
        EXPECT_EQ(made->share_method(), ShareMethod::fabric);
        const SharedMemoryDescriptor sent = made->export_memory().value();
        EXPECT_TRUE(sent.fds().empty());
        auto arrived = received(bytes_of(sent), -1).value();
        Buffer<std::int32_t> taken = isthmus::import_memory<std::int32_t>(device, std::move(arrived)).value();
        (void)device.stream().launch(checked, add_one, count, *made).value();
        expect_all(device, taken, 1);
        Bytes altered = bytes_of(sent);
        altered[64] ^= std::byte{0xff};
        auto wrong = received(altered, -1).value();
        EXPECT_TRUE(refused_as(isthmus::import_memory<std::int32_t>(device, std::move(wrong)), Code::invalid_argument));
    });
}

Feature feature_of(ExportKinds kind) {
    return kind == ExportKinds::fabric ? Feature::export_fabric : Feature::export_posix_fd;
}

// keeps V5, D10
TEST(SharedMemory, ATryTellsWhetherHandlesWorkAndCapabilitiesFollowIt) {
    on_every_device([](Device& device) {
        for (const ExportKinds kind : {ExportKinds::posix_fd, ExportKinds::fabric}) {
            const Feature feature = feature_of(kind);
            const bool says = device.capabilities().has(Feature::virtual_memory) && device.capabilities().has(feature);
            const Result<ExportFinding> tried = isthmus::probe_export(device, kind);
            if (!says) {
                EXPECT_TRUE(refused_as(tried, Code::unsupported));
                continue;
            }
            const long before = driver_calls();
            const ExportFinding found = isthmus::probe_export(device, kind).value();
            const long calls = driver_calls() - before;
            EXPECT_TRUE(unless_fault(before < 0 || !found.works || calls == 8)) << calls;
            EXPECT_EQ(found.works, found.driver_code == 0) << found.call << " " << found.message;
            const bool fabric = kind == ExportKinds::fabric;
            const bool makes = Numbers::create(device, count, {.other_machines = fabric}).ok();
            EXPECT_TRUE(unless_fault(found.works == makes)) << "a try is as good as the real thing";

            RuntimeOptions options;
            options.export_findings = {found};
            Runtime second = Runtime::open(options).value();
            for (std::size_t at = 0; at < second.device_count(); ++at) {
                const Device& each = *second.device(at).value();
                const Capability& answer = each.capabilities().feature(feature);
                if (each.facts().uuid == device.facts().uuid) {
                    const State state = found.works ? State::probed : State::no;
                    EXPECT_TRUE(unless_fault(answer.state == state && answer.origin == Origin::probe)) << answer.reason;
                } else {
                    EXPECT_NE(answer.origin, Origin::probe) << "nobody tried this one";
                }
            }
            if (found.works) continue;
            Device& lowered = *second.device(device.facts().uuid).value();
            EXPECT_TRUE(refused_as(Numbers::create(lowered, count, {.other_machines = fabric}), Code::unsupported));
            EXPECT_TRUE(refused_as(isthmus::probe_export(lowered, kind), Code::unsupported));
        }
        for (const ExportKinds kind : {ExportKinds::none, ExportKinds::posix_fd | ExportKinds::fabric}) {
            EXPECT_TRUE(refused_as(isthmus::probe_export(device, kind), Code::invalid_argument));
        }
    });
}

// keeps Y5, M6, I3: whole pages of zeros, of no cache, and every other buffer is refused with that remedy.
TEST(SharedMemory, WhatWasRequestedExportableLeavesAsADmaBuf) {
    on_every_device([](Device& device) {
        const auto& can = device.capabilities();
        for (const SeenBy seen : {SeenBy::gpus_only, SeenBy::cpus_and_gpus}) {
            const bool of_host = seen == SeenBy::cpus_and_gpus;
            const bool works = !device.is_cpu() && can.has(of_host ? Feature::host_dma_buf : Feature::dma_buf);
            auto made = Numbers::create(device, count, {.seen_by = seen, .dma_buf = true});
            if (!works) {
                EXPECT_TRUE(refused_as(made, Code::unsupported));
                EXPECT_EQ(made.error().id(), "I083");
                EXPECT_FALSE(made.error().remedy().empty());
                continue;
            }
            if (!made && made.error().id() == "I022") {  // nor has it legacy handles of device memory
                EXPECT_FALSE(of_host || can.has(Feature::virtual_memory));
                continue;
            }
            Numbers numbers = std::move(made).value();
            expect_all(device, numbers, 0);
            const FileDescriptor file = numbers.export_dma_buf().value();
            EXPECT_NE(::fcntl(file.get(), F_GETFD) & FD_CLOEXEC, 0);
            const FileDescriptor again = export_dma_buf(numbers).value();
            EXPECT_NE(again.get(), file.get());
            if (of_host) {
                EXPECT_EQ(numbers.share_method(), ShareMethod::none);
                EXPECT_EQ(numbers.export_memory().error().id(), "I086");
                EXPECT_EQ(Numbers::create(device, 0, {.seen_by = seen, .dma_buf = true}).error().id(), "I087");
            }
            const Buffer<std::int32_t> sevens = conformance::pinned(device, count, 7);
            (void)device.stream().launch(checked, scale_into, count, numbers, sevens, 1).value();
            (void)device.stream().synchronize().value();
            // A driver's dma-buf has no mapping for the CPU; the simulator's has.
            void* const at = ::mmap(nullptr, count * 4, PROT_READ, MAP_SHARED, file.get(), 0);
            if (at == MAP_FAILED) continue;
            EXPECT_EQ(static_cast<const std::int32_t*>(at)[count - 1], 7);
            ::munmap(at, count * 4);
        }
        const Numbers of_file = Numbers::create(device, count, {.seen_by = SeenBy::cpus_and_gpus}).value();
        EXPECT_EQ(of_file.export_dma_buf().error().id(), "I085");
        const auto refused = export_dma_buf(device.allocate_shared<std::int32_t>(count).value());
        EXPECT_TRUE(refused_as(refused, Code::unsupported));
        EXPECT_EQ(refused.error().id(), "I084");
        EXPECT_NE(refused.error().text().find("ExportableBuffer"), std::string::npos);
        EXPECT_TRUE(refused_as(export_dma_buf(Buffer<std::int32_t>()), Code::invalid_handle));
        EXPECT_TRUE(refused_as(Numbers().export_dma_buf(), Code::invalid_handle));
    });
}

}  // namespace
}  // namespace conformance
