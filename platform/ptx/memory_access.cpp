// SPDX-License-Identifier: Apache-2.0
// Loads, stores, and the translation of addresses. Each access is judged: its alignment, and the window that it lies
// in. The window is asked for once for each instruction and quantum.
#include "operations.hpp"
#include "state.hpp"

#include <algorithm>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace isthmus::ptx {

std::string in_hex(std::uint64_t value) {
    constexpr char digits[] = "0123456789abcdef";
    std::string out;
    do out.insert(out.begin(), digits[value & 15]);
    while ((value >>= 4) != 0);
    return "0x" + out;
}

namespace {

// The access itself is described by the caller: "a load of 4 bytes at 0x10".
void refuse(Warp& warp, const Op& op, std::uint32_t lane, std::uint64_t address, std::uint32_t bytes, bool writes,
            FaultKind kind, const std::string& why) {
    fail(warp, op, lane, kind,
         std::string(writes ? "a write of " : "a read of ") + std::to_string(bytes) + " bytes at " + in_hex(address) +
             ": " + why);
}

std::byte* within(Warp& warp, const Op& op, std::uint32_t lane, std::uint64_t offset, std::uint32_t bytes, bool writes,
                  std::byte* begin, std::uint64_t size, const char* name, std::vector<std::byte>* written = nullptr,
                  std::uint64_t first = 0) {
    if (size >= bytes && offset <= size - bytes) {
        if (written != nullptr && !written->empty()) warp.worker->last_written = written->data() + first + offset;
        return begin + offset;
    }
    refuse(warp, op, lane, offset, bytes, writes, FaultKind::illegal_address,
           std::string("it leaves the ") + name + " (" + std::to_string(size) + " bytes)");
    return nullptr;
}

std::byte* ask(Warp& warp, const Op& op, std::uint32_t lane, std::uint64_t address, std::uint32_t bytes, bool writes) {
    Worker& worker = *warp.worker;
    MemoryWindow window = worker.state->memory->window(address, bytes, writes);
    const std::uint64_t offset = address - window.begin;
    if (window.size_bytes < bytes || offset > window.size_bytes - bytes) {
        refuse(warp, op, lane, address, bytes, writes, FaultKind::illegal_address, window.refusal);
        return nullptr;
    }
    worker.windows[op.slot] = {window.begin, window.size_bytes, window.host, window.whole_updates, window.written};
    worker.last_whole = window.whole_updates;
    if (window.written != nullptr) worker.last_written = window.written + offset;
    return window.host + offset;
}

// The block of the cluster that an address of shared memory names; nullptr: the access is refused.
Block* block_with_rank(Warp& warp, const Op& op, std::uint32_t lane, std::uint64_t offset, std::uint32_t bytes,
                       bool writes) {
    const Cluster& cluster = *warp.block->cluster;
    const std::uint64_t rank = (offset >> cluster_shift) - 1;
    if (rank < cluster.blocks.size() && cluster.blocks[rank] != nullptr) return cluster.blocks[rank];
    if (rank < cluster.blocks.size()) {  // 719 on an H200
        refuse(warp, op, lane, offset, bytes, writes, FaultKind::launch_failed,
               "block " + std::to_string(rank) + " of the cluster has ended");
    } else {
        refuse(warp, op, lane, offset, bytes, writes, FaultKind::illegal_address,
               "it leaves the block's shared memory (" + std::to_string(warp.block->shared.size()) + " bytes)");
    }
    return nullptr;
}

template <class T>
std::uint64_t loaded(const std::byte* from, bool acquire) {
    const auto* const word = reinterpret_cast<const T*>(from);
    return acquire ? __atomic_load_n(word, __ATOMIC_ACQUIRE) : __atomic_load_n(word, __ATOMIC_RELAXED);
}
template <class T>
void stored(std::byte* to, std::uint64_t value, bool release) {
    auto* const word = reinterpret_cast<T*>(to);
    if (release) {
        __atomic_store_n(word, static_cast<T>(value), __ATOMIC_RELEASE);
    } else {
        __atomic_store_n(word, static_cast<T>(value), __ATOMIC_RELAXED);
    }
}

template <class T>
std::uint64_t widened(const Op& op, std::uint64_t value) {
    if (!op.flag) return value;
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::make_signed_t<T>>(value))) & op.value2;
}

// An access to global memory within the window of the instruction's last one; nullptr: it needs the long way.
inline std::byte* quickly(const CachedWindow& cached, std::uint64_t address, std::uint32_t bytes) {
    const std::uint64_t offset = address - cached.begin;
    if (offset >= cached.size_bytes || cached.size_bytes - offset < bytes || (address & (bytes - 1)) != 0)
        return nullptr;
    return cached.host + offset;
}

template <class T>
void load(Warp& warp, const Op& op, LaneMask mask) {
    Worker& worker = *warp.worker;
    worker.op = &op;
    const Row& base = warp.in(op.a);
    const bool acquire = op.mode != 0;
    const bool records = worker.finds_uninitialised;
    const bool direct =
        !records && (op.space == Space::global || op.space == Space::constant || op.space == Space::generic);
    if (op.count == 1) {
        Row& d = warp.out(op.d);
        const CachedWindow cached = direct ? worker.windows[op.slot] : CachedWindow{};
        for_lanes(mask, [&](std::uint32_t lane) {
            const std::uint64_t address = base[lane] + op.value;
            const std::byte* from = quickly(cached, address, sizeof(T));
            if (from == nullptr) from = reach(warp, op, lane, address, sizeof(T), false);
            if (records && from != nullptr) note_read(warp, op, lane, address, sizeof(T));
            if (from != nullptr) d[lane] = widened<T>(op, loaded<T>(from, acquire));
        });
        return;
    }
    const std::int32_t* const places = warp.now.frame->function->extra.data() + op.extra;
    const std::uint32_t bytes = static_cast<std::uint32_t>(sizeof(T)) * op.count;
    for_lanes(mask, [&](std::uint32_t lane) {
        const std::byte* const from = reach(warp, op, lane, base[lane] + op.value, bytes, false);
        if (from == nullptr) return;
        if (records) note_read(warp, op, lane, base[lane] + op.value, bytes);
        for (unsigned at = 0; at < op.count; ++at) {
            if (places[at] < 0) continue;  // a sink
            warp.out(places[at])[lane] = widened<T>(op, loaded<T>(from + at * sizeof(T), acquire));
        }
    });
}

template <class T>
void store(Warp& warp, const Op& op, LaneMask mask) {
    Worker& worker = *warp.worker;
    worker.op = &op;
    const Row& base = warp.in(op.a);
    const bool release = op.mode != 0;
    const bool records = worker.finds_uninitialised;
    const bool direct = !records && (op.space == Space::global || op.space == Space::generic);
    if (op.count == 1) {
        const Row& value = warp.in(op.b);
        const CachedWindow cached = direct ? worker.windows[op.slot] : CachedWindow{};
        for_lanes(mask, [&](std::uint32_t lane) {
            const std::uint64_t address = base[lane] + op.value;
            std::byte* to = quickly(cached, address, sizeof(T));
            if (to == nullptr) to = reach(warp, op, lane, address, sizeof(T), true);
            if (records && to != nullptr) note_write(warp, sizeof(T));
            if (to != nullptr) stored<T>(to, value[lane], release);
        });
        return;
    }
    const std::int32_t* const places = warp.now.frame->function->extra.data() + op.extra;
    const std::uint32_t bytes = static_cast<std::uint32_t>(sizeof(T)) * op.count;
    for_lanes(mask, [&](std::uint32_t lane) {
        std::byte* const to = reach(warp, op, lane, base[lane] + op.value, bytes, true);
        if (to == nullptr) return;
        if (records) note_write(warp, bytes);
        for (unsigned at = 0; at < op.count; ++at) stored<T>(to + at * sizeof(T), warp.in(places[at])[lane], release);
    });
}

// Memory of a thread or a block may lie in the host's memory with a lower alignment than its address has.
[[maybe_unused]] bool is_aligned(const std::byte* place) {
    return (reinterpret_cast<std::uintptr_t>(place) & 15) == 0;
}
struct Wide {
    std::uint64_t low, high;
};
// 16 bytes in one piece, where the processor has such an access: x86-64 with AVX, 64-bit Arm with LSE2.
Wide wide_loaded(const std::byte* from) {
    Wide out{};
#if defined(__SSE2__)
    if (is_aligned(from)) {
        __m128i both;
        asm volatile("movdqa %1, %0" : "=x"(both) : "m"(*reinterpret_cast<const __m128i*>(from)) : "memory");
        std::memcpy(&out, &both, sizeof out);
        return out;
    }
#elif defined(__aarch64__)
    if (is_aligned(from)) {
        asm volatile("ldp %0, %1, [%2]" : "=r"(out.low), "=r"(out.high) : "r"(from) : "memory");
        return out;
    }
#endif
    out = {loaded<std::uint64_t>(from, false), loaded<std::uint64_t>(from + 8, false)};
    return out;
}
void wide_stored(std::byte* to, const Wide& value) {
#if defined(__SSE2__)
    if (is_aligned(to)) {
        __m128i both;
        std::memcpy(&both, &value, sizeof both);
        asm volatile("movdqa %1, %0" : "=m"(*reinterpret_cast<__m128i*>(to)) : "x"(both) : "memory");
        return;
    }
#elif defined(__aarch64__)
    if (is_aligned(to)) {
        asm volatile("stp %0, %1, [%2]" ::"r"(value.low), "r"(value.high), "r"(to) : "memory");
        return;
    }
#endif
    stored<std::uint64_t>(to, value.low, false);
    stored<std::uint64_t>(to + 8, value.high, false);
}
void load_wide(Warp& warp, const Op& op, LaneMask mask) {
    warp.worker->op = &op;
    const Row& base = warp.in(op.a);
    const bool records = warp.worker->finds_uninitialised;
    for_lanes(mask, [&](std::uint32_t lane) {
        const std::uint64_t address = base[lane] + op.value;
        const std::byte* const from = reach(warp, op, lane, address, 16, false);
        if (from == nullptr) return;
        if (records) note_read(warp, op, lane, address, 16);
        const Wide value = wide_loaded(from);
        warp.out(op.d)[lane] = value.low;
        warp.out(op.d + 1)[lane] = value.high;
    });
    if (op.mode != 0) __atomic_thread_fence(__ATOMIC_ACQUIRE);
}
void store_wide(Warp& warp, const Op& op, LaneMask mask) {
    warp.worker->op = &op;
    const Row& base = warp.in(op.a);
    const bool records = warp.worker->finds_uninitialised;
    if (op.mode != 0) __atomic_thread_fence(__ATOMIC_RELEASE);
    for_lanes(mask, [&](std::uint32_t lane) {
        std::byte* const to = reach(warp, op, lane, base[lane] + op.value, 16, true);
        if (to == nullptr) return;
        if (records) note_write(warp, 16);
        wide_stored(to, {warp.in(op.b)[lane], warp.in(op.b + 1)[lane]});
    });
}

const char* space_read(const Op& op, std::uint64_t address) {
    const std::uint64_t window = address & window_mask;
    if (op.space == Space::shared || (op.space == Space::generic && window == shared_window)) return "shared memory";
    if (op.space == Space::local || (op.space == Space::generic && window == local_window)) return "local memory";
    return "global memory";
}

void fence(Warp&, const Op&, LaneMask) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

std::uint64_t window_of(Space space) {
    switch (space) {
        case Space::shared: return shared_window;
        case Space::local: return local_window;
        case Space::param: return param_window;
        default: return 0;
    }
}
template <Space space>
void to_generic(Warp& warp, const Op& op, LaneMask mask) {
    const Row& a = warp.in(op.a);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) { d[lane] = a[lane] + window_of(space); });
}
template <Space space>
void from_generic(Warp& warp, const Op& op, LaneMask mask) {
    const Row& a = warp.in(op.a);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) { d[lane] = a[lane] - window_of(space); });
}
// Variables of .const lie among those of .global.
bool is_in_constants(const ProgramCode& code, std::uint64_t address) {
    for (std::size_t at = 0; at < code.variables.size(); ++at) {
        const GlobalVariable& one = code.variables[at];
        if (one.is_constant && address >= code.addresses[at] && address - code.addresses[at] < one.size_bytes)
            return true;
    }
    return false;
}
template <Space space>
void is_space(Warp& warp, const Op& op, LaneMask mask) {
    const Row& a = warp.in(op.a);
    LaneMask yes = 0;
    for_lanes(mask, [&](std::uint32_t lane) {
        const std::uint64_t window = a[lane] & window_mask;
        if constexpr (space == Space::constant || space == Space::global) {
            if (is_in_constants(*warp.worker->state->code, a[lane])) {
                yes |= LaneMask{space == Space::constant} << lane;
                return;
            }
            if (space == Space::constant) return;
        }
        const bool global = window != shared_window && window != local_window && window != param_window;
        // Shared memory is the own block's.
        const std::uint64_t rank = (a[lane] & ~window_mask) >> cluster_shift;
        const bool own = space != Space::shared || rank == 0 || rank - 1 == warp.block->rank;
        yes |= LaneMask{space == Space::global ? global : window == window_of(space) && own} << lane;
    });
    warp.predicates[op.p] = (warp.predicates[op.p] & ~mask) | yes;
}

void is_cluster(Warp& warp, const Op& op, LaneMask mask) {
    const Row& a = warp.in(op.a);
    LaneMask yes = 0;
    for_lanes(mask, [&](std::uint32_t lane) { yes |= LaneMask{(a[lane] & window_mask) == shared_window} << lane; });
    warp.predicates[op.p] = (warp.predicates[op.p] & ~mask) | yes;
}

void local_address(Warp& warp, const Op& op, LaneMask mask) {
    Row& d = warp.out(op.d);
    const std::uint64_t address = warp.now.frame->local_base + op.value;
    for_lanes(mask, [&](std::uint32_t lane) { d[lane] = address; });
}

}  // namespace

void note_read(Warp& warp, const Op& op, std::uint32_t lane, std::uint64_t address, std::uint32_t bytes) {
    Worker& worker = *warp.worker;
    const std::byte* const written = worker.last_written;
    if (written == nullptr ||
        std::all_of(written, written + bytes, [](std::byte one) { return one != std::byte{0}; })) {
        return;
    }
    Execution::State& state = *worker.state;
    const std::lock_guard lock(state.mutex);
    if (!state.reported.insert(&op).second) return;
    state.memory->uninitialised(place_of(warp, op, lane) + ": a read of " + std::to_string(bytes) + " bytes at " +
                                    in_hex(address) + " of the " + space_read(op, address) +
                                    ", of which nothing wrote all",
                                address);
}

// Other threads may record the same bytes.
void note_write(Warp& warp, std::uint32_t bytes) {
    std::byte* const written = warp.worker->last_written;
    if (written == nullptr) return;
    for (std::uint32_t at = 0; at < bytes; ++at) {
        __atomic_store_n(reinterpret_cast<unsigned char*>(written + at), 1, __ATOMIC_RELAXED);
    }
}

std::byte* reach(Warp& warp, const Op& op, std::uint32_t lane, std::uint64_t address, std::uint32_t bytes,
                 bool writes) {
    Worker& worker = *warp.worker;
    Execution::State& state = *worker.state;
    worker.last_whole = true;
    worker.last_written = nullptr;
    // Addresses of these spaces have 32 bits and wrap. A generic address in the place of one stays wrong.
    if ((op.space == Space::shared || op.space == Space::local) && address >> 33 == 0) address &= 0xffffffff;
    if ((address & (bytes - 1)) != 0) {
        refuse(warp, op, lane, address, bytes, writes, FaultKind::misaligned,
               "the address is not a multiple of " + std::to_string(bytes));
        return nullptr;
    }
    Space space = op.space;
    std::uint64_t offset = address;
    if (space == Space::generic) {
        offset = address & ~window_mask;
        switch (address & window_mask) {
            case shared_window: space = Space::shared; break;
            case local_window: space = Space::local; break;
            case param_window: space = Space::param; break;
            case grid_window:
                return within(warp, op, lane, offset, bytes, writes, state.grid_workspace.data(),
                              state.grid_workspace.size(), "workspace of the grid");
            default: space = Space::global;
        }
    }
    switch (space) {
        case Space::shared: {
            Block* owner = warp.block;
            if (offset >> cluster_shift != 0) {
                owner = block_with_rank(warp, op, lane, offset, bytes, writes);
                if (owner == nullptr) return nullptr;
                offset &= (std::uint64_t{1} << cluster_shift) - 1;
            }
            std::vector<std::byte>& shared = owner->shared;
            return within(warp, op, lane, offset, bytes, writes, shared.data(), shared.size(), "block's shared memory",
                          &owner->shared_written);
        }
        case Space::local:
            return within(warp, op, lane, offset, bytes, writes, warp.local_at(lane), warp.local_bytes,
                          "thread's local memory", &warp.local_written, std::uint64_t{lane} * warp.local_bytes);
        case Space::param:
            if (writes) {
                refuse(warp, op, lane, offset, bytes, writes, FaultKind::illegal_address, "parameters are read-only");
                return nullptr;
            }
            return within(warp, op, lane, offset, bytes, writes, state.parameters.data(), state.parameters.size(),
                          "kernel's parameters");
        default: break;
    }
    const CachedWindow& cached = worker.windows[op.slot];
    if (std::byte* const found = quickly(cached, address, bytes)) {
        worker.last_whole = cached.whole_updates;
        if (cached.written != nullptr) worker.last_written = cached.written + (address - cached.begin);
        return found;
    }
    return ask(warp, op, lane, address, bytes, writes);
}

Run load_run(std::uint32_t bytes) {
    switch (bytes) {
        case 1: return load<std::uint8_t>;
        case 2: return load<std::uint16_t>;
        case 4: return load<std::uint32_t>;
        case 8: return load<std::uint64_t>;
        case 16: return load_wide;
        default: return nullptr;
    }
}
Run store_run(std::uint32_t bytes) {
    switch (bytes) {
        case 1: return store<std::uint8_t>;
        case 2: return store<std::uint16_t>;
        case 4: return store<std::uint32_t>;
        case 8: return store<std::uint64_t>;
        case 16: return store_wide;
        default: return nullptr;
    }
}
Run fence_run() {
    return fence;
}
Run local_address_run() {
    return local_address;
}
Run to_generic_run(Space space) {
    switch (space) {
        case Space::shared: return to_generic<Space::shared>;
        case Space::local: return to_generic<Space::local>;
        case Space::param: return to_generic<Space::param>;
        default: return move_run();
    }
}
Run from_generic_run(Space space) {
    switch (space) {
        case Space::shared: return from_generic<Space::shared>;
        case Space::local: return from_generic<Space::local>;
        case Space::param: return from_generic<Space::param>;
        default: return move_run();
    }
}
Run is_cluster_run() {
    return is_cluster;
}
Run is_space_run(Space space) {
    switch (space) {
        case Space::shared: return is_space<Space::shared>;
        case Space::local: return is_space<Space::local>;
        case Space::param: return is_space<Space::param>;
        case Space::global: return is_space<Space::global>;
        case Space::constant: return is_space<Space::constant>;
        default: return nullptr;
    }
}

}  // namespace isthmus::ptx
