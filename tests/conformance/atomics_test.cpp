// SPDX-License-Identifier: Apache-2.0
// Atomic updates of one word by CPU and GPU at once: granted, none is lost; refused, the error names the missing
// direction, in every launch mode.
#include "scenario.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

namespace conformance {
namespace {

constexpr std::array kinds = {MemoryKind::host, MemoryKind::pinned, MemoryKind::registered, MemoryKind::managed,
                              MemoryKind::device};
constexpr std::array modes = {LaunchMode::relaxed, LaunchMode::checked, LaunchMode::strict, LaunchMode::staged,
                              LaunchMode::verify};

// The documented rules for an update of an unsigned 32-bit word.
bool lawful(const Capabilities& c, MemoryKind kind, AtomicOperation operation = AtomicOperation::add) {
    if (c.memory == MemoryModel::host) return kind != MemoryKind::managed;
    switch (kind) {
        case MemoryKind::host: return c.has(Feature::pageable_access);
        case MemoryKind::managed: return c.has(Feature::managed) && c.has(Feature::concurrent_managed);
        case MemoryKind::pinned:
        case MemoryKind::registered: {
            if (!c.has(Feature::partial_atomics)) return c.has(Feature::native_atomics);
            constexpr std::uint32_t needed = atomic_bits::is_unsigned | atomic_bits::scalar_32;
            return (c.host_atomics[static_cast<std::size_t>(operation)] & needed) == needed;
        }
        default: return false;
    }
}

// Zeroed memory of this kind, or the reason why there is none.
template <class T>
Result<Buffer<T>> zeroes_or_error(Device& device, MemoryKind kind, std::size_t count) {
    SharedUse use;
    use.kind = kind;
    Result<Buffer<T>> made =
        kind == MemoryKind::device ? device.allocate<T>(count, kind) : device.allocate_shared<T>(count, use);
    if (!made) return made;
    device.stream().fill(*made, T{}).value();
    device.stream().synchronize().value();
    return made;
}
// As above, for a kind that every machine has.
template <class T>
Buffer<T> zeroes_of(Device& device, MemoryKind kind) {
    return zeroes_or_error<T>(device, kind, 64).value();
}
// As above; empty where the machine or the device has none.
template <class T>
std::optional<Buffer<T>> zeroes(Device& device, MemoryKind kind, std::size_t count = 64) {
    Result<Buffer<T>> made = zeroes_or_error<T>(device, kind, count);
    if (!made) return std::nullopt;
    return std::move(made).value();
}
Buffer<std::uint32_t> control_of(Device& device) {
    return zeroes_of<std::uint32_t>(device, MemoryKind::pinned);
}

// Runs a kernel until it is told to stop, while the host does its part. Once constructed, the kernel has begun.
class WhileItRuns {
public:
    // `launch(control)` runs on another thread, because on the CPU device it returns when the kernel has ended.
    template <class Launch>
    WhileItRuns(Device& device, Launch launch)
        : buffer_(control_of(device)), control_(buffer_.concurrent_on_host().value()), thread_([this, launch] {
              const Result<LaunchReport> launched = launch(buffer_);
              if (!launched) told(0);  // the launch failed: do not wait for its beginning
              EXPECT_TRUE(worked(launched));
          }) {
        (void)wait_while(word(0), 0).value();
    }
    ~WhileItRuns() { told(1); }
    // Ends the kernel and returns how often its items added.
    std::uint64_t end(Device& device, std::uint32_t items) {
        told(1);
        thread_.join();
        EXPECT_TRUE(worked(device.synchronize()));
        std::uint64_t added = 0;
        for (std::uint32_t item = 0; item < items; ++item) added += word(2 + item).load_acquire();
        return added;
    }

private:
    AtomicRef<std::uint32_t> word(std::size_t index) const { return AtomicRef<std::uint32_t>(control_.data()[index]); }
    void told(std::size_t index) const { word(index).store_release(1); }

    Buffer<std::uint32_t> buffer_;
    ConcurrentView<std::uint32_t> control_;
    Thread thread_;
};
constexpr std::uint32_t items = 4;

TEST(SharedAtomics, LoseNothingWhereTheyAreGranted) {  // keeps G1, G3, G4
    NEEDS(concurrent);
    if (!work_runs_by_itself()) GTEST_SKIP() << "a kernel waits for the host";
    on_every_device([](Device& device) {
        for (const MemoryKind kind : kinds) {
            if (!lawful(device.capabilities(), kind)) continue;
            auto words = zeroes<std::uint32_t>(device, kind);
            if (!words || words->path() == LaunchPath::stage) continue;
            SCOPED_TRACE(std::string(name(words->kind())));
            auto shared = words->atomics_on_host<AtomicSet::add>();
            ASSERT_TRUE(worked(shared));
            WhileItRuns running(device, [&](Buffer<std::uint32_t>& control) {
                return device.stream().launch(add_until_told, items, *words, control);
            });
            const auto mine = static_cast<std::uint32_t>(rounds(20000));
            for (std::uint32_t round = 0; round < mine; ++round) (*shared)[0].add_relaxed(1);
            const std::uint64_t theirs = running.end(device, items);
            EXPECT_GE(theirs, items);
            EXPECT_EQ((*shared)[0].load_acquire(), static_cast<std::uint32_t>(mine + theirs)) << "updates were lost";
        }
    });
}

TEST(SharedAtomics, WordsDeclaredAsUpdatedByBothSidesAreWhereThatIsGrantedOrRefused) {  // keeps G11, G2
    on_every_device([](Device& device) {
        bool possible = false;
        for (const MemoryKind kind : {MemoryKind::host, MemoryKind::pinned, MemoryKind::managed}) {
            auto words = zeroes<std::uint32_t>(device, kind);
            possible |= words && words->atomics_on_host<AtomicSet::add>();
        }
        auto words = device.allocate_shared<std::uint32_t>(64, {.updates = AtomicSet::add});
        if (!possible) {
            EXPECT_TRUE(refused_while_it_lasts(words, Code::unsupported));
            if (words.code() == Code::unsupported) {
                EXPECT_NE(words.error().remedy().find("ShardedCounter"), std::string_view::npos)
                    << words.error().text();
            }
            return;
        }
        if (!words) {
            EXPECT_TRUE(worked(words));
            return;
        }
        for (std::uint32_t& word : words->write_on_host().value()) word = 0;
        auto opened = words->atomics_on_host<AtomicSet::add>();
        EXPECT_TRUE(worked(opened)) << words->explain();
        if (opened) (*opened)[0].add_relaxed(2);
        opened = Error(Code::not_ready, "", "");
        EXPECT_EQ(words->read_on_host().value()[0], 2u);
    });
}

TEST(SharedAtomics, AreGrantedExactlyWhereARuleHolds) {  // keeps G2, G3
    on_every_device([](Device& device) {
        const Capabilities& c = device.capabilities();
        for (const MemoryKind kind : kinds) {
            auto words = zeroes<std::uint32_t>(device, kind);
            if (!words) continue;
            SCOPED_TRACE(std::string(name(kind)));
            const bool shared = words->path() != LaunchPath::stage && lawful(c, words->kind());
            auto opened = words->atomics_on_host<AtomicSet::add>();
            EXPECT_EQ(opened.ok(), shared) << (opened.ok() ? "" : opened.error().text());
            if (opened) continue;
            const bool reached = words->kind() == MemoryKind::pinned || words->kind() == MemoryKind::registered;
            EXPECT_TRUE(refused_as(opened, reached ? Code::unsupported : Code::not_accessible));
            EXPECT_NE(opened.error().message().find("atomic"), std::string_view::npos) << opened.error().text();
            if (!fault_happened()) {
                // The alternatives that the remedy names must work.
                const std::string remedy(opened.error().remedy());
                const bool managed = lawful(c, MemoryKind::managed);
                EXPECT_EQ(remedy.find("MemoryKind::managed") != std::string::npos, managed) << remedy;
                EXPECT_NE(remedy.find("ShardedCounter"), std::string::npos) << remedy;
            }
            if (reached) {
                EXPECT_TRUE(worked(words->concurrent_on_host())) << "loads and stores are lawful there";
            }
        }
    });
}

TEST(SharedAtomics, OfAKernelAreJudgedInEveryModeByWhatItsTypesSay) {  // keeps G1, G2
    on_every_device([](Device& device) {
        const Capabilities& c = device.capabilities();
        for (const MemoryKind kind : kinds) {
            auto words = zeroes<std::uint32_t>(device, kind);
            if (!words) continue;
            SCOPED_TRACE(std::string(name(kind)));
            const bool own = words->kind() == MemoryKind::device;  // threads of the GPU only
            bool granted = own || device.is_cpu();
            if (!granted) {
                granted = lawful(c, words->kind(), AtomicOperation::add) &&
                          lawful(c, words->kind(), AtomicOperation::bit_or) &&
                          lawful(c, words->kind(), AtomicOperation::max);
            }
            std::uint32_t launched = 0;
            for (const LaunchMode mode : modes) {
                const auto given = device.stream().launch({.mode = mode}, update_words, 100, *words);
                if (granted) {
                    EXPECT_TRUE(worked(given));
                    launched += 100;
                } else {
                    const bool reached = words->kind() == MemoryKind::pinned || words->kind() == MemoryKind::registered;
                    EXPECT_TRUE(refused_as(given, reached ? Code::unsupported : Code::not_accessible));
                    EXPECT_NE(given.error().message().find("argument 'words'"), std::string_view::npos);
                    EXPECT_FALSE(given.error().remedy().empty());
                    EXPECT_TRUE(device.stream().explain({.mode = mode}, update_words, 100, *words).refusal.has_value());
                }
            }
            std::array<std::uint32_t, 3> seen{};
            EXPECT_TRUE(worked(device.stream().copy_to_host(std::span(seen), *words)));
            EXPECT_EQ(seen[0], launched);
            EXPECT_EQ(seen[1], granted ? ~std::uint32_t{0} : 0u);
            EXPECT_EQ(seen[2], granted ? 99u : 0u);
        }
    });
}

TEST(SharedAtomics, EveryOperationOfAKernelDoesWhatItsNameSays) {  // keeps G3
    on_every_device([](Device& device) {
        auto words = zeroes_of<std::int32_t>(device, MemoryKind::device);
        auto wide = zeroes_of<std::uint64_t>(device, MemoryKind::device);
        auto old = zeroes_of<std::int64_t>(device, MemoryKind::pinned);
        device.stream().fill(words, 12).value();
        device.stream().fill(wide, std::uint64_t{12}).value();
        EXPECT_TRUE(worked(device.stream().launch(every_update, 1, words, wide, old)));
        const auto given = old.read_on_host().value();
        for (const std::size_t first : {std::size_t{0}, std::size_t{10}}) {
            const std::array<std::int64_t, 10> expected = {12, 17, 10, 9, 11, 2, 11, 8, 20, 1};
            for (std::size_t at = 0; at < expected.size(); ++at) EXPECT_EQ(given[first + at], expected[at]) << at;
        }
        std::array<std::int32_t, 1> last{};
        EXPECT_TRUE(worked(device.stream().copy_to_host(std::span(last), words)));
        EXPECT_EQ(last[0], 33);
    });
}

// Every partial sum is a whole number that a float represents exactly, so the order of additions does not matter.
TEST(SharedAtomics, WholeNumbersAddUpExactlyInFloats) {  // keeps G6
    on_every_device([](Device& device) {
        auto single = zeroes_of<float>(device, MemoryKind::device);
        auto twice = zeroes_of<double>(device, MemoryKind::device);
        EXPECT_TRUE(worked(device.stream().launch(add_floats, 1000, single, twice)));
        std::array<float, 1> first{};
        std::array<double, 1> second{};
        EXPECT_TRUE(worked(device.stream().copy_to_host(std::span(first), single)));
        EXPECT_TRUE(worked(device.stream().copy_to_host(std::span(second), twice)));
        EXPECT_EQ(first[0], 1000.0F);
        EXPECT_EQ(second[0], 2000.0);
    });
}

TEST(SharedAtomics, KeepPlainViewsAndArgumentsOut) {  // keeps G9, G14
    on_every_device([](Device& device) {
        for (const MemoryKind kind : kinds) {
            if (!lawful(device.capabilities(), kind)) continue;
            auto words = zeroes<std::int32_t>(device, kind);
            if (!words || words->path() == LaunchPath::stage) continue;
            auto opened = words->atomics_on_host<AtomicSet::exchange>();
            if (!opened) continue;  // not an operation of a link with partial atomics
            {
                const auto shared = std::move(opened).value();
                EXPECT_TRUE(refused_as(words->read_on_host(), Code::in_use));
                EXPECT_TRUE(refused_as(words->write_on_host(), Code::in_use));
                EXPECT_TRUE(refused_as(device.stream().launch(add_one, 8, *words), Code::in_use));
                EXPECT_TRUE(worked(words->atomics_on_host<AtomicSet::exchange>())) << "several may be open";
                EXPECT_EQ(shared[3].exchange_acq_rel(7), 0);
            }
            EXPECT_TRUE(worked(device.stream().launch(add_one, 8, *words)));
            EXPECT_EQ(words->read_on_host().value()[3], 8);
        }
    });
}

TEST(SharedAtomics, WriteCombinedMemoryAndMisalignedWordsAreRefused) {  // keeps G7
    on_every_device([](Device& device) {
        if (auto combined = device.allocate<std::uint32_t>(64, MemoryKind::write_combined)) {
            if (combined->kind() == MemoryKind::write_combined) {
                EXPECT_TRUE(refused_as(combined->atomics_on_host<AtomicSet::add>(), Code::not_accessible));
                EXPECT_TRUE(refused_as(device.stream().launch(update_words, 1, *combined), Code::unsupported));
            }
        }
        auto words = zeroes_of<std::uint32_t>(device, MemoryKind::device);
        auto* const base = reinterpret_cast<unsigned char*>(static_cast<std::uintptr_t>(words.device_address()));
        const auto at = [&](std::size_t offset) {
            return UpdatedWords{reinterpret_cast<std::uint32_t*>(base + offset), 3};  // NOLINT: never followed
        };
        for (const std::size_t offset : {1, 2, 3, 5}) {
            for (const LaunchMode mode : modes) {
                EXPECT_TRUE(refused_as(device.stream().launch({.mode = mode}, update_words, 1, at(offset)),
                                       Code::invalid_argument));
            }
        }
        EXPECT_TRUE(worked(device.stream().launch(update_words, 1, at(4))));
        EXPECT_TRUE(worked(device.synchronize()));
    });
}

// A page of a file, or an anonymous page.
class Page {
public:
    explicit Page(bool of_file) {
        if (of_file) file_ = std::tmpfile();
        const int descriptor = file_ == nullptr ? -1 : fileno(file_);
        if (descriptor >= 0 && ftruncate(descriptor, 4096) != 0) return;
        void* const mapped = mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
                                  of_file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, descriptor, 0);
        if (mapped != MAP_FAILED) words_ = static_cast<std::uint32_t*>(mapped);
    }
    ~Page() {
        if (words_ != nullptr) munmap(words_, 4096);
        if (file_ != nullptr) (void)std::fclose(file_);
    }
    Page(const Page&) = delete;
    Page& operator=(const Page&) = delete;
    std::uint32_t* words() const { return words_; }

private:
    std::FILE* file_ = nullptr;
    std::uint32_t* words_ = nullptr;
};

TEST(SharedAtomics, FilesAreRefusedWhereTheKernelMigratesPages) {  // keeps G7
    on_every_device([](Device& device) {
        for (const bool of_file : {true, false}) {
            const Page page(of_file);
            if (page.words() == nullptr) GTEST_SKIP() << "no page of a file is to be had";
            const Settled settled(device);
            const auto given = device.stream().launch(update_words, 1, UpdatedWords{page.words(), 3});
            const Capabilities& c = device.capabilities();
            const bool reached = device.is_cpu() || c.has(Feature::pageable_access);
            if (!reached) {
                EXPECT_TRUE(refused_as(given, Code::not_accessible));
            } else if (of_file && c.translation == Translation::hmm) {
                EXPECT_TRUE(refused_as(given, Code::unsupported));
                EXPECT_NE(given.error().message().find("file-mapped"), std::string_view::npos) << given.error().text();
            } else {
                EXPECT_TRUE(worked(given));
                EXPECT_TRUE(worked(device.synchronize()));
                EXPECT_EQ(page.words()[0], 1u);
            }
        }
    });
}

// Shows why the guard exists: without it, on a link without atomics, updates are lost. compute-sanitizer reports the
// misuse and ends the context: exclude this test there (docs/hardware.md).
TEST(UnguardedAtomics, LoseUpdatesWhereTheGuardRefusesThem) {  // keeps G4: what it stands against
    NEEDS(concurrent);
    if (!work_runs_by_itself()) GTEST_SKIP() << "a kernel waits for the host";
    int tried = 0;
    on_every_device([&](Device& device) {
        if (lawful(device.capabilities(), MemoryKind::pinned)) return;
        ++tried;
        std::uint32_t lost = 0;
        for (int attempt = 0; attempt < 1000 && lost == 0; ++attempt) {
            auto words = zeroes_of<std::uint32_t>(device, MemoryKind::pinned);
            EXPECT_TRUE(refused_as(words.atomics_on_host<AtomicSet::add>(), Code::unsupported));
            const auto open = words.concurrent_on_host().value();
            const AtomicRef<std::uint32_t> word(open.data()[0]);
            WhileItRuns running(device, [&](Buffer<std::uint32_t>& control) {
                return device.stream().launch(add_unguarded_until_told, items, words, control);
            });
            constexpr std::uint32_t mine = 20000;
            for (std::uint32_t round = 0; round < mine; ++round) word.add_relaxed(1);
            const std::uint64_t theirs = running.end(device, items);
            EXPECT_LE(word.load_acquire(), mine + theirs);
            lost = static_cast<std::uint32_t>(mine + theirs) - word.load_acquire();
        }
        EXPECT_TRUE(unless_fault(lost > 0)) << "no update was lost: is this link's answer right?";
    });
    if (tried == 0) GTEST_SKIP() << "every link here carries atomics";
}

TEST(SharedPairs, AreSeenInOnePieceOrRefused) {  // keeps G7
    NEEDS(concurrent);
    if (!work_runs_by_itself()) GTEST_SKIP() << "a kernel waits for the host";
    on_every_device([](Device& device) {
        auto pairs = zeroes_of<Pair64>(device, MemoryKind::pinned);
        auto opened = pairs.atomics_on_host<AtomicSet::load_store>();
        if (!host_has_pairs()) {
            EXPECT_TRUE(refused_as(opened, Code::unsupported));
            return;
        }
        ASSERT_TRUE(worked(opened));
        const auto pair = (*opened)[0];
        WhileItRuns running(device, [&](Buffer<std::uint32_t>& control) {
            return device.stream().launch(store_pairs_until_told, 1, pairs, control);
        });
        const int looks = rounds(20000);
        Pair64 last;
        for (int look = 0; look < looks; ++look) {
            const Pair64 seen = pair.load_acquire();
            ASSERT_EQ(seen.first, seen.second) << "torn in two";
            ASSERT_LE(last.first, seen.first) << "it went back";
            last = seen;
        }
        const std::uint64_t stored = running.end(device, 1);
        EXPECT_EQ(pair.load_acquire(), (Pair64{stored, stored}));
    });
}

TEST(WaitWhile, GivesWhatTheWordHoldsThen) {
    NEEDS(concurrent);
    std::uint32_t word = 4;
    const AtomicRef<std::uint32_t> ref(word);
    EXPECT_EQ(wait_while(ref, 3).value(), 4u) << "it holds something else already";
    Thread other([&] { ref.store_release(5); });
    EXPECT_EQ(wait_while(ref, 4).value(), 5u);
    other.join();
}

TEST(WaitWhile, NeverGivesWhatItWaitedToBeGone) {
    NEEDS(concurrent);
    std::uint32_t word = 0;
    std::atomic<bool> over{false};
    const AtomicRef<std::uint32_t> ref(word);
    Thread other([&] {
        for (std::uint32_t next = 1; !over.load(); next ^= 1) ref.store_release(next);
    });
    for (int round = 0; round < 2000; ++round) EXPECT_EQ(wait_while(ref, 0).value(), 1u);
    over.store(true);
    other.join();
}

TEST(WaitWhile, EndsAtItsDeadlineOrAtOnce) {
    NEEDS(concurrent);
    std::uint64_t word = 4;
    const AtomicRef<std::uint64_t> ref(word);
    EXPECT_TRUE(refused_as(wait_while(ref, 4, Wait::at_most(std::chrono::milliseconds(1))), Code::timed_out));
    EXPECT_TRUE(refused_as(wait_while(ref, 4, Wait::never()), Code::not_ready));
    EXPECT_EQ(wait_while(ref, 3, Wait::never()).value(), 4u);
}

}  // namespace
}  // namespace conformance
