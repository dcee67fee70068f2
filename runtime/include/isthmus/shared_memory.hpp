// Memory of a GPU that several processes use: one call exports it, one imports it, and from then on either side's
// kernels read and write the same bytes without another call. For GPUs alone: frames that CPUs see, too, go round in a
// SharedFrameRing (shared_frame_ring.hpp).
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/buffer.hpp>
#include <isthmus/export.hpp>
#include <isthmus/launch_argument.hpp>
#include <isthmus/result.hpp>
#include <isthmus/shared_memory_descriptor.hpp>
#include <isthmus/sharing_rung.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

namespace isthmus::inline v0 {

class Device;

struct ExportableOptions {
    // For processes of other machines of one NVLink fabric, by a fabric handle, which needs an IMEX channel here.
    // false: by a file descriptor, or, where the device has none, by a fabric handle that was tried.
    bool other_machines = false;
};

namespace detail {
class SharedMapping;
struct MadeExportable {
    std::shared_ptr<BufferState> state;
    std::shared_ptr<SharedMapping> memory;
};
ISTHMUS_API Result<MadeExportable> make_exportable(Device& device, std::size_t bytes, std::uint32_t element_bytes,
                                                   const ExportableOptions& options);
ISTHMUS_API SharingRung rung_of(const SharedMapping* memory) noexcept;
ISTHMUS_API Result<SharedMemoryDescriptor> export_mapping(const BufferState* state, const SharedMapping* memory);
ISTHMUS_API Result<std::shared_ptr<BufferState>> import_mapping(const Device& device, SharedMemoryDescriptor descriptor,
                                                                std::uint32_t element_bytes);
}  // namespace detail

// A buffer of memory that was made to be exported: of its device, zero when it is made, never used again for anything
// else, never a part of a pool. Usable wherever a Buffer of device memory is; the host may not look. Movable, as
// Buffer.
template <class T>
class ExportableBuffer : public Buffer<T> {
public:
    ExportableBuffer() = default;
    // Takes whole granules of the device's memory (2 MiB mostly). Errors: unsupported (the device shares no memory of
    // its own, or not like that: the message says why, and what works), invalid_argument (no elements, or more than any
    // machine has), not_permitted (a fabric without an IMEX channel), out_of_memory, capture_error (a capture is open
    // on this thread), in_use (a service runs: the driver might wait for it), device_lost.
    static Result<ExportableBuffer> make(Device& device, std::size_t count, const ExportableOptions& options = {}) {
        const bool overflows = count > std::numeric_limits<std::size_t>::max() / sizeof(T);
        Result<detail::MadeExportable> made =
            detail::make_exportable(device, overflows ? std::numeric_limits<std::size_t>::max() : count * sizeof(T),
                                    static_cast<std::uint32_t>(sizeof(T)), options);
        if (!made) return std::move(made).error();
        return ExportableBuffer(std::move(*made));
    }
    // By what it is exported: fixed when it was made. No driver call.
    SharingRung rung() const noexcept { return detail::rung_of(memory_.get()); }
    Result<SharedMemoryDescriptor> export_memory() const {
        return detail::export_mapping(this->state().get(), memory_.get());
    }

private:
    explicit ExportableBuffer(detail::MadeExportable made)
        : Buffer<T>(std::move(made.state)), memory_(std::move(made.memory)) {}
    std::shared_ptr<detail::SharedMapping> memory_;
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
// any that reaches it). Checks everything that the driver tells of it against the descriptor; closes the descriptor.
// The exporter may end first. Nothing orders this process's work with the exporter's: agree over the transport, after
// each side has waited for its own.
// Errors, with which nothing is left behind: unsupported (the CPU device; no virtual memory; nothing imports this
// rung), wrong_device, invalid_argument (elements of another size; a descriptor of something else; memory of another
// size than was said), not_permitted, capture_error (a capture is open on this thread), in_use (a service runs),
// device_lost.
template <class T>
Result<Buffer<T>> import_memory(const Device& device, SharedMemoryDescriptor descriptor) {
    Result<std::shared_ptr<detail::BufferState>> made =
        detail::import_mapping(device, std::move(descriptor), static_cast<std::uint32_t>(sizeof(T)));
    if (!made) return std::move(made).error();
    return Buffer<T>(std::move(made).value());
}

namespace detail {
template <class T>
inline constexpr bool is_buffer<ExportableBuffer<T>> = true;
template <class T>
struct ArgumentElement<ExportableBuffer<T>> {
    using type = T;
};
}  // namespace detail

}  // namespace isthmus::inline v0
