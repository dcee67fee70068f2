// SPDX-License-Identifier: Apache-2.0
// Adopted memory of every origin as a buffer, and its release callback, which comes once.
#include "scenario.hpp"
#include "foreign_driver.hpp"

#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 3000;  // several pages, and not a whole number of them
constexpr std::size_t bytes = count * sizeof(std::int32_t);

// A mapping and the number of its release callbacks. The callback unmaps it: any later use would fault.
class Foreign {
public:
    enum class Sort { anonymous, shared, memory_file, private_file };
    explicit Foreign(Sort sort = Sort::anonymous) {
        const bool file = sort == Sort::memory_file || sort == Sort::private_file;
        if (file) {
            descriptor_ = ::memfd_create("adopted", MFD_CLOEXEC);
            if (descriptor_ < 0 || ::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) std::abort();
        }
        const int flags = (sort == Sort::anonymous || sort == Sort::private_file ? MAP_PRIVATE : MAP_SHARED) |
                          (file ? 0 : MAP_ANONYMOUS);
        data_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, descriptor_, 0);
        if (data_ == MAP_FAILED) std::abort();
        for (std::size_t i = 0; i < count; ++i) numbers()[i] = static_cast<std::int32_t>(i);
    }
    Foreign(const Foreign&) = delete;
    Foreign& operator=(const Foreign&) = delete;
    ~Foreign() {
        if (*told_ == 0) (void)::munmap(data_, bytes);
        if (descriptor_ >= 0) (void)::close(descriptor_);
    }
    std::int32_t* numbers() const { return static_cast<std::int32_t*>(data_); }
    void* data() const { return data_; }
    void forbid_writing() { ASSERT_EQ(::mprotect(data_, bytes, PROT_READ), 0); }
    int told() const { return *told_; }
    AdoptOptions options(SharedUse use = {}) const {
        AdoptOptions made;
        made.use = use;
        made.release = [told = told_](void* pointer, std::size_t length) {
            ++*told;
            EXPECT_EQ(length, bytes);
            (void)::munmap(pointer, length);
        };
        return made;
    }

private:
    int descriptor_ = -1;
    void* data_ = nullptr;
    std::shared_ptr<int> told_ = std::make_shared<int>(0);
};

void expect_numbers(const Buffer<std::int32_t>& buffer, std::int32_t more) {
    const auto view = buffer.read_on_host().value();
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(view[i], static_cast<std::int32_t>(i) + more);
}

TEST(Adopt, MemoryOfEverySortIsUsedByBothSidesAndGivenBackOnce) {  // keeps G11, K23
    on_every_device([](Device& device) {
        for (const Foreign::Sort sort : {Foreign::Sort::anonymous, Foreign::Sort::shared, Foreign::Sort::memory_file,
                                         Foreign::Sort::private_file}) {
            Foreign foreign(sort);
            {
                Buffer<std::int32_t> buffer =
                    device.adopt<std::int32_t>(foreign.data(), count, foreign.options()).value();
                EXPECT_EQ(buffer.size(), count);
                EXPECT_FALSE(buffer.explain().empty());
                EXPECT_EQ(device.can_access(buffer).verdict, Verdict::yes);
                (void)device.stream().launch(add_one, count, buffer).value();
                expect_numbers(buffer, 1);
                {
                    auto view = buffer.read_write_on_host().value();
                    EXPECT_EQ(static_cast<void*>(view.data()), foreign.data()) << "the very memory, never a copy of it";
                    for (std::int32_t& value : view) value += 10;
                }
                (void)device.stream().launch(add_one, count, buffer).value();
                expect_numbers(buffer, 12);
                EXPECT_EQ(foreign.numbers()[7], 19) << "where its owner looks";
                EXPECT_EQ(foreign.told(), 0);
            }
            EXPECT_TRUE(unless_fault(foreign.told() == 1));
        }
    });
}

TEST(Adopt, WhatTheDeviceReachesOrTheDriverPinsIsNotCopied) {  // keeps G11
    on_every_device([](Device& device) {
        Foreign foreign;
        Buffer<std::int32_t> buffer =
            device.adopt<std::int32_t>(foreign.data(), count, foreign.options({Use::writes_often, Use::reads_once}))
                .value();
        Buffer<std::int32_t> out = device.allocate_shared<std::int32_t>(count).value();
        (void)device.stream().launch(scale_into, count, out, buffer, 1).value();
        expect_numbers(out, 0);
        const bool in_place = device.is_cpu() || device.capabilities().has(Feature::pageable_access) ||
                              device.capabilities().has(Feature::host_register);
        EXPECT_TRUE(unless_fault((buffer.path() != LaunchPath::stage) == in_place)) << buffer.explain();
        EXPECT_TRUE(unless_fault(in_place == (buffer.staged_bytes() == 0)));
    });
}

TEST(Adopt, MemoryForReadingOnlyIsReadAndNobodyWritesIt) {  // keeps G7
    on_every_device([](Device& device) {
        Foreign foreign(Foreign::Sort::memory_file);
        foreign.forbid_writing();
        EXPECT_TRUE(
            refused_as(device.adopt<std::int32_t>(foreign.data(), count, foreign.options()), Code::not_accessible));
        EXPECT_EQ(foreign.told(), 0) << "it was never taken";
        Buffer<std::int32_t> buffer =
            device.adopt<std::int32_t>(foreign.data(), count, foreign.options({Use::reads_once, Use::reads_once}))
                .value();
        EXPECT_TRUE(refused_as(buffer.write_on_host(), Code::not_accessible));
        EXPECT_TRUE(refused_as(device.stream().launch(add_one, count, buffer), Code::not_accessible));
        const LaunchExplanation explained = device.stream().explain(add_one, count, buffer);
        EXPECT_TRUE(unless_fault(explained.refusal && explained.refusal->code() == Code::not_accessible));
        EXPECT_TRUE(refused_as(device.stream().fill(buffer, 1), Code::not_accessible));
        Buffer<std::int32_t> out = device.allocate_shared<std::int32_t>(count).value();
        (void)device.stream().launch(scale_into, count, out, buffer, 1).value();
        expect_numbers(out, 0);
        expect_numbers(buffer, 0);
    });
}

// The kernel's clock page (vvar) is a mapping without struct pages (VM_IO, VM_PFNMAP), as a camera's may be, and every
// process has one. Most of its words are constant, the others tick.
std::optional<std::uintptr_t> clock_page() {
    std::ifstream maps("/proc/self/smaps");
    std::optional<std::uintptr_t> begin;
    for (std::string line; std::getline(maps, line);) {
        if (line.find("[vvar]") != std::string::npos) begin = std::stoull(line, nullptr, 16);
        if (begin && line.rfind("VmFlags:", 0) == 0) {
            return line.find(" io") != std::string::npos || line.find(" pf") != std::string::npos ? begin
                                                                                                  : std::nullopt;
        }
    }
    return std::nullopt;
}

// The words that stayed constant over many ticks: a ticking word may return to an earlier value.
std::vector<bool> steady_words(const std::int32_t* clock, std::size_t words) {
    constexpr int ticks = 12, max_reads = 2'000'000;
    std::vector<bool> steady(words, true);
    std::vector<std::int32_t> last(words), now(words);
    std::memcpy(last.data(), clock, words * sizeof(std::int32_t));
    for (int seen = 0, reads = 0; seen < ticks && reads < max_reads; ++reads) {
        std::memcpy(now.data(), clock, words * sizeof(std::int32_t));
        if (now == last) continue;
        ++seen;
        for (std::size_t i = 0; i < words; ++i) steady[i] = steady[i] && now[i] == last[i];
        last.swap(now);
    }
    return steady;
}

TEST(Adopt, MappingsOfDriversAreCopiedByTheCpu) {  // keeps G11
    const std::optional<std::uintptr_t> page = clock_page();
    if (!page) GTEST_SKIP() << "this system shows no mapping without pages";
    constexpr std::size_t words = 512;
    auto* const clock = reinterpret_cast<std::int32_t*>(*page);
    const std::vector<bool> steady = steady_words(clock, words);
    on_every_device([&](Device& device) {
        for (const Use use : {Use::reads_once, Use::reads_often}) {
            AdoptOptions options;
            options.use = {Use::reads_once, use};
            std::vector<std::int32_t> before(clock, clock + words), after(words);
            Buffer<std::int32_t> buffer = device.adopt<std::int32_t>(clock, words, options).value();
            EXPECT_EQ(buffer.path(), device.is_cpu() ? LaunchPath::pass : LaunchPath::stage) << buffer.explain();
            Buffer<std::int32_t> out = device.allocate_shared<std::int32_t>(words).value();
            (void)device.stream().launch(scale_into, words, out, buffer, 1).value();
            const auto seen = out.read_on_host().value();
            std::memcpy(after.data(), clock, sizeof(std::int32_t) * words);
            std::size_t compared = 0;
            for (std::size_t i = 0; i < words; ++i) {
                if (!steady[i] || before[i] != after[i]) continue;  // the seconds change, too
                EXPECT_EQ(seen[i], before[i]) << i;
                compared += before[i] != 0;
            }
            EXPECT_GT(compared, 0u);
            if (device.is_cpu()) continue;
            options.use.kind = MemoryKind::registered;
            (void)buffer.release().value();
            EXPECT_TRUE(refused_as(device.adopt<std::int32_t>(clock, words, options), Code::not_accessible));
        }
    });
}

// A page of device memory that other code registered.
class RegisteredElsewhere {
public:
    RegisteredElsewhere(const Device& device, void* page) : context_(device), page_(page) {
        auto* const call = driver_function<int(void*, std::size_t, unsigned)>("cuMemHostRegister_v2");
        constexpr unsigned io_memory = 4, read_only = 8;
        done_ = call != nullptr && call(page, 4096, io_memory | read_only) == 0;
    }
    RegisteredElsewhere(const RegisteredElsewhere&) = delete;
    RegisteredElsewhere& operator=(const RegisteredElsewhere&) = delete;
    ~RegisteredElsewhere() {
        if (done_) (void)driver_function<int(void*)>("cuMemHostUnregister")(page_);
    }
    bool done() const { return done_; }

private:
    const ForeignContext context_;
    void* const page_;
    bool done_ = false;
};

TEST(Adopt, MemoryOfADeviceIsNeverForBothSidesAtTheSameTime) {  // keeps G7
    const std::optional<std::uintptr_t> page = clock_page();
    if (!page) GTEST_SKIP() << "this system shows no mapping without pages";
    constexpr std::size_t words = 512;
    auto* const clock = reinterpret_cast<std::int32_t*>(*page);
    AdoptOptions options;
    options.use = {Use::reads_once, Use::reads_once};
    on_every_device([&](Device& device) {
        std::optional<RegisteredElsewhere> registered;
        if (!device.is_cpu()) {
            registered.emplace(device, clock);
            if (!registered->done()) return;  // the driver refuses it: there is nothing to adopt
        }
        {
            Buffer<std::int32_t> buffer = device.adopt<std::int32_t>(clock, words, options).value();
            EXPECT_EQ(buffer.path(), LaunchPath::pass) << buffer.explain();
            EXPECT_EQ(buffer.read_on_host().value().size(), words);
            const auto refused = buffer.concurrent_on_host();
            EXPECT_TRUE(refused_as(refused, Code::not_accessible));
            if (refused.code() == Code::not_accessible) {
                EXPECT_NE(refused.error().message().find("IOMEMORY"), std::string_view::npos) << refused.error().text();
            }
            const auto atomics = buffer.atomics_on_host<AtomicSet::add>();
            EXPECT_FALSE(atomics.ok());
        }
    });
}

TEST(Adopt, TheKindCanBeAskedForWhereItIsPossible) {  // keeps G11
    on_every_device([](Device& device) {
        for (const MemoryKind kind :
             {MemoryKind::host, MemoryKind::registered, MemoryKind::device, MemoryKind::pinned, MemoryKind::managed}) {
            SCOPED_TRACE(isthmus::name(kind));
            Foreign foreign;
            AdoptOptions options = foreign.options();
            options.use.kind = kind;
            Result<Buffer<std::int32_t>> made = device.adopt<std::int32_t>(foreign.data(), count, std::move(options));
            const Capabilities& c = device.capabilities();
            const bool possible = device.is_cpu() || kind == MemoryKind::device ||
                                  (kind == MemoryKind::host && c.has(Feature::pageable_access)) ||
                                  (kind == MemoryKind::registered && c.has(Feature::host_register));
            if (!possible) {
                EXPECT_TRUE(refused_as(made, kind == MemoryKind::host ? Code::not_accessible : Code::unsupported));
                EXPECT_EQ(foreign.told(), 0);
                continue;
            }
            ASSERT_TRUE(worked(made));
            EXPECT_EQ(made->kind(), device.is_cpu() ? MemoryKind::host : kind);
            (void)device.stream().launch(add_one, count, *made).value();
            expect_numbers(*made, 1);
            (void)made->release().value();
            EXPECT_TRUE(unless_fault(foreign.told() == 1));
        }
    });
}

TEST(Adopt, WhatCannotBeAdoptedStaysItsOwners) {  // keeps K18
    on_every_device([](Device& device) {
        Foreign foreign;
        const auto adopt = [&](void* pointer, std::size_t elements) {
            return device.adopt<std::int32_t>(pointer, elements, foreign.options());
        };
        auto* const misaligned = static_cast<char*>(foreign.data()) + 2;
        EXPECT_TRUE(refused_as(adopt(nullptr, count), Code::invalid_argument));
        EXPECT_TRUE(refused_as(adopt(foreign.data(), 0), Code::invalid_argument));
        EXPECT_TRUE(refused_as(adopt(misaligned, 10), Code::invalid_argument));
        AdoptOptions on_a_page = foreign.options();
        on_a_page.use.alignment_bytes = runtime().machine().page_size_bytes;
        EXPECT_TRUE(
            refused_as(device.adopt<std::int32_t>(foreign.numbers() + 4, 10, on_a_page), Code::invalid_argument));
        EXPECT_TRUE(refused_as(adopt(foreign.data(), std::size_t{1} << 62), Code::invalid_argument));
        void* const gone = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        EXPECT_TRUE(refused_as(adopt(gone, count), Code::not_accessible));
        (void)::munmap(gone, bytes);
        EXPECT_EQ(foreign.told(), 0);

        Buffer<std::int32_t> buffer = adopt(foreign.data(), count).value();
        const long before = driver_calls();
        EXPECT_TRUE(refused_as(adopt(foreign.data(), count), Code::in_use));
        EXPECT_TRUE(refused_as(adopt(foreign.numbers() + 100, 10), Code::in_use));
        EXPECT_TRUE(unless_fault(driver_calls() == before)) << "known without the driver";
        EXPECT_EQ(buffer.can_export().verdict, Verdict::no);  // keeps K15
        EXPECT_EQ(foreign.told(), 0);
        Buffer<std::int32_t> own = device.allocate_shared<std::int32_t>(count).value();
        if (void* const data = own.read_write_on_host().value().data(); data != nullptr) {
            EXPECT_TRUE(refused_as(adopt(data, count), Code::in_use));
        }
    });
}

TEST(Adopt, AFileThatIsNoDmaBufIsRefused) {  // keeps Y5
    on_every_device([](Device& device) {
        const FileDescriptor file(::memfd_create("no dma-buf", MFD_CLOEXEC));
        ASSERT_EQ(::ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
        EXPECT_TRUE(refused_as(device.adopt_dma_buf<std::int32_t>(file.get(), count), Code::invalid_argument));
        EXPECT_TRUE(refused_as(device.adopt_dma_buf<std::int32_t>(-1, count), Code::invalid_argument));
        EXPECT_TRUE(refused_as(device.adopt_dma_buf<std::int32_t>(file.get(), 0), Code::invalid_argument));
    });
}

// A dma-buf over a memory file, by CONFIG_UDMABUF.
FileDescriptor udmabuf_of(const FileDescriptor& file, std::size_t whole_pages) {
    const FileDescriptor maker(::open("/dev/udmabuf", O_RDWR | O_CLOEXEC));
    if (!maker || ::ftruncate(file.get(), static_cast<off_t>(whole_pages)) != 0) return {};
    if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0) return {};
    udmabuf_create asked{};
    asked.memfd = static_cast<std::uint32_t>(file.get());
    asked.flags = UDMABUF_FLAGS_CLOEXEC;
    asked.size = whole_pages;
    return FileDescriptor(::ioctl(maker.get(), UDMABUF_CREATE, &asked));
}

TEST(Adopt, ADmaBufOfTheKernelIsUsedByBothSides) {  // keeps Y5
    const std::size_t page = runtime().machine().page_size_bytes;
    const std::size_t whole_pages = (bytes + page - 1) / page * page;
    on_every_device([&](Device& device) {
        const FileDescriptor file(::memfd_create("frame", MFD_CLOEXEC | MFD_ALLOW_SEALING));
        const FileDescriptor made = udmabuf_of(file, whole_pages);
        if (!made) GTEST_SKIP() << "this system has no /dev/udmabuf, or this user may not open it";
        {
            Buffer<std::int32_t> buffer = device.adopt_dma_buf<std::int32_t>(made.get(), count).value();
            {
                auto view = buffer.write_on_host().value();
                for (std::size_t i = 0; i < count; ++i) view[i] = static_cast<std::int32_t>(i);
            }
            (void)device.stream().launch(add_one, count, buffer).value();
            expect_numbers(buffer, 1);
        }
        std::int32_t seen = 0;
        ASSERT_EQ(::pread(file.get(), &seen, sizeof seen, 7 * sizeof seen), static_cast<ssize_t>(sizeof seen));
        EXPECT_TRUE(unless_fault(seen == 8)) << "the file's own bytes";
    });
}

TEST(Adopt, TheOwnerIsToldBehindTheLastUseOnEveryWayOut) {  // keeps S15
    on_every_device([](Device& device) {
        Foreign released, held;
        Buffer<std::int32_t> one = device.adopt<std::int32_t>(released.data(), count, released.options()).value();
        {
            auto view = one.read_on_host().value();
            EXPECT_TRUE(refused_as(one.release(), Code::in_use));
            EXPECT_EQ(released.told(), 0);
        }
        (void)device.stream().launch(churn, count, one, 3).value();
        (void)one.release().value();  // waits for the kernel: the mapping is unmapped at once
        EXPECT_TRUE(unless_fault(released.told() == 1));
        {
            Buffer<std::int32_t> two = device.adopt<std::int32_t>(held.data(), count, held.options()).value();
            auto view = two.read_on_host().value();
            two = Buffer<std::int32_t>();
            EXPECT_EQ(held.told(), 0) << "the view holds the memory";
            EXPECT_EQ(view[5], 5);
        }
        EXPECT_TRUE(unless_fault(held.told() == 1));
    });
}

// The buffer counts its open views, and the last one to close ends it (ADR 77): whatever their type and thread.
TEST(Adopt, TheLastViewEndsABufferThatWentBefore) {  // keeps G8, S15
    on_every_device([](Device& device) {
        const auto adopted = [&](Foreign& memory) {
            Buffer<std::int32_t> buffer = device.adopt<std::int32_t>(memory.data(), count, memory.options()).value();
            (void)buffer.read_on_host().value();  // later views open at once, where the machine copies nothing
            return buffer;
        };
        for (const bool newest_first : {false, true}) {
            Foreign read;
            Buffer<std::int32_t> one = adopted(read);
            std::vector<HostView<const std::int32_t>> views;
            for (int at = 0; at < 3; ++at) views.push_back(one.read_on_host().value());
            views.push_back(one.part(0, 4).value().read_on_host().value());
            views.push_back(one.read_on_host().value());
            one = Buffer<std::int32_t>();
            while (!views.empty()) {
                EXPECT_EQ(read.told(), 0);
                EXPECT_EQ(views.front()[3], 3);
                Thread closer([&] { views.erase(newest_first ? views.end() - 1 : views.begin()); });
                closer.join();
            }
            EXPECT_TRUE(unless_fault(read.told() == 1));
        }
        Foreign written;
        {
            Buffer<std::int32_t> two = adopted(written);
            auto view = two.read_write_on_host().value();
            EXPECT_TRUE(refused_as(two.read_on_host(), Code::in_use));
            two = Buffer<std::int32_t>();
            auto moved = std::move(view);
            EXPECT_EQ(written.told(), 0);
            moved[1] = 2;
        }
        EXPECT_TRUE(unless_fault(written.told() == 1));
        Foreign shared;
        {
            Buffer<std::int32_t> three = adopted(shared);
            auto first = three.concurrent_on_host();
            auto second = three.concurrent_on_host();
            three = Buffer<std::int32_t>();
            if (first) first = std::move(second);  // closes one view, keeps the other
            EXPECT_TRUE(!first || shared.told() == 0);
        }
        EXPECT_TRUE(unless_fault(shared.told() == 1));
    });
}

int told_in_c = 0;

TEST(Adopt, ACallbackInCIsCalledToo) {
    told_in_c = 0;
    Foreign foreign;
    AdoptOptions options;
    options.c_release = {&told_in_c, [](void* context, void*, std::size_t length) {
                             *static_cast<int*>(context) += length == bytes ? 1 : 100;
                         }};
    (void)runtime().cpu().adopt<std::int32_t>(foreign.data(), count, options).value().release().value();
    EXPECT_EQ(told_in_c, 1);
}

TEST(Adopt, TheFirstUseWaitsForEventAndFunction) {  // keeps G8
    on_every_device([](Device& device) {
        for (const bool host_first : {false, true}) {
            for (const bool by_event : {false, true}) {
                Foreign foreign;
                AdoptOptions options = foreign.options();
                const auto producer = [numbers = foreign.numbers()]() noexcept {
                    for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<std::int32_t>(i) + 1000;
                };
                Stream other = device.create_stream().value();
                const Settled settled(device);
                if (by_event) {
                    (void)other.call_on_host(producer).value();
                    options.after_event = other.record().value();
                } else {
                    options.after_function = producer;
                }
                Buffer<std::int32_t> buffer =
                    device.adopt<std::int32_t>(foreign.data(), count, std::move(options)).value();
                if (host_first) {
                    expect_numbers(buffer, 1000);
                } else {
                    (void)device.stream().launch(add_one, count, buffer).value();
                    expect_numbers(buffer, 1001);
                }
            }
        }
    });
}

TEST(Adopt, MemoryThatOtherCodeAllocatedWithTheDriverIsUsedAsWhatItIs) {  // keeps A10, K2
    on_every_device([](Device& device) {
        if (device.is_cpu()) return;
        Runtime other = Runtime::open().value();
        Device& there = *other.device(device.index()).value();
        if (there.is_cpu()) {  // the GPU could not be opened after a fault
            EXPECT_TRUE(unless_fault(false));
            return;
        }
        Buffer<std::int32_t> pinned = there.allocate<std::int32_t>(count, MemoryKind::pinned).value();
        auto view = pinned.write_on_host().value();
        for (std::size_t i = 0; i < count; ++i) view[i] = static_cast<std::int32_t>(i);
        {
            Buffer<std::int32_t> buffer = device.adopt<std::int32_t>(view.data(), count).value();
            EXPECT_EQ(buffer.kind(), MemoryKind::pinned);
            EXPECT_EQ(buffer.path(), LaunchPath::pass);
            (void)device.stream().launch(add_one, count, buffer).value();
            expect_numbers(buffer, 1);
        }
        EXPECT_TRUE(refused_as(device.adopt<std::int32_t>(view.data(), 2 * count), Code::not_accessible));
        Buffer<std::int32_t> on_device = there.allocate<std::int32_t>(count, MemoryKind::device).value();
        Buffer<std::int32_t> buffer =
            device.adopt<std::int32_t>(reinterpret_cast<void*>(on_device.device_address()), count).value();
        EXPECT_EQ(buffer.kind(), MemoryKind::device);
        EXPECT_TRUE(refused_as(buffer.read_on_host(), Code::not_accessible));
        (void)device.stream().fill(buffer, 7).value();
        std::vector<std::int32_t> read(count);
        (void)device.stream().copy_to_host(read, buffer).value();
        (void)device.stream().synchronize().value();
        EXPECT_EQ(read[count - 1], 7);
    });
}

}  // namespace
}  // namespace conformance
