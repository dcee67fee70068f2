// What a device may do with a buffer or a range of memory: the rules, applied to what the books know of it.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/memory_kind.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace isthmus::inline v0::detail {

struct Books;
struct BufferState;
struct DeviceState;

// Who obtained the memory at an address, as far as anybody can tell.
struct Provenance {
    MemoryKind kind = MemoryKind::unknown;
    std::uint64_t base = 0;              // of the allocation
    std::uint64_t bytes = 0;             // 0: not known (memory of the system alone)
    std::uint64_t id = 0;                // 0: of the system alone
    std::shared_ptr<DeviceState> owner;  // nullptr: no device of this runtime
    bool foreign = true;                 // another part of the process obtained it
    bool remembered = false;             // … and it is an earlier answer: whoever owns it may have freed it since
    bool device_address = false;         // what the device calls host memory
    // Does all of the range lie in the allocation, as far as its size is known?
    bool holds(std::uint64_t address, std::uint64_t range_bytes) const noexcept {
        return bytes == 0 || (address >= base && address - base <= bytes && range_bytes <= bytes - (address - base));
    }
};

// From the books; an address that they do not know is asked of a driver once and its answer kept (A10). What no
// driver knows either is memory of the system (MemoryKind::host), which cannot be kept: its extent is not known.
// One driver call at most, which leaves captures alone (cuPointerGetAttributes).
Provenance provenance_of(const DeviceState& device, std::uint64_t address);

// Takes foreign answers about any part of the range out of the books: something else lies there now. For whoever
// inserts an allocation of the runtime's own.
void forget_foreign(Books& books, std::uint64_t base, std::uint64_t bytes);

// May the device touch this range, wherever it came from? `known`: its provenance, where the caller wants it.
AccessAnswer range_access(const DeviceState& device, std::uint64_t address, std::uint64_t bytes,
                          Provenance* known = nullptr);
// Memory of these kinds may stand behind mappings, whose ranges tell who was let in: always with vmm; of what was
// imported, but for the driver's older handles, which are opened for their device and follow peer access.
inline bool may_be_mapped(MemoryKind kind) noexcept {
    return kind == MemoryKind::vmm || kind == MemoryKind::imported;
}
bool is_mapped(const DeviceState& device, const Provenance& memory, std::uint64_t address);
bool is_mapped(const BufferState& buffer);
// May it touch this range of mapped memory, by what it was let into (V9)?
AccessAnswer mapped_access(const DeviceState& device, std::uint64_t address, std::uint64_t bytes, bool writes);
// May it touch this buffer (by handle: no driver call)?
AccessAnswer buffer_access(const DeviceState& device, const BufferState& buffer);
// Where this device finds the buffer, whether it may touch it or not; 0: it has no address there.
std::uint64_t buffer_address(const DeviceState& device, const BufferState& buffer);

// A lost device, other than this one, that owns memory of the buffer, or of the range: what lies there is not what the
// program computed, and no GPU is given it (R2). nullptr: none. By the books alone; the CPU device, which opens views,
// is never told of one.
std::shared_ptr<const DeviceState> lost_owner(const DeviceState& device, const BufferState& buffer);
std::shared_ptr<const DeviceState> lost_owner(const DeviceState& device, const Provenance& memory,
                                              std::uint64_t address, std::uint64_t bytes);
inline constexpr std::string_view owner_is_lost =
    "the device that owns it reported a fault from which it does not recover in this process";
inline constexpr std::string_view instead_of_lost =
    "take what the host can still read (read_on_host, salvage_on_host) into a buffer of a device that works";

// "managed memory of H200" for messages.
std::string described(const Provenance& memory);
std::string described(const BufferState& buffer);

}  // namespace isthmus::inline v0::detail
