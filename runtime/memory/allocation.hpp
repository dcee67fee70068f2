// SPDX-License-Identifier: Apache-2.0
// Creates buffers: validation, plan, memory from an allocator.
#pragma once

#include <isthmus/allocator.hpp>
#include <isthmus/placement.hpp>
#include <isthmus/result.hpp>
#include <isthmus/sharing_use.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace isthmus {
inline namespace v0 {
class Stream;
struct AdoptOptions;
}  // namespace v0
}  // namespace isthmus

namespace isthmus::platform::os {
struct ProcessCalls;
}

namespace isthmus {
inline namespace v0 {
namespace detail {

struct BufferState;
struct DeviceState;
struct OwnMapping;
using Untyped = Result<std::shared_ptr<BufferState>>;

struct Amount {
    std::size_t count = 0;
    std::size_t element_bytes = 0;
    std::size_t alignment = 1;  // of an element; a wish may be coarser (SharedUse, AlignedAllocator)
};

// Size in bytes. invalid_argument: larger than any machine's memory.
Result<std::size_t> bytes_of(const Amount& amount);

// With `stream`, pool memory is usable at once on that stream; other streams wait for it before their first use.
// Without `stream` it is usable everywhere at return. `reason` has static storage. `shared`: the buffer has a
// descriptor.
Untyped allocate_from(const std::shared_ptr<DeviceState>& device, const Allocator& allocator, Amount amount,
                      std::string_view reason, Stream* stream = nullptr, bool shared = false);
// What the buffer's explain() says of a request for one kind.
enum class KindReason : std::uint8_t { by_kind, on_cpu_device, by_current_allocator, by_allocator, in_order, as_host };
std::string_view text(KindReason reason) noexcept;
// The same from the device's own memory of this kind, as its allocator of the kind gives it.
Untyped allocate_kind(const std::shared_ptr<DeviceState>& device, MemoryKind kind, Amount amount, KindReason reason,
                      Stream* stream = nullptr);
Untyped allocate_host(const std::shared_ptr<DeviceState>& device, Amount amount, const HostPlacement& placement);
Untyped allocate_shared(const std::shared_ptr<DeviceState>& device, Amount amount, const SharedUse& use,
                        bool is_signed = false);
// Like adopt_mapping(), for a buffer with a descriptor (shared_memory.hpp).
Untyped adopt_shared(const std::shared_ptr<DeviceState>& device, void* pointer, std::size_t bytes, const SharedUse& use,
                     const OwnMapping& mapping, std::function<void()> ended);
// Device::adopt_dma_buf() over these system calls, which must outlive the memory.
Untyped adopt_dma_buf(const std::shared_ptr<DeviceState>& device, int descriptor, std::uint64_t offset_bytes,
                      const Amount& amount, AdoptOptions options, const platform::os::ProcessCalls& calls);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
