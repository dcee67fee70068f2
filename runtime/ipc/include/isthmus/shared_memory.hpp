// Memory that several processes use: one call exports it, one imports it, and from then on either side reads and writes
// the same bytes without another import. Of a GPU for GPUs alone, of the host where CPUs see it, too. For frames that
// follow each other there is SharedFrameRing (shared_frame_ring.hpp).
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/buffer.hpp>
#include <isthmus/export.hpp>
#include <isthmus/launch_argument.hpp>
#include <isthmus/result.hpp>
#include <isthmus/shared_memory_descriptor.hpp>
#include <isthmus/sharing_rung.hpp>
#include <isthmus/sharing_use.hpp>
#include <isthmus/wait.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

namespace isthmus::inline v0 {

class Device;

struct ExportableOptions {
    // For processes of other machines of one NVLink fabric, by a fabric handle, which needs an IMEX channel here.
    // false: by a file descriptor; where the device has none, by a fabric handle that was tried, or else by one of the
    // driver's older handles, whose exporter has to outlive its importers (SharingRung::legacy_ipc).
    bool other_machines = false;
    // gpus_only: memory of the device, into which the host does not look; on the CPU device, memory of the host.
    // cpus_and_gpus: memory of the host in a sealed file, with host views in every process, on every machine. Each
    // process's device uses it in place where it reaches it or can register it, and copies it around its uses
    // elsewhere; explain() says which.
    SeenBy seen_by = SeenBy::gpus_only;
    SharedUse use{};  // by this process, of memory that CPUs see; as for allocate_shared()
};
struct ImportOptions {
    SharedUse use{};  // by this process, of memory of the host; as for allocate_shared()
    // Of the host's memory, which the exporter has this process map and register; more is refused before anything of it
    // is accepted.
    std::uint64_t most_bytes = std::uint64_t{4} << 30;
};

namespace detail {
class SharedPiece;
struct MadeExportable {
    std::shared_ptr<BufferState> state;
    std::shared_ptr<SharedPiece> memory;
};
ISTHMUS_API Result<MadeExportable> make_exportable(Device& device, std::size_t bytes, std::uint32_t element_bytes,
                                                   const ExportableOptions& options);
ISTHMUS_API SharingRung rung_of(const SharedPiece* memory) noexcept;
ISTHMUS_API Result<SharedMemoryDescriptor> export_shared(const BufferState* state, const SharedPiece* memory);
ISTHMUS_API Result<std::shared_ptr<BufferState>> import_shared(const Device& device, SharedMemoryDescriptor descriptor,
                                                               std::uint32_t element_bytes,
                                                               const ImportOptions& options);
}  // namespace detail

// A buffer of memory that was made to be exported: zero when it is made, never used again for anything else, never a
// part of a pool. Usable wherever a TypedBuffer is taken. Movable, as Buffer.
template <class T>
class ExportableBuffer : public TypedBuffer<T> {
public:
    ExportableBuffer() = default;
    // Takes whole granules of the device's memory (2 MiB mostly), or whole pages of the host's. Errors: unsupported
    // (the device shares no memory of its own, or not like that: the message says why, and what works),
    // invalid_argument (no elements, or more than any machine has), not_permitted (a fabric without an IMEX channel),
    // out_of_memory, capture_error (a capture is open on this thread), in_use (a service runs: the driver might wait
    // for it), device_lost; of memory of the host those of Device::adopt, and system_limit (file descriptors).
    static Result<ExportableBuffer> make(Device& device, std::size_t count, const ExportableOptions& options = {}) {
        const bool overflows = count > std::numeric_limits<std::size_t>::max() / sizeof(T);
        Result<detail::MadeExportable> made =
            detail::make_exportable(device, overflows ? std::numeric_limits<std::size_t>::max() : count * sizeof(T),
                                    static_cast<std::uint32_t>(sizeof(T)), options);
        if (!made) return std::move(made).error();
        return ExportableBuffer(std::move(*made));
    }
    // By what it is exported: fixed when it was made; none without memory. No driver call.
    SharingRung rung() const noexcept { return detail::rung_of(memory_.get()); }
    Result<SharedMemoryDescriptor> export_memory() const {
        return detail::export_shared(this->state().get(), memory_.get());
    }

private:
    explicit ExportableBuffer(detail::MadeExportable made)
        : TypedBuffer<T>(std::move(made.state)), memory_(std::move(made.memory)) {}
    std::shared_ptr<detail::SharedPiece> memory_;
};

// All of the buffer, for whoever gets the descriptor: a right to read and write that nobody takes back, under any user
// id, and also after this process ended. Authorise before sending (Channel does). May be called any number of times.
// Work that uses the buffer is not waited for. Errors: invalid_handle (empty, moved from, released), system_limit,
// device_lost.
template <class T>
Result<SharedMemoryDescriptor> export_memory(const ExportableBuffer<T>& buffer) {
    return buffer.export_memory();
}
// Any other buffer: unsupported. Says why not, and what would be.
ISTHMUS_API Result<SharedMemoryDescriptor> export_memory(const BufferBase& buffer);

// The exporter's memory as a buffer of `device`, which has to be the one that the descriptor names (across a fabric:
// any that reaches it; memory of the host: any, also the CPU device). Checks everything that the driver or the system
// tells of it against the descriptor; closes the descriptor. The exporter may end first, but for an older handle, of
// which the driver then leaves undefined what becomes of the memory. Nothing orders this process's
// work with the exporter's, and host views wait for this process's work only: agree over the transport, as below.
// Errors, with which nothing is left behind: unsupported (the CPU device; no virtual memory; nothing imports this
// rung), wrong_device, invalid_argument (elements of another size; a descriptor of something else; memory of another
// size than was said), not_permitted, capture_error (a capture is open on this thread), in_use (a service runs; by an
// older handle: this runtime has it already), device_lost; of memory of the host: peer_broke_rules (its file is not
// sealed, or not what was said), out_of_memory (more than ImportOptions::most_bytes), and those of Device::adopt.
template <class T>
Result<Buffer<T>> import_memory(const Device& device, SharedMemoryDescriptor descriptor,
                                const ImportOptions& options = {}) {
    Result<std::shared_ptr<detail::BufferState>> made =
        detail::import_shared(device, std::move(descriptor), static_cast<std::uint32_t>(sizeof(T)), options);
    if (!made) return std::move(made).error();
    return Buffer<T>(std::move(made).value());
}

// Processes take turns with shared memory. flush_shared() ends one: it waits for device work of this process that
// writes the buffer, and brings what a copied buffer has on its device to the shared memory. Then tell the others.
// Closing a host view of what the host alone wrote needs none. Errors: invalid_handle, invalid_argument (the buffer is
// not shared), in_use (it is open on the host for writing), timed_out, not_ready (Wait::never()), device_lost.
ISTHMUS_API Result<void> flush_shared(const BufferBase& buffer, Wait wait = {});
// … and invalidate_shared() begins one, after another process said that it ended its own: what this process's device
// has of a copied buffer is old. Where the memory is used in place it does nothing but wait for what this process
// still does with it. Errors: as above, and in_use also for what a device of this process wrote and did not flush.
ISTHMUS_API Result<void> invalidate_shared(BufferBase& buffer, Wait wait = {});

}  // namespace isthmus::inline v0
