// Device: one GPU, or the CPU. Owned by the Runtime; all functions are thread-safe.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/buffer.hpp>
#include <isthmus/capability.hpp>
#include <isthmus/event.hpp>
#include <isthmus/export.hpp>
#include <isthmus/facts.hpp>
#include <isthmus/result.hpp>
#include <isthmus/sharing_use.hpp>
#include <isthmus/stream.hpp>
#include <isthmus/wait.hpp>

#include <cstddef>
#include <memory>
#include <string_view>

namespace isthmus::inline v0 {

struct StreamOptions {
    int priority = 0;  // −1 high, 0 low; clamped (S13)
};

class ISTHMUS_API Device {
public:
    explicit Device(std::shared_ptr<detail::DeviceState> state);

    std::size_t index() const noexcept;  // within the runtime
    bool is_cpu() const noexcept;
    std::string_view name() const noexcept;
    const Capabilities& capabilities() const noexcept;
    const DeviceFacts& facts() const noexcept;
    bool healthy() const noexcept;  // false after a sticky error (R2)

    Stream& stream() noexcept;  // there from the start (S4)
    Result<Stream> create_stream(StreamOptions options = {});
    Result<Event> create_event(bool timing = false);

    // Memory for this device alone (the CPU cannot view it). `kind` chooses another one; kinds that the machine
    // lacks are refused before the driver is called (K7). count = 0 gives an empty buffer of that kind.
    // Errors: invalid_argument (count × sizeof(T) overflows), unsupported, out_of_memory, device_lost.
    template <class T>
    Result<Buffer<T>> allocate(std::size_t count, MemoryKind kind = MemoryKind::device) {
        return typed<T>(allocate_bytes(count, sizeof(T), alignof(T), kind));
    }
    // Pageable host memory with NUMA placement; Locality::near_device is this device's closest node (H1).
    template <class T>
    Result<Buffer<T>> allocate_host(std::size_t count, const HostPlacement& placement = {}) {
        return typed<T>(allocate_host_bytes(count, sizeof(T), alignof(T), placement));
    }
    // Memory for both: the machine's row and the declared use decide which kind (G11); explain() says why.
    template <class T>
    Result<Buffer<T>> allocate_shared(std::size_t count, const SharedUse& use = {}) {
        return typed<T>(allocate_shared_bytes(count, sizeof(T), alignof(T), use));
    }

    // May this device touch the buffer? No driver call for memory of this runtime.
    AccessAnswer can_access(const BufferBase& buffer) const;
    // What a launch does with memory of this kind here.
    LaunchPath launch_path(MemoryKind kind) const noexcept;
    // Waits for all work that this runtime gave to the device, stream by stream.
    Result<void> synchronize(Wait wait = {});

    const std::shared_ptr<detail::DeviceState>& state() const noexcept { return state_; }

private:
    using Untyped = Result<std::shared_ptr<detail::BufferState>>;
    Untyped allocate_bytes(std::size_t count, std::size_t element_bytes, std::size_t alignment, MemoryKind kind);
    Untyped allocate_host_bytes(std::size_t count, std::size_t element_bytes, std::size_t alignment,
                                const HostPlacement& placement);
    Untyped allocate_shared_bytes(std::size_t count, std::size_t element_bytes, std::size_t alignment,
                                  const SharedUse& use);
    template <class T>
    static Result<Buffer<T>> typed(Untyped state) {
        if (!state) return std::move(state).error();
        return Buffer<T>(std::move(state).value());
    }
    std::shared_ptr<detail::DeviceState> state_;
    Stream stream_;
};

}  // namespace isthmus::inline v0
