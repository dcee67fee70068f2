// SPDX-License-Identifier: Apache-2.0
// Decides by the attributes which updates of the simulated GPU are atomic for the CPU too, as the memory model
// requires; and where its multimem accesses go.
#include "updates.hpp"

#include "virtual_memory.hpp"

#include <driver_abi/sim_registration.h>

#include <isthmus/facts.hpp>

#include <map>
#include <mutex>

#include <sched.h>

namespace isthmus::sim {
namespace {

// The device that the thread simulates.
struct Player {
    Driver* driver = nullptr;
    int device = 0;
    std::mutex* updating = nullptr;
    AliasedMemory* aliases = nullptr;
    bool in_update = false;
};
thread_local Player player;

// One for each device; never destroyed, like the driver.
std::mutex& updating(int device) {
    static std::mutex mutex;
    static auto* const all = new std::map<int, std::mutex>;
    const std::lock_guard lock(mutex);
    return (*all)[device];
}

bool reported(const Driver& d, int device, const isthmus_sim_update& update) {
    const auto& answers = d.machine.device(device).facts.host_atomics;
    if (!answers || update.operation >= answers->size()) return false;
    const std::uint32_t bits = (*answers)[update.operation];
    const std::uint32_t width = update.bytes == 4 ? atomic_bits::scalar_32 : atomic_bits::scalar_64;
    const std::uint32_t sign = update.is_signed != 0 ? atomic_bits::is_signed : atomic_bits::is_unsigned;
    const bool is_float = update.operation >= static_cast<std::uint32_t>(AtomicOperation::float_add);
    return (bits & width) != 0 && (is_float || (bits & sign) != 0);
}

// Requires the driver's mutex.
bool in_one_piece(const Driver& d, int device, const isthmus_sim_update& update) {
    const Found found = d.regions.find(reinterpret_cast<Address>(update.word));
    if (!found) return true;  // system memory: the GPU accesses it coherently, or it would have faulted
    switch (found.region->kind) {
        case Kind::managed: return d.fact(device, attribute::concurrent_managed) != 0;
        case Kind::pinned:
        case Kind::registered:
            if (d.fact(device, attribute::partial_host_atomics) == 1) return reported(d, device, update);
            return d.fact(device, attribute::native_host_atomics) == 1;
        default: return true;  // device memory: nothing else accesses it
    }
}

void find_replicas(isthmus_sim_multimem& request) {
    const char* why = nullptr;
    {
        const std::lock_guard lock(player.driver->mutex);
        const MultimemAccess access = {player.device, reinterpret_cast<Address>(request.word), request.bytes,
                                       request.writes != 0};
        why = find_replicas(*player.driver, access, request.addresses, request.most, request.count);
    }
    if (why == nullptr) return;
    say("a multimem access of device %d to %p: %s", player.device, request.word, why);
    constexpr std::uintptr_t nowhere = 8;  // faults, as the access does; nothing here is left to destroy
    (void)*reinterpret_cast<volatile const char*>(nowhere);
}

int begin(const isthmus_sim_update* update) {
    if (update->word == nullptr) {
        player.aliases->fence();
        return 0;
    }
    if (update->operation == isthmus_sim_multimem_access) {
        find_replicas(*static_cast<isthmus_sim_multimem*>(const_cast<void*>(update->word)));
        return 0;
    }
    {
        const std::lock_guard lock(player.driver->mutex);
        if (in_one_piece(*player.driver, player.device, *update)) return 0;
    }
    player.updating->lock();
    player.in_update = true;
    return 1;
}
void between() {
    sched_yield();
}
void end() {
    player.in_update = false;
    player.updating->unlock();
}

constexpr isthmus_sim_updates updates = {&begin, &between, &end};

}  // namespace

bool updates_are_whole(const Driver& d, int device, const Region& region) {
    switch (region.kind) {
        case Kind::managed: return d.fact(device, attribute::concurrent_managed) != 0;
        case Kind::pinned:
        case Kind::registered:
            return d.fact(device, attribute::partial_host_atomics) != 1 &&
                   d.fact(device, attribute::native_host_atomics) == 1;
        default: return true;
    }
}

namespace {

template <class T>
std::uint64_t play(T* word, bool whole, ptx::Update& update) {
    T old = __atomic_load_n(word, __ATOMIC_RELAXED);
    if (whole) {
        while (!__atomic_compare_exchange_n(word, &old, static_cast<T>(update.changed(old)), false, __ATOMIC_SEQ_CST,
                                            __ATOMIC_RELAXED)) {
        }
        return old;
    }
    const T made = static_cast<T>(update.changed(old));
    between();
    __atomic_store_n(word, made, __ATOMIC_RELAXED);
    return old;
}

}  // namespace

std::uint64_t play_update(Driver& d, int device, void* word, std::uint32_t bytes, ptx::Update& update) {
    const isthmus_sim_update what = {word, update.operation, bytes, update.is_signed ? 1u : 0u};
    bool whole = false;
    {
        const std::lock_guard lock(d.mutex);
        whole = in_one_piece(d, device, what);
    }
    std::unique_lock lock(updating(device), std::defer_lock);
    if (!whole) lock.lock();
    switch (bytes) {
        case 2: return play(static_cast<std::uint16_t*>(word), whole, update);
        case 4: return play(static_cast<std::uint32_t*>(word), whole, update);
        default: return play(static_cast<std::uint64_t*>(word), whole, update);
    }
}

PlayingGpu::PlayingGpu(Driver& d, int device, const Twin& twin, AliasedMemory& aliases) : twin_(twin) {
    player = {&d, device, &updating(device), &aliases, false};
    if (twin_.play_gpu != nullptr) twin_.play_gpu(&updates);
}

PlayingGpu::~PlayingGpu() {
    if (twin_.play_gpu != nullptr) twin_.play_gpu(nullptr);
    if (player.in_update) end();  // the kernel faulted during an update
    player = {};
}

}  // namespace isthmus::sim
