// CopyBounce: a device's few pinned pieces that pageable memory is copied through, kept for reuse.
#pragma once

#include <isthmus/result.hpp>

#include <platform/driver.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace isthmus::inline v0::detail {

struct DeviceSession;
struct FenceEvent;

// Thread-safe. Whoever holds a piece may wait for the device, never for another piece: then somebody always comes on.
class CopyBounce {
public:
    static constexpr std::size_t piece_bytes = std::size_t{1} << 20;
    static constexpr std::size_t pieces = 4;

    struct Piece {
        std::size_t slot = 0;
        std::byte* data = nullptr;  // nullptr: none was free
    };
    // Waits for the oldest work that holds one, at most for the runtime's wait timeout. The pinned memory is made by
    // the first call. Small copies of one stream in a row share a piece: many of them fit in before one has to wait.
    Result<Piece> take(DeviceSession& device, std::uint64_t stream_id, std::size_t bytes);
    // … without waiting.
    Result<Piece> try_take(DeviceSession& device, std::uint64_t stream_id, std::size_t bytes);
    // Takes over a reference to the event behind which the piece is free; nullptr: it is free now.
    void give_back(DeviceSession& device, const Piece& piece, std::uint64_t stream_id, FenceEvent* event);
    // The device may still use the piece, and no event tells until when: it is not used again.
    void give_up(const Piece& piece);
    // Frees the pinned memory if nothing uses it; true: there was some.
    bool trim(DeviceSession& device);
    std::size_t memory_bytes() const;
    // When the device closes: everything was waited for.
    void close(DeviceSession& device);

private:
    struct Slot {
        std::size_t used = 0;  // bytes handed out of it since it was free
        std::uint64_t stream_id = 0;
        FenceEvent* event = nullptr;
        bool held = false;
        bool lost = false;
    };
    Result<void> make(DeviceSession& device);                         // expects mutex_ to be held
    platform::Status note_finished(DeviceSession& device, bool all);  // … asks the events until one is done, or all
    bool idle(const Slot& slot) const { return !slot.held && !slot.lost && slot.event == nullptr; }
    Piece hand_out(Slot& slot, std::uint64_t stream_id, std::size_t bytes);

    mutable std::mutex mutex_;
    platform::Allocation memory_;
    std::vector<platform::Allocation> abandoned_;  // all of their pieces were given up
    std::array<Slot, pieces> slots_;
};

}  // namespace isthmus::inline v0::detail
