// SPDX-License-Identifier: Apache-2.0
// Memory that several processes use: one call exports it, one imports it, and from then on both sides read and write
// the same bytes without another import. GPU memory for GPUs alone; host memory where CPUs access it too. For sequences
// of frames: SharedFrameRing (shared_frame_ring.hpp).
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/buffer.hpp>
#include <isthmus/export.hpp>
#include <isthmus/ipc/shared_memory_descriptor.hpp>
#include <isthmus/launch_argument.hpp>
#include <isthmus/result.hpp>
#include <isthmus/share_method.hpp>
#include <isthmus/sharing_use.hpp>
#include <isthmus/wait.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

namespace isthmus {
inline namespace v0 {

class Device;

struct ExportableOptions {
    // true: for processes on other machines of one NVLink fabric, by a fabric handle, which needs an IMEX channel here.
    // false: by a file descriptor; where the device has none, by a fabric handle that passed a trial, or else by a
    // legacy IPC handle, whose exporter has to outlive its importers (ShareMethod::legacy_ipc).
    bool other_machines = false;
    // gpus_only: device memory, not accessible from the host; on the CPU device, host memory. cpus_and_gpus: host
    // memory in a sealed file, with host views in every process, on every machine; each device uses it in place where
    // it reaches it or can register it, and otherwise by copies around its uses. explain() says which.
    SeenBy seen_by = SeenBy::gpus_only;
    SharedUse use{};  // by this process, for memory that CPUs access; as for allocate_shared()
    // For other drivers (V4L2, displays, network cards), by export_dma_buf(). create() then refuses a device whose
    // memory the driver does not export so. With cpus_and_gpus the memory is pinned host memory, which no other process
    // imports by export_memory(): `use` and `other_machines` do not count, and share_method() is none.
    bool dma_buf = false;
};
struct ImportOptions {
    SharedUse use{};  // by this process, for host memory; as for allocate_shared()
    // Limit for host memory that this process maps and registers for the exporter; more is refused before any of it is
    // accepted.
    std::uint64_t max_bytes = std::uint64_t{4} << 30;
};

namespace detail {
class SharedPiece;
struct MadeExportable {
    std::shared_ptr<BufferState> state;
    std::shared_ptr<SharedPiece> memory;
};
ISTHMUS_API Result<MadeExportable> create_exportable(Device& device, std::size_t bytes, std::uint32_t element_bytes,
                                                     const ExportableOptions& options);
ISTHMUS_API ShareMethod share_method_of(const SharedPiece* memory) noexcept;
ISTHMUS_API Result<SharedMemoryDescriptor> export_shared(const BufferState* state, const SharedPiece* memory);
ISTHMUS_API Result<FileDescriptor> export_as_dma_buf(const BufferState* state, const SharedPiece* memory);
ISTHMUS_API Result<std::shared_ptr<BufferState>> import_shared(const Device& device, SharedMemoryDescriptor descriptor,
                                                               std::uint32_t element_bytes,
                                                               const ImportOptions& options);
}  // namespace detail

// A buffer of memory made for export: zero at creation, never recycled, never part of a pool. Usable wherever a
// TypedBuffer is taken. Movable, as Buffer.
template <class T>
class ExportableBuffer : public TypedBuffer<T> {
public:
    ExportableBuffer() = default;
    // Takes whole granules of device memory (2 MiB in most cases), or whole pages of host memory. Errors: unsupported
    // (the device shares no memory of its own, or not this way: the message says why, and what works), invalid_argument
    // (no elements, or more than any machine has), not_permitted (a fabric without an IMEX channel), out_of_memory,
    // capture_error (a capture is open on this thread), in_use (a service runs: the driver might wait for it),
    // device_lost; for host memory those of Device::adopt, and system_limit (file descriptors).
    static Result<ExportableBuffer> create(Device& device, std::size_t count, const ExportableOptions& options = {}) {
        const bool overflows = count > std::numeric_limits<std::size_t>::max() / sizeof(T);
        Result<detail::MadeExportable> made =
            detail::create_exportable(device, overflows ? std::numeric_limits<std::size_t>::max() : count * sizeof(T),
                                      static_cast<std::uint32_t>(sizeof(T)), options);
        if (!made) return std::move(made).error();
        return ExportableBuffer(std::move(*made));
    }
    // The share method: fixed at creation; none without memory. No driver call.
    ShareMethod share_method() const noexcept { return detail::share_method_of(memory_.get()); }
    Result<SharedMemoryDescriptor> export_memory() const {
        return detail::export_shared(this->state().get(), memory_.get());
    }
    Result<FileDescriptor> export_dma_buf() const {
        return detail::export_as_dma_buf(this->state().get(), memory_.get());
    }

private:
    explicit ExportableBuffer(detail::MadeExportable made)
        : TypedBuffer<T>(std::move(made.state)), memory_(std::move(made.memory)) {}
    std::shared_ptr<detail::SharedPiece> memory_;
};

// Exports the whole buffer: the receiver of the descriptor has an irrevocable right to read and write it, under any
// user id, also after this process ended. Authorise before sending (Channel does). May be called any number of times.
// Does not wait for work that uses the buffer. Errors: invalid_handle (empty, moved from, released), system_limit,
// device_lost.
template <class T>
Result<SharedMemoryDescriptor> export_memory(const ExportableBuffer<T>& buffer) {
    return buffer.export_memory();
}
// Any other buffer: unsupported. The error says why not, and what works.
ISTHMUS_API Result<SharedMemoryDescriptor> export_memory(const BufferBase& buffer);

// A new descriptor of a dma-buf over the buffer's memory, from its first byte on, in whole pages (granules of device
// memory): for a driver that takes dma-bufs. As with export_memory(), who has the descriptor may read and write the
// memory for as long as he keeps it. The driver decides what can be exported: device memory where attribute 124
// (Feature::dma_buf) is 1, pinned host memory where attribute 146 (Feature::host_dma_buf) is 1. Does not wait for work
// that uses the buffer, and nothing orders the other driver's work with this process's: stop using the buffer while the
// other driver writes, and hold a host view for writing meanwhile where the CPU sees it. Errors: unsupported (this
// memory is not exported so: the message says what works), invalid_handle (empty, moved from, released), system_limit,
// device_lost.
template <class T>
Result<FileDescriptor> export_dma_buf(const ExportableBuffer<T>& buffer) {
    return buffer.export_dma_buf();
}
// Any other buffer: unsupported, because it was not requested exportable when it was allocated.
ISTHMUS_API Result<FileDescriptor> export_dma_buf(const BufferBase& buffer);

// Imports the exporter's memory as a buffer of `device`: the device that the descriptor names (across a fabric: any
// device that reaches the memory; for host memory: any device, also the CPU device). Checks the descriptor against
// everything that the driver or the system reports; closes the descriptor. The exporter may end first, except with a
// legacy IPC handle: the driver then leaves the state of the memory undefined. This process's work is not ordered with
// the exporter's, and host views wait for this process's work only: take turns as described below, by messages over the
// transport. Errors, with which nothing is left behind: unsupported (the CPU device; no virtual memory; the device
// cannot import by this share method), wrong_device, invalid_argument (elements of another size; a descriptor of
// something else; memory of another size than the descriptor states), not_permitted, capture_error (a capture is open
// on this thread), in_use (a service runs; with a legacy IPC handle: this runtime has imported it already),
// device_lost. For host memory also: peer_broke_rules (its file is not sealed, or differs from the descriptor),
// out_of_memory (more than ImportOptions::max_bytes), and those of Device::adopt.
template <class T>
Result<Buffer<T>> import_memory(const Device& device, SharedMemoryDescriptor descriptor,
                                const ImportOptions& options = {}) {
    Result<std::shared_ptr<detail::BufferState>> made =
        detail::import_shared(device, std::move(descriptor), static_cast<std::uint32_t>(sizeof(T)), options);
    if (!made) return std::move(made).error();
    return Buffer<T>(std::move(made).value());
}

// Processes take turns with shared memory. flush_shared() ends a turn: it waits for this process's device work that
// writes the buffer, and copies a staged buffer's device content to the shared memory. Then notify the other processes.
// Closing a host view needs no flush_shared() where the host alone wrote. Errors: invalid_handle, invalid_argument (the
// buffer is not shared), in_use (it is open on the host for writing), timed_out, not_ready (Wait::never()),
// device_lost.
ISTHMUS_API Result<void> flush_shared(const BufferBase& buffer, Wait wait = {});
// invalidate_shared() begins a turn, after another process said that its own turn ended: the device content of a staged
// buffer is now out of date. Where the memory is used in place, the call only waits for this process's own uses.
// Errors: as above, and in_use also where a device of this process wrote and did not flush.
ISTHMUS_API Result<void> invalidate_shared(BufferBase& buffer, Wait wait = {});

}  // namespace v0
}  // namespace isthmus
