// SPDX-License-Identifier: Apache-2.0
// The file of counts: made by the first process, mapped by all.
#include "statistics.hpp"

#include <driver_abi/sim_statistics.h>

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace isthmus::sim {
namespace {

constexpr const char* call_names[] = {
#define ISTHMUS_SIM_EXPORT(symbol, parameters) #symbol,
#include "exports.def"
#undef ISTHMUS_SIM_EXPORT
};
constexpr const char* refused_names[] = {
#define ISTHMUS_SIM_NAME(symbol, base, version, per_thread) #symbol,
#include "refused_names.def"
#undef ISTHMUS_SIM_NAME
};
static_assert(std::size(call_names) <= isthmus_sim_statistics_calls);
static_assert(std::size(refused_names) <= isthmus_sim_statistics_calls);

using Statistics = isthmus_sim_statistics;

std::uint64_t add(std::uint64_t& to, std::uint64_t more) noexcept {
    return std::atomic_ref(to).fetch_add(more, std::memory_order_relaxed);
}

template <std::size_t size>
void fill_in(isthmus_sim_calls* places, const char* const (&names)[size]) noexcept {
    for (std::size_t i = 0; i < size; ++i) std::strncpy(places[i].name, names[i], sizeof(places[i].name) - 1);
}

void fill_in(Statistics& all) noexcept {
    fill_in(all.calls, call_names);
    fill_in(all.refused, refused_names);
    all.size_bytes = sizeof(Statistics);
    std::atomic_ref(all.magic).store(ISTHMUS_SIM_STATISTICS_MAGIC, std::memory_order_release);
}

// nullptr: the file cannot be used, or another simulator made it.
Statistics* map_file(const char* path) noexcept {
    const int file = ::open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return nullptr;
    Statistics* all = nullptr;
    struct stat facts {};
    // The first process makes the file whole; the others wait for it here.
    if (::flock(file, LOCK_EX) == 0 && ::fstat(file, &facts) == 0) {
        const bool first = facts.st_size == 0;
        // With its blocks: a write to a page for which the file system has no room would raise SIGBUS.
        const bool whole = first ? ::posix_fallocate(file, 0, sizeof(Statistics)) == 0
                                 : facts.st_size == static_cast<off_t>(sizeof(Statistics));
        void* const mapped =
            whole ? ::mmap(nullptr, sizeof(Statistics), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
        if (mapped != MAP_FAILED) {
            all = static_cast<Statistics*>(mapped);
            if (first) fill_in(*all);
            if (all->magic != ISTHMUS_SIM_STATISTICS_MAGIC || all->size_bytes != sizeof(Statistics)) {
                ::munmap(mapped, sizeof(Statistics));
                all = nullptr;
            }
        }
    }
    // The mapping keeps the open file, and with it the lock, beyond close().
    ::flock(file, LOCK_UN);
    ::close(file);
    return all;
}

Statistics* statistics() noexcept {
    static Statistics* const all = [] {
        const char* const path = ::secure_getenv("ISTHMUS_SIM_STATISTICS");
        return path && *path ? map_file(path) : nullptr;
    }();
    return all;
}

// Whether this process was counted. A child of fork() is another one.
std::atomic<bool> counted{false};

void count_process(Statistics& all) noexcept {
    if (counted.load(std::memory_order_relaxed) || counted.exchange(true)) return;
    add(all.processes, 1);
    ::pthread_atfork(nullptr, nullptr, [] { counted = false; });
}

// The place with the key, or a free one that gets it; nullptr: none is free. `is_new`: it was free.
template <class T, std::size_t size>
T* find_place(T (&places)[size], std::uint64_t key, bool& is_new) noexcept {
    is_new = false;
    for (std::size_t step = 0; step < size; ++step) {
        T& place = places[(key + step) % size];
        std::uint64_t holds = std::atomic_ref(place.key).load(std::memory_order_acquire);
        if (holds == 0) {
            is_new = std::atomic_ref(place.key).compare_exchange_strong(holds, key, std::memory_order_acq_rel);
            if (is_new) return &place;
        }
        if (holds == key) return &place;
    }
    return nullptr;
}

std::uint64_t hash_of(const char* text) noexcept {  // FNV-1a
    std::uint64_t hash = 14695981039346656037u;
    for (; *text; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * 1099511628211u;
    return hash == 0 ? 1 : hash;
}

template <class T, std::size_t size>
T* count_place(Statistics& all, T (&places)[size], std::uint64_t key, bool& is_new) noexcept {
    T* const place = find_place(places, key, is_new);
    add(place ? place->count : all.dropped, 1);
    return place;
}

void add(isthmus_sim_amount& amount, std::uint64_t bytes) noexcept {
    add(amount.count, 1);
    add(amount.bytes, bytes);
}

}  // namespace

void prepare_statistics() noexcept {
    (void)statistics();
}

void count_statistics_call(int index) noexcept {
    Statistics* const all = statistics();
    if (!all) return;
    count_process(*all);
    add(all->calls[index].count, 1);
}

void count_statistics_answer(int index, int code) noexcept {
    Statistics* const all = statistics();
    if (!all) return;
    const std::uint64_t key = (static_cast<std::uint64_t>(index) + 1) << 32 | static_cast<std::uint32_t>(code);
    bool is_new = false;
    count_place(*all, all->answers, key, is_new);
}

void count_refused(const char* symbol) noexcept {
    Statistics* const all = statistics();
    if (!all) return;
    count_process(*all);
    for (isthmus_sim_calls& place : all->refused) {
        if (std::strcmp(place.name, symbol) == 0) add(place.count, 1);
    }
}

void count_message(const char* format, const char* line) noexcept {
    Statistics* const all = statistics();
    if (!all) return;
    bool is_new = false;
    isthmus_sim_message* const place = count_place(*all, all->messages, hash_of(format), is_new);
    if (!place || !is_new) return;
    const std::size_t length = std::min(std::strlen(line), sizeof(place->text) - 1);
    std::memcpy(place->text, line, length);
    std::atomic_ref(place->written).store(1, std::memory_order_release);
}

void count_sticky_code(int code) noexcept {
    Statistics* const all = statistics();
    bool is_new = false;
    if (all && code > 0) count_place(*all, all->faults, static_cast<std::uint64_t>(code), is_new);
}

void count_copy(Place from, Place to, std::uint64_t bytes) noexcept {
    if (Statistics* const all = statistics()) add(all->copies[static_cast<int>(from)][static_cast<int>(to)], bytes);
}

void count_fill(std::uint64_t bytes) noexcept {
    if (Statistics* const all = statistics()) add(all->fills, bytes);
}

void count_kernel() noexcept {
    if (Statistics* const all = statistics()) add(all->kernels, 1);
}

void count_kernel_from_ptx() noexcept {
    if (Statistics* const all = statistics()) add(all->kernels_from_ptx, 1);
}

}  // namespace isthmus::sim
