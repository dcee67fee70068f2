// SPDX-License-Identifier: Apache-2.0
// PieceCache: shelves by kind and size class.
#include "piece_cache.hpp"

#include "alignment_rules.hpp"
#include "growth_rules.hpp"
#include "process.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define ISTHMUS_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ISTHMUS_ADDRESS_SANITIZER 1
#endif
#endif
#ifdef ISTHMUS_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// Of the thread, whichever device it asks: no answer but how much more is asked for depends on it.
constinit thread_local rules::Growth growth [[gnu::tls_model("initial-exec")]];

// A piece is searched for among so many that were released last in its class.
constexpr std::size_t most_looks = 8;

#ifdef ISTHMUS_ADDRESS_SANITIZER
void* host_of(const Piece& piece) noexcept {
    return piece.host_part() != nullptr ? piece.block.host : piece.allocation().host;
}
// With what lies between its end and the next multiple of its alignment, which is nobody's.
std::size_t bytes_for_sanitizer(const Piece& piece) noexcept {
    constexpr std::size_t unit = rules::driver_alignment;
    return (piece.bytes() + unit - 1) / unit * unit;
}
#endif

std::uint64_t device_of(const Piece& piece) noexcept {
    return piece.host_part() != nullptr ? piece.block.device : piece.allocation().device;
}

bool fits(const Piece& piece, const HostPlacement& placement, std::size_t bytes, std::size_t alignment,
          rules::Reach reach) noexcept {
    if (piece.slab() != nullptr) return rules::same_placement(piece.slab()->asked, placement);
    if (piece.bytes() < bytes || (reach == rules::Reach::near && !rules::serves(piece.bytes(), bytes))) return false;
    const HostPart* const part = piece.host_part();
    if (part == nullptr) return true;
    return rules::same_placement(part->asked, placement) &&
           reinterpret_cast<std::uintptr_t>(piece.block.host) % alignment == 0;
}

// The shelves of places are behind the others: a place serves requests of its size alone.
std::size_t shelf_of_place(std::size_t place_bytes) noexcept {
    return std::size_t{rules::size_class_count} + static_cast<std::size_t>(rules::place_class(place_bytes));
}

std::size_t shelf_of(const Piece& piece) noexcept {
    return piece.slab() != nullptr ? shelf_of_place(piece.bytes())
                                   : static_cast<std::size_t>(rules::size_class(piece.bytes()));
}

// A place was asked for as it is: its end is none that a smaller piece would save.
std::size_t counted_bytes(const Piece& piece, std::size_t asked_bytes) noexcept {
    return piece.slab() != nullptr ? piece.bytes() : asked_bytes;
}

bool is_of_driver(const Piece& piece) noexcept {
    if (const HostPart* const part = piece.host_part()) return part->registered;
    const MemoryKind kind = piece.allocation().kind;
    return kind != MemoryKind::host && kind != MemoryKind::host_numa;
}

}  // namespace

// What leaves a lane may be older than the last ones here.
void PieceCache::Shelf::add(const Kept& kept) {
    make_room(count_ + 1);
    std::size_t at = count_++;
    for (; at > 0 && (*this)[at - 1].release > kept.release; --at) ring_[place(at)] = ring_[place(at - 1)];
    ring_[place(at)] = kept;
}

PieceCache::Kept PieceCache::Shelf::take(std::size_t at) noexcept {
    const Kept kept = (*this)[at];
    if (at < count_ / 2) {
        for (; at > 0; --at) ring_[place(at)] = ring_[place(at - 1)];
        first_ = place(1);
    } else {
        for (; at + 1 < count_; ++at) ring_[place(at)] = ring_[place(at + 1)];
    }
    --count_;
    return kept;
}

// Not written before it is used: a shelf may have room for more than it ever holds. Grows by an eighth, because each
// piece that is handed out has a place here.
void PieceCache::Shelf::make_room(std::size_t count) {
    if (count <= room_) return;
    const std::size_t room = std::max(count, room_ + room_ / 8 + 1);
    auto larger = std::make_unique_for_overwrite<Kept[]>(room);
    for (std::size_t at = 0; at < count_; ++at) larger[at] = (*this)[at];
    ring_ = std::move(larger);
    room_ = room;
    first_ = 0;
}

Piece* PieceCache::take(MemoryKind kind, const HostPlacement& placement, std::size_t bytes, std::size_t alignment,
                        Behind* behind, std::size_t place_bytes, rules::Reach reach) {
    const int of_kind = rules::kept_kind(kind);
    if (of_kind < 0 || !keeps_anything()) return nullptr;
    const Asked asked{placement, bytes, alignment, place_bytes, reach};
    Piece* found = nullptr;
    platform::StreamHandle order = platform::StreamHandle::none;
    {
        const std::lock_guard lock(mutex_);
        found = find(static_cast<std::size_t>(of_kind), asked, behind, order);
    }
    if (found != nullptr) open(*found, bytes, order);
    return found;
}

Piece* PieceCache::exchange(const Left& left, std::size_t bytes, Behind* behind, std::vector<Piece*>& surplus,
                            std::size_t place_bytes) {
    Piece& piece = left.piece;
    const HostPlacement placement = piece.slab() != nullptr        ? piece.slab()->asked
                                    : piece.host_part() != nullptr ? piece.host_part()->asked
                                                                   : HostPlacement();
    const Asked asked{placement, bytes, rules::driver_alignment, place_bytes, rules::Reach::any};
    Piece* found = nullptr;
    platform::StreamHandle order = platform::StreamHandle::none;
    {
        const std::lock_guard lock(mutex_);
        releases_ += left.untold;
        if (place_bytes == 0 && loosen(piece, bytes)) {
            found = &piece;
            order = order_of(behind);
            ++taken_;
        } else {
            shelve(piece, behind, left.age);
            found = find(kind_of(piece), asked, behind, order);
            take_out_surplus(surplus);
        }
    }
    if (found != nullptr) open(*found, bytes, order);
    return found;
}

// Of a piece that left a lane, and counts as handed out. It stays so.
bool PieceCache::loosen(Piece& piece, std::size_t bytes) noexcept {
    if (piece.slab() != nullptr || piece.bytes() < bytes || piece.is_loose() || !among_threads()) return false;
    rules::AmongThreads thread = thread_among_others();
    thread.owners_bytes -= std::min<std::uint64_t>(thread.owners_bytes, piece.asked_bytes());
    if (!rules::may_be_loose(now(), thread, piece.bytes())) return false;
    handed_out_.bytes -= piece.bytes();
    handed_out_.asked_bytes -= piece.asked_bytes();
    piece.set_asked_bytes(bytes);
    count_loose(piece);
    return true;
}

namespace {

// The largest request of the thread, and those of all others. `all`: the sum.
struct Largest {
    std::uint64_t own;
    std::uint64_t others;
    Largest(const PieceCache::InLane& lane, std::uint64_t all) noexcept
        : own(lane.largest.load(std::memory_order_relaxed)), others(all - std::min(all, own)) {}
};

}  // namespace

bool PieceCache::among_threads() const noexcept {
    const Largest largest(in_lanes[lane_of_thread()], threads_bytes_.load(std::memory_order_relaxed));
    return rules::among_threads(largest.own, largest.others);
}

Piece* PieceCache::find(std::size_t of_kind, const Asked& asked, Behind* behind, platform::StreamHandle& order) {
    Shelves& of_all = shelves_[of_kind];
    Shelves* const own = behind != nullptr && behind->pieces_ != 0 ? &behind->shelves_ : nullptr;
    bool of_own = false;
    const auto look = [&](auto take) {
        Piece* found = own != nullptr ? take(*own) : nullptr;
        of_own = found != nullptr;
        return found != nullptr ? found : take(of_all);
    };
    const auto sized = [&](std::size_t least, std::size_t most) {
        return look([&](Shelves& shelves) { return take_sized(shelves, asked, {least, most}); });
    };
    // A request that a slab serves needs no piece that would lie idle.
    const bool any = asked.reach == rules::Reach::any && asked.place_bytes == 0;
    const rules::HandedOut now = this->now();
    const rules::AmongThreads thread = any && among_threads() ? thread_among_others() : rules::AmongThreads();
    const bool may_be_loose = any && rules::may_be_loose(now, thread, asked.bytes);
    Piece* found = nullptr;
    // First what serves all that the thread asked for so far: near ones would do so by turns, and would not age.
    if (may_be_loose)
        found = sized(std::max<std::size_t>(asked.bytes, thread.largest_bytes), rules::most_loose(thread));
    bool loose = found != nullptr;
    if (found == nullptr) found = look([&](Shelves& shelves) { return take_near(shelves, asked); });
    if (found == nullptr && any) {
        const bool alone = rules::may_serve_alone(now, asked_by_owners(handed_out_), crowded_);
        loose = !alone && may_be_loose;
        if (alone) found = sized(asked.bytes, std::numeric_limits<std::size_t>::max());
        if (loose) found = sized(asked.bytes, rules::most_loose(thread));
    }
    if (found == nullptr) return nullptr;
    if (of_own) {
        order = behind->handle();
        --behind->pieces_;
    }
    count(*found, asked.bytes, loose);
    ++taken_;
    if (behind != nullptr) {  // its release keeps it there, and takes nothing from the heap
        begin_shelves(*behind);
        make_room(behind->shelves_, *found);
    }
    return found;
}

Piece* PieceCache::take_near(Shelves& shelves, const Asked& asked) {
    if (shelves.empty()) return nullptr;
    const auto take = [&](std::size_t at) { return take_from(shelves[at], asked); };
    if (asked.place_bytes != 0) {
        if (Piece* const found = take(shelf_of_place(asked.place_bytes))) return found;
    }
    const int first = rules::size_class(asked.bytes);
    const int last = std::min(first + rules::classes_above, rules::size_class_count - 1);
    for (int at = first; at <= last; ++at) {
        if (Piece* const found = take(static_cast<std::size_t>(at))) return found;
    }
    return nullptr;
}

// The smallest of these sizes, however much of it is unused.
Piece* PieceCache::take_sized(Shelves& shelves, const Asked& asked, const Sizes& sizes) {
    if (shelves.empty()) return nullptr;
    for (int at = rules::size_class(sizes.least); at <= rules::size_class(sizes.most); ++at) {
        if (Piece* const found = take_from(shelves[static_cast<std::size_t>(at)], asked, &sizes)) return found;
    }
    return nullptr;
}

// Without sizes: near ones within the bound of all unused ends.
Piece* PieceCache::take_from(Shelf& shelf, const Asked& asked, const Sizes* sizes) {
    const rules::Reach reach = sizes != nullptr ? rules::Reach::any : rules::Reach::near;
    const std::size_t last = shelf.size() - std::min(shelf.size(), most_looks);
    for (std::size_t at = shelf.size(); at > last; --at) {
        const Piece& piece = *shelf[at - 1].piece;
        if (!fits(piece, asked.placement, asked.bytes, asked.alignment, reach)) continue;
        const std::size_t bytes = piece.bytes();
        const bool serves = sizes != nullptr ? bytes >= sizes->least && bytes <= sizes->most
                                             : rules::may_leave_unused(now(), bytes, counted_bytes(piece, asked.bytes));
        if (serves) return take_at(shelf, at - 1);
    }
    return nullptr;
}

Piece* PieceCache::take_at(Shelf& shelf, std::size_t at) {
    Piece* const piece = shelf.take(at).piece;
    set_bytes(bytes_ - piece->bytes());
    --pieces_;
    return piece;
}

void PieceCache::put(Shelves& shelves, const Kept& kept) {
    if (shelves.empty()) shelves.resize(shelf_count);
    shelves[shelf_of(*kept.piece)].add(kept);
}

void PieceCache::set_bytes(std::uint64_t bytes) noexcept {
    beside_bytes_.fetch_add(bytes - bytes_, std::memory_order_relaxed);
    bytes_ = bytes;
}

std::uint64_t PieceCache::sum(const std::array<InLane, rules::lane_count>& lanes,
                              std::atomic<std::uint64_t> InLane::*member) noexcept {
    std::uint64_t all = 0;
    for (const InLane& lane : lanes) all += (lane.*member).load(std::memory_order_relaxed);
    return all;
}

std::uint64_t PieceCache::asked_by_owners(const rules::HandedOut& counted) const noexcept {
    return counted.asked_bytes - std::min(counted.asked_bytes, sum(in_lanes, &InLane::asked_bytes));
}

rules::HandedOut PieceCache::now() const noexcept {
    rules::HandedOut now = handed_out_;
    const Largest largest(in_lanes[lane_of_thread()], threads_bytes_.load(std::memory_order_relaxed));
    now.threads_bytes = rules::peak_of_threads(largest.own, largest.others, living_bytes());
    return now;
}

rules::AmongThreads PieceCache::thread_among_others() const noexcept {
    const std::size_t lane = lane_of_thread();
    const Largest largest(in_lanes[lane], threads_bytes_.load(std::memory_order_relaxed));
    rules::AmongThreads thread;
    thread.largest_bytes = largest.own;
    thread.others_bytes = largest.others;
    thread.owners_bytes = asked_by_owners(handed_out_);
    thread.living_bytes = living_bytes();
    thread.has_loose = has_loose_[lane];
    thread.crowded = crowded_lanes_[lane];
    return thread;
}

// No more than is handed out, with what rests in lanes: it may have been released since.
std::uint64_t PieceCache::living_bytes() const noexcept {
    return std::min(living_bytes_, handed_out_.asked_bytes);
}

void PieceCache::note_asked() noexcept {
    least_bytes_ = std::min(least_bytes_, asked_by_owners(handed_out_));
    if (++asks_ < rules::asks_to_know_living) return;
    living_bytes_ = std::exchange(least_bytes_, ~std::uint64_t{0});
    asks_ = 0;
}

// Two exchanges, so that the sum is right whoever comes in between.
void PieceCache::note_largest(InLane& lane, std::uint64_t bytes) noexcept {
    const std::uint64_t before = lane.largest.exchange(bytes, std::memory_order_relaxed);
    threads_bytes_.fetch_add(bytes - before, std::memory_order_relaxed);
}

// What lies in lanes counts as handed out, and so is no part of it, but of the limit.
std::uint64_t PieceCache::most_kept(const rules::HandedOut& now) const noexcept {
    return rules::most_kept(now, limit_bytes_ - std::min(limit_bytes_, sum(in_lanes, &InLane::bytes)));
}

// Within what the shares of lanes leave beside what is large in them, the lanes of all threads are not looked at.
void PieceCache::take_out_surplus(std::vector<Piece*>& out) {
    const std::uint64_t most = rules::most_beside_shares(limit_bytes_);
    const std::uint64_t large_bytes = beside_bytes() - bytes_;
    if (bytes_ <= rules::most_kept(now(), most - std::min(most, large_bytes))) return;
    take_out_until(most_kept(now()), out);
}

std::vector<Piece*> PieceCache::keep(Piece& piece, Behind* behind) {
    std::vector<Piece*> out;
    close(piece, order_of(behind));
    const std::lock_guard lock(mutex_);
    shelve(piece, behind);
    take_out_surplus(out);
    return out;
}

std::vector<Piece*> PieceCache::keep_from_lane(Piece& piece, Behind* behind, std::optional<std::uint64_t> age,
                                               bool surplus) {
    std::vector<Piece*> out;
    const std::lock_guard lock(mutex_);
    shelve(piece, behind, age);
    if (surplus) take_out_surplus(out);
    return out;
}

std::vector<Piece*> PieceCache::surplus() {
    std::vector<Piece*> out;
    const std::lock_guard lock(mutex_);
    take_out_surplus(out);
    return out;
}

void PieceCache::take_over(Piece& loose) {
    const std::size_t lane = lane_of_thread();
    const std::lock_guard lock(mutex_);
    const std::size_t asked_bytes = loose.asked_bytes();
    uncount(loose);
    count(loose, asked_bytes, !has_loose_[lane]);
}

std::size_t PieceCache::kind_of(const Piece& piece) noexcept {
    const HostPart* const part = piece.host_part();
    const MemoryKind kind = part == nullptr    ? piece.allocation().kind
                            : part->registered ? MemoryKind::registered
                                               : MemoryKind::host;
    return static_cast<std::size_t>(rules::kept_kind(kind));
}

void PieceCache::begin_shelves(Behind& behind) {
    if (!behind.shelves_.empty()) return;
    behind.shelves_.resize(shelf_count);
    behinds_.push_back(&behind);
}

// For all pieces of the class that are handed out: any of them may be kept here.
void PieceCache::make_room(Shelves& shelves, const Piece& piece) const {
    if (shelves.empty()) shelves.resize(shelf_count);
    const std::size_t at = shelf_of(piece);
    Shelf& shelf = shelves[at];
    shelf.make_room(shelf.size() + out_[kind_of(piece)][at]);
}

void PieceCache::released_elsewhere(std::uint64_t releases) {
    const std::lock_guard lock(mutex_);
    releases_ += releases;
}

void PieceCache::shelve(Piece& piece, Behind* behind, std::optional<std::uint64_t> age) {
    uncount(piece);
    set_bytes(bytes_ + piece.bytes());
    ++pieces_;
    if (!age) ++releases_;
    const Kept kept{&piece, releases_ - std::min(age.value_or(0), releases_)};
    if (behind != nullptr) {
        begin_shelves(*behind);
        put(behind->shelves_, kept);
        ++behind->pieces_;
    } else {
        put(shelves_[kind_of(piece)], kept);
    }
}

std::vector<Piece*> PieceCache::ended(Behind& behind, bool work_has_ended) {
    std::vector<Piece*> out;
    const std::lock_guard lock(mutex_);
    for (Shelf& shelf : behind.shelves_) {
        while (work_has_ended && !shelf.empty()) {
            const Kept kept = shelf.take(0);
            put(shelves_[static_cast<std::size_t>(rules::kept_kind(kept.piece->allocation().kind))], kept);
        }
        while (!shelf.empty()) give_out(shelf, &behind, nullptr, out);
    }
    behind.pieces_ = 0;
    std::erase(behinds_, &behind);
    return out;
}

// The largest request of the thread is about to be this one, if that is larger.
std::vector<Piece*> PieceCache::make_way(std::size_t bytes, std::size_t headroom, Behind* behind) {
    std::vector<Piece*> out;
    const std::size_t lane = lane_of_thread();
    const std::lock_guard lock(mutex_);
    ++missed_;
    note_asked();
    rules::HandedOut then = now();
    crowded_ = crowded_ || !rules::ends_are_small(then);
    if (has_loose_[lane]) crowded_lanes_.set(lane);
    const rules::AmongThreads thread = thread_among_others();
    const bool for_all = bytes + headroom >= thread.largest_bytes;
    const bool loose = for_all && rules::may_be_loose(then, thread, bytes + headroom);
    then.bytes += bytes + headroom;
    then.asked_bytes += bytes;
    then.peak_bytes = std::max(then.peak_bytes, asked_by_owners(then));
    const bool largest_so_far = bytes > thread.largest_bytes && bytes <= rules::lane_bytes(limit_bytes_);
    if (largest_so_far) then.threads_bytes += bytes - thread.largest_bytes;
    if (loose && behind != nullptr) take_out_of(*behind, most_kept(then), out);
    take_out_until(most_kept(then), out);
    return out;
}

void PieceCache::handed_out(Piece& piece, std::size_t bytes, Behind* behind) {
    const bool with_headroom = piece.slab() == nullptr && piece.host_part() == nullptr && piece.bytes() > bytes;
    if (piece.slab() != nullptr) {
        open(piece, bytes, platform::StreamHandle::none);
    } else {
        bound(piece, bytes);
        if (with_headroom) memory_.lend(device_of(piece), bytes, order_of(behind));  // the driver does not know of it
    }
    const std::lock_guard lock(mutex_);
    count(piece, bytes, with_headroom && rules::may_be_loose(now(), thread_among_others(), piece.bytes()));
    make_room(shelves_[kind_of(piece)], piece);
    if (behind == nullptr) return;
    begin_shelves(*behind);
    make_room(behind->shelves_, piece);
}

Piece* PieceCache::shed(MemoryKind kind) {
    const int of_kind = rules::kept_kind(kind);
    if (of_kind < 0) return nullptr;
    std::vector<Piece*> out;
    const std::lock_guard lock(mutex_);
    Oldest first;
    consider(shelves_[static_cast<std::size_t>(of_kind)], nullptr, first);
    if (first.shelf == nullptr) return nullptr;
    give_out(*first.shelf, nullptr, nullptr, out);
    return out.back();
}

std::uint64_t PieceCache::most_reserved(std::size_t bytes) const {
    const std::lock_guard lock(mutex_);
    rules::HandedOut then = now();
    then.asked_bytes += bytes;
    then.peak_bytes = std::max(then.peak_bytes, asked_by_owners(then));
    return rules::most_reserved(then);
}

// Where the new piece may be the thread's loose one, it is large enough for all that the thread asked for so far:
// otherwise the driver would be asked for each larger request on the way there.
std::size_t PieceCache::headroom(std::size_t bytes) const {
    const std::lock_guard lock(mutex_);
    const rules::HandedOut now = this->now();
    const rules::AmongThreads thread = thread_among_others();
    growth = rules::grown(growth, bytes);
    const std::size_t ordinary = rules::grows(growth) ? rules::headroom(now, bytes) : 0;
    const auto largest = static_cast<std::size_t>(thread.largest_bytes);
    return largest > bytes + ordinary && rules::may_be_loose(now, thread, largest) ? largest - bytes : ordinary;
}

void PieceCache::returned(Piece& piece) {
    if (piece.asked_bytes() == 0) return;
    if (piece.slab() == nullptr) {
        open_all(piece, platform::StreamHandle::none);
    } else if (piece.unused) {
        close(piece, platform::StreamHandle::none);
    }
    const std::lock_guard lock(mutex_);
    uncount(piece);
}

void PieceCache::count_loose(Piece& piece) noexcept {
    const std::size_t lane = lane_of_thread();
    piece.own()->loose_of = static_cast<std::uint8_t>(1 + lane);
    has_loose_.set(lane);
    handed_out_.loose_bytes += piece.bytes();
}

void PieceCache::count(Piece& piece, std::size_t bytes, bool loose) noexcept {
    piece.set_asked_bytes(bytes);
    ++out_[kind_of(piece)][shelf_of(piece)];
    if (loose) return count_loose(piece);
    handed_out_.bytes += piece.bytes();
    handed_out_.asked_bytes += counted_bytes(piece, bytes);
    if (handed_out_.asked_bytes <= handed_out_.peak_bytes) return;  // without a look at the lanes of all threads
    handed_out_.peak_bytes = std::max(handed_out_.peak_bytes, asked_by_owners(handed_out_));
}

void PieceCache::uncount(Piece& piece) noexcept {
    if (piece.asked_bytes() == 0) return;
    --out_[kind_of(piece)][shelf_of(piece)];
    if (piece.is_loose()) {
        has_loose_.reset(std::size_t{piece.own()->loose_of} - 1);
        handed_out_.loose_bytes -= piece.bytes();
        piece.own()->loose_of = 0;
        piece.set_asked_bytes(0);
        return;
    }
    handed_out_.bytes -= piece.bytes();
    handed_out_.asked_bytes -= counted_bytes(piece, piece.asked_bytes());
    piece.set_asked_bytes(0);
}

std::vector<Piece*> PieceCache::take_out(std::uint64_t keep_bytes) {
    std::vector<Piece*> out;
    const std::lock_guard lock(mutex_);
    handed_out_.peak_bytes = asked_by_owners(handed_out_);
    crowded_ = false;
    crowded_lanes_.reset();
    living_bytes_ = 0;
    least_bytes_ = ~std::uint64_t{0};
    asks_ = 0;
    for (InLane& lane : in_lanes) note_largest(lane, 0);
    take_out_until(keep_bytes, out);
    return out;
}

// Memory of the driver and of the system goes back as it came: all of it accessible.
void PieceCache::give_out(Shelf& shelf, Behind* behind, std::shared_ptr<StreamState> after, std::vector<Piece*>& out) {
    Piece* const piece = take_at(shelf, 0);
    if (piece->slab() == nullptr) open_all(*piece, order_of(behind));
    if (after) piece->make_own().after = std::move(after);
    out.push_back(piece);
    if (behind != nullptr) --behind->pieces_;
}

void PieceCache::consider(Shelves& shelves, Behind* behind, Oldest& first) const {
    for (Shelf& shelf : shelves) {
        if (shelf.empty()) continue;
        const rules::Waiting oldest{releases_ - shelf[0].release + 1, shelf[0].piece->bytes()};
        if (first.shelf == nullptr || rules::goes_before(oldest, first.waiting)) first = {&shelf, behind, oldest};
    }
}

// The shelf whose oldest piece goes first; of a stream that is at its end, none: that calls ended() next.
PieceCache::Oldest PieceCache::goes_first() {
    Oldest first;
    for (Shelves& shelves : shelves_) consider(shelves, nullptr, first);
    for (Behind* const behind : behinds_) {
        if (behind->pieces_ != 0 && !behind->stream_.expired()) consider(behind->shelves_, behind, first);
    }
    return first;
}

// The oldest of each size, from the largest on.
void PieceCache::take_out_of(Behind& behind, std::uint64_t keep_bytes, std::vector<Piece*>& out) {
    for (std::size_t at = behind.shelves_.size(); at-- > 0;) {
        Shelf& shelf = behind.shelves_[at];
        while (bytes_ > keep_bytes && !shelf.empty()) {
            std::shared_ptr<StreamState> after = behind.stream_.lock();
            if (!after) return;
            give_out(shelf, &behind, std::move(after), out);
        }
    }
}

void PieceCache::take_out_until(std::uint64_t keep_bytes, std::vector<Piece*>& out) {
    while (bytes_ > keep_bytes) {
        const Oldest first = goes_first();
        if (first.shelf == nullptr) return;
        std::shared_ptr<StreamState> after;
        if (first.behind != nullptr) after = first.behind->stream_.lock();
        if (first.behind != nullptr && !after) continue;  // its end has just begun
        give_out(*first.shelf, first.behind, std::move(after), out);
    }
}

std::vector<Piece*> PieceCache::take_out_kind(MemoryKind kind) {
    std::vector<Piece*> out;
    const int of_kind = rules::kept_kind(kind);
    if (of_kind < 0) return out;
    const std::lock_guard lock(mutex_);
    for (Shelf& shelf : shelves_[static_cast<std::size_t>(of_kind)]) {
        while (!shelf.empty()) give_out(shelf, nullptr, nullptr, out);
    }
    if (kind != MemoryKind::pool) return out;
    for (Behind* const behind : behinds_) {
        for (Shelf& shelf : behind->shelves_) {
            while (!shelf.empty()) {
                std::shared_ptr<StreamState> after = behind->stream_.lock();
                if (!after) break;
                give_out(shelf, behind, std::move(after), out);
            }
        }
    }
    return out;
}

std::uint64_t PieceCache::kept_bytes(MemoryKind kind) const {
    const int of_kind = rules::kept_kind(kind);
    if (of_kind < 0) return 0;
    const auto bytes_of = [](const Shelves& shelves) {
        std::uint64_t bytes = 0;
        for (const Shelf& shelf : shelves) {
            for (std::size_t at = 0; at < shelf.size(); ++at) bytes += shelf[at].piece->bytes();
        }
        return bytes;
    };
    const std::lock_guard lock(mutex_);
    std::uint64_t bytes = bytes_of(shelves_[static_cast<std::size_t>(of_kind)]);
    if (kind == MemoryKind::pool) {
        for (const Behind* const behind : behinds_) bytes += bytes_of(behind->shelves_);
        bytes += sum(in_lanes, &InLane::pool_bytes);
    }
    return bytes;
}

PieceCache::Usage PieceCache::usage() const {
    const std::lock_guard lock(mutex_);
    return {bytes_ + sum(in_lanes, &InLane::bytes) + small.idle_bytes(), pieces_ + sum(in_lanes, &InLane::pieces),
            taken_ + sum(in_lanes, &InLane::taken), missed_};
}

PieceCache::PieceCache(platform::Memory& memory, std::uint64_t limit_bytes)
    : memory_(memory),
      limit_bytes_(limit_bytes),
#ifdef ISTHMUS_ADDRESS_SANITIZER
      bounds_are_told_(true) {
}
#else
      bounds_are_told_(memory.lends()) {
}
#endif

void PieceCache::close(const Piece& piece, platform::StreamHandle order) const {
    if (piece.slab() != nullptr) {
        if (is_of_driver(piece)) memory_.lend_part(device_of(piece), piece.bytes(), 0);
    } else if (is_of_driver(piece)) {
        memory_.lend(device_of(piece), 0, order);
    }
#ifdef ISTHMUS_ADDRESS_SANITIZER
    if (void* const host = host_of(piece)) __asan_poison_memory_region(host, bytes_for_sanitizer(piece));
#endif
}

void PieceCache::open(const Piece& piece, std::size_t bytes, platform::StreamHandle order) const {
    if (piece.slab() != nullptr) {
        if (is_of_driver(piece)) memory_.lend_part(device_of(piece), piece.bytes(), bytes);
    } else if (is_of_driver(piece)) {
        memory_.lend(device_of(piece), bytes, order);
    }
#ifdef ISTHMUS_ADDRESS_SANITIZER
    if (void* const host = host_of(piece)) __asan_unpoison_memory_region(host, bytes);
#endif
}

void PieceCache::open_all(const Piece& piece, platform::StreamHandle order) const {
    open(piece, piece.bytes(), order);
#ifdef ISTHMUS_ADDRESS_SANITIZER
    if (void* const host = host_of(piece)) __asan_unpoison_memory_region(host, bytes_for_sanitizer(piece));
#endif
}

// The driver knows the bounds of what it has just made.
void PieceCache::bound([[maybe_unused]] const Piece& piece, [[maybe_unused]] std::size_t bytes) const {
#ifdef ISTHMUS_ADDRESS_SANITIZER
    if (void* const host = host_of(piece)) {
        __asan_poison_memory_region(static_cast<std::byte*>(host) + bytes, bytes_for_sanitizer(piece) - bytes);
    }
#endif
}

void PieceCache::divided(const Piece& slab) const {
    if (is_of_driver(slab)) memory_.lend_part(device_of(slab), slab.bytes(), 0);
#ifdef ISTHMUS_ADDRESS_SANITIZER
    if (void* const host = host_of(slab)) __asan_poison_memory_region(host, slab.bytes());
#endif
}

// A simulator needs no word: what is freed has no parts.
void PieceCache::joined([[maybe_unused]] const Piece& slab) const {
#ifdef ISTHMUS_ADDRESS_SANITIZER
    if (void* const host = host_of(slab)) __asan_unpoison_memory_region(host, slab.bytes());
#endif
}

void PieceCache::served_by_slab() {
    const std::lock_guard lock(mutex_);
    ++taken_;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
