// SPDX-License-Identifier: Apache-2.0
// Buffer<T>: typed memory with one owner. Made by Device::allocate, allocate_host and allocate_shared. TypedBuffer<T>
// is what it has in common with growable buffers, mirrored buffers and exportable buffers.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/atomic_span.hpp>
#include <isthmus/buffer_part.hpp>
#include <isthmus/concurrent_view.hpp>
#include <isthmus/export.hpp>
#include <isthmus/host_view.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/placement.hpp>
#include <isthmus/result.hpp>
#include <isthmus/sharing_use.hpp>
#include <isthmus/wait.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>

namespace isthmus {
inline namespace v0 {

class Device;

// A buffer without its element type. Movable. The destructor releases the memory. It does not wait where only work of
// the device's own streams still uses memory that the runtime keeps for later allocations: nobody gets the memory
// before that work is known to have ended (but a 65th such buffer of a device waits for the oldest). Otherwise it waits
// for the work, at most the runtime's wait timeout: memory of other owners and allocators, managed memory that is
// attached to a stream, work of external streams and of other devices, and all memory where RuntimeOptions::cache_bytes
// is 0. Memory that a hung kernel holds is given up, and the log says so. A moved-from or released buffer answers
// Code::invalid_handle. Any thread may call queries; only the owner moves or releases.
class ISTHMUS_API BufferBase {
public:
    explicit operator bool() const noexcept { return state_ != nullptr; }
    std::size_t size_bytes() const noexcept { return state_ ? bytes_ : 0; }  // inline: every launch asks for it
    // The kind of the memory that the device uses; MemoryKind::unknown when empty. No driver call (K4).
    MemoryKind kind() const noexcept;
    // The kind of the host's side; differs from kind() where the buffer is staged.
    MemoryKind host_kind() const noexcept;
    // How a launch on the owning device uses the memory; LaunchPath::refuse when empty.
    LaunchPath path() const noexcept;
    // Why the buffer is of that kind, in one sentence. Static storage.
    std::string_view explain() const noexcept;
    // The address for the owning device; 0 when empty.
    std::uint64_t device_address() const noexcept;
    // How the requested placement was carried out. In the child of a fork: nothing.
    PlacementReport placement() const;
    // Bytes copied between the host's and the device's side so far; 0 where the memory is used in place.
    std::uint64_t staged_bytes() const noexcept;
    // Whether the memory can be given to another process; if not, the reason (K15). For memory that can, see
    // ExportableBuffer (shared_memory.hpp).
    AccessAnswer can_export() const noexcept;
    // Releases the memory now; the buffer is then empty. On an error nothing has changed: the buffer keeps its memory,
    // and can be used and released again. While the call waits, parts of the buffer answer Code::invalid_handle.
    // Errors: in_use (a view, a graph or a service uses it), timed_out, not_ready, those of a user's allocator, and the
    // driver's where it does not release adopted memory. Memory of the runtime that the driver does not take back at
    // once counts as released; the runtime logs it and tries again.
    Result<void> release(Wait wait = {});

    const std::shared_ptr<detail::BufferState>& state() const noexcept { return state_; }

protected:
    BufferBase() = default;
    explicit BufferBase(std::shared_ptr<detail::BufferState> state);
    BufferBase(BufferBase&&) noexcept = default;
    BufferBase& operator=(BufferBase&& other) noexcept;
    ~BufferBase();

    enum class HostUse : std::uint8_t { read, write, read_write, salvage };
    struct OpenedView {
        detail::ViewScope scope;
        void* data;
    };
    Result<OpenedView> open_view(HostUse use, Wait wait) const;
    Result<detail::ConcurrentScope> open_concurrent(Wait wait) const;
    void size_changed() noexcept;  // for a growable buffer

private:
    std::shared_ptr<detail::BufferState> state_;
    std::size_t bytes_ = 0;  // of the state; meaningless without one
};

// A view cannot be exported; its buffer may be.
namespace detail {
ISTHMUS_API AccessAnswer view_export() noexcept;
}
template <class T>
AccessAnswer can_export(const HostView<T>&) noexcept {
    return detail::view_export();
}

// A buffer of any kind with elements of type T: what launches, copies, fills, graphs and host views take. It cannot be
// assigned or moved through this base, so that memory of one kind never ends up in an object of another.
template <class T>
class TypedBuffer : public BufferBase {
    static_assert(std::is_trivially_copyable_v<T>, "a buffer's elements travel between CPU and GPU as bytes");

public:
    using element_type = T;

    std::size_t size() const noexcept { return size_bytes() / sizeof(T); }  // elements

    // The elements [first, first + count), for kernels and views. Uses of a part conflict with uses of the same
    // elements only (but see independent()). Graphs use the whole buffer. Errors: invalid_argument (beyond the end),
    // invalid_handle, not_permitted (the first part, in a sealed scope for which the device keeps no memory).
    Result<BufferPart<T>> part(std::size_t first, std::size_t count) { return make_part<T>(first, count); }
    Result<BufferPart<const T>> part(std::size_t first, std::size_t count) const {
        return make_part<const T>(first, count);
    }

    // Opens a scope for the CPU. A read view waits for device work that writes the buffer; a write view waits for all
    // device work that uses it. write_on_host() promises to write every element before the view closes; otherwise use
    // read_write_on_host().
    // Errors: in_use (a conflicting view is open), not_accessible (the CPU may not access this memory on this machine),
    // timed_out, not_ready, device_lost (work that the view has to wait for was lost with the device; salvage_on_host()
    // reads what is there).
    Result<HostView<const T>> read_on_host(Wait wait = {}) const { return open<const T>(HostUse::read, wait); }
    Result<HostView<T>> write_on_host(Wait wait = {}) { return open<T>(HostUse::write, wait); }
    Result<HostView<T>> read_write_on_host(Wait wait = {}) { return open<T>(HostUse::read_write, wait); }
    // Opens a scope for the CPU in which the device may use the buffer, too, in kernels that take it as an AtomicView.
    // Waits for other device work on it. While it is open, other views, kernel arguments, copies and fills are
    // Code::in_use. Errors as above; also not_accessible where CPU and GPU may not access this memory at the same time.
    Result<ConcurrentView<T>> concurrent_on_host(Wait wait = {}) {
        Result<detail::ConcurrentScope> scope = open_concurrent(wait);
        if (!scope) return std::move(scope).error();
        return ConcurrentView<T>(std::move(scope).value());
    }
    // A concurrent view in which both sides may do updates (read-modify-writes): atomics_on_host<AtomicSet::add>().
    // Refused where one of the operations is not atomic between CPU and GPU for words of this type in this memory (G2).
    // Errors: as concurrent_on_host(); not_accessible (one side may not access the memory), unsupported (no rule makes
    // the operation atomic), invalid_argument (a misaligned word), unverified.
    template <AtomicSet operations>
    Result<AtomicSpan<T, operations>> atomics_on_host(Wait wait = {}) {
        if (this->state()) {
            Result<void> lawful = detail::check_host_atomics(*this->state(), detail::wish_of<T, operations>);
            if (!lawful) return std::move(lawful).error();
        }
        Result<ConcurrentView<T>> view = concurrent_on_host(wait);
        if (!view) return std::move(view).error();
        return AtomicSpan<T, operations>(std::move(view).value());
    }
    // The host's side as it is after a fault (Code::device_lost): complete, half written or old (R2). While the device
    // works, the same as read_on_host().
    Result<HostView<const T>> salvage_on_host() const { return open<const T>(HostUse::salvage, {}); }

protected:
    TypedBuffer() = default;
    explicit TypedBuffer(std::shared_ptr<detail::BufferState> state) : BufferBase(std::move(state)) {}
    TypedBuffer(TypedBuffer&&) noexcept = default;
    TypedBuffer& operator=(TypedBuffer&&) noexcept = default;
    ~TypedBuffer() = default;

private:
    template <class V>
    Result<BufferPart<V>> make_part(std::size_t first, std::size_t count) const {
        if (Result<void> made = detail::make_part(state(), first, count, sizeof(T)); !made) {
            return std::move(made).error();
        }
        return BufferPart<V>(state(), first, count);
    }
    template <class V>
    Result<HostView<V>> open(HostUse use, Wait wait) const {
        if (state() && use != HostUse::salvage) {
            const bool writes = use != HostUse::read;
            if (void* const data = detail::open_at_once(*state(), writes); data != nullptr) {
                detail::ViewScope scope(*state(), {writes ? ArgumentUse::read_write : ArgumentUse::read});
                return HostView<V>(std::move(scope), static_cast<V*>(data), size());
            }
        }
        Result<OpenedView> opened = open_view(use, wait);
        if (!opened) return std::move(opened).error();
        return HostView<V>(std::move(opened->scope), static_cast<V*>(opened->data), size());
    }
};

// Memory of one size with one owner, movable. Its members are those of BufferBase and TypedBuffer.
template <class T>
class Buffer : public TypedBuffer<T> {
public:
    Buffer() = default;
    explicit Buffer(std::shared_ptr<detail::BufferState> state) : TypedBuffer<T>(std::move(state)) {}
};

}  // namespace v0
}  // namespace isthmus
