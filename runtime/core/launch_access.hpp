// SPDX-License-Identifier: Apache-2.0
// What a device may do with a buffer or a range of memory: the rules, applied to what the runtime has recorded.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/memory_kind.hpp>

#include "composed.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct Books;
struct BufferState;
struct DeviceState;

// Which allocation an address belongs to, and which device owns it, as far as known.
struct Provenance {
    MemoryKind kind = MemoryKind::unknown;
    std::uint64_t base = 0;              // of the allocation
    std::uint64_t bytes = 0;             // 0: unknown (system memory only)
    std::uint64_t id = 0;                // 0: system memory only
    std::shared_ptr<DeviceState> owner;  // nullptr: no device of this runtime
    bool foreign = true;                 // other code of the process obtained it
    bool remembered = false;      // it is an earlier answer about foreign memory: its owner may have freed it since
    bool device_address = false;  // the address is the device's address of host memory
    // Whether the whole range lies in the allocation, as far as its size is known.
    bool holds(std::uint64_t address, std::uint64_t range_bytes) const noexcept {
        return bytes == 0 || (address >= base && address - base <= bytes && range_bytes <= bytes - (address - base));
    }
};

// From the books. The driver is asked once about an address that they do not know, and its answer kept (A10). What no
// driver knows is system memory (MemoryKind::host); that answer is not kept, because its extent is unknown. At most one
// driver call (cuPointerGetAttributes), which leaves captures alone.
Provenance provenance_of(const DeviceState& device, std::uint64_t address);

// Removes kept foreign answers about any part of the range: something else lies there now. Called when an allocation of
// the runtime is inserted.
void forget_foreign(Books& books, std::uint64_t base, std::uint64_t bytes);

// Whether the device may access this range, wherever it came from. `known` receives its provenance, unless nullptr.
AccessAnswer range_access(const DeviceState& device, std::uint64_t address, std::uint64_t bytes,
                          Provenance* known = nullptr);
// Memory of these kinds may be mapped, with access per range: vmm always; imported memory except by the driver's older
// handles, which are opened for their device and follow peer access.
inline bool may_be_mapped(MemoryKind kind) noexcept {
    return kind == MemoryKind::vmm || kind == MemoryKind::imported;
}
bool is_mapped(const DeviceState& device, const Provenance& memory, std::uint64_t address);
bool is_mapped(const BufferState& buffer);
// Whether it may access this range of mapped memory, by the access that was granted (V9).
AccessAnswer mapped_access(const DeviceState& device, std::uint64_t address, std::uint64_t bytes, bool writes);
// Whether it may access this buffer (by handle: no driver call).
AccessAnswer buffer_access(const DeviceState& device, const BufferState& buffer);
// The buffer's address for this device, whether the device may access it or not; 0: it has none.
std::uint64_t buffer_address(const DeviceState& device, const BufferState& buffer);

// A lost device, other than this one, that owns memory of the buffer or of the range; nullptr: none, and always for the
// CPU device, which opens views. Such memory does not hold what the program computed, and no GPU is given it (R2). By
// the books alone.
std::shared_ptr<const DeviceState> lost_owner(const DeviceState& device, const BufferState& buffer);
std::shared_ptr<const DeviceState> lost_owner(const DeviceState& device, const Provenance& memory,
                                              std::uint64_t address, std::uint64_t bytes);
inline constexpr std::string_view owner_is_lost =
    "the device that owns it reported a fault from which it does not recover in this process";
inline constexpr std::string_view instead_of_lost =
    "take what the host can still read (read_on_host, salvage_on_host) into a buffer of a device that works";

// "managed memory of H200" for messages.
Words described(const Provenance& memory);
Words described(const BufferState& buffer);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
