// SPDX-License-Identifier: Apache-2.0
// Slabs are mapped, bound, touched, verified and registered as a whole. Pieces are cut from them best fit first, and
// adjacent free ranges merge. Why this is no memory_resource of the standard library: docs/adr/0030.
#include "host_slabs.hpp"

#include "process.hpp"
#include "provenance_errors.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

using platform::os::HostPages;

// The alignment that cuMemAlloc guarantees. It is also two lines of 128 bytes, so that flags of the CPU and of the GPU
// in two pieces share no line.
constexpr std::size_t granule = 256;
constexpr std::size_t max_bytes = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());
constexpr int every_node = -1;

struct Slab {
    HostPages pages;
    std::uint64_t device_address = 0;
    bool registered = false;
    bool single = false;     // made for one large piece, and freed with it
    int group = every_node;  // pieces for one node come from slabs of that node
    std::size_t pieces = 0;  // outstanding
    std::shared_ptr<const PlacementReport> report;
    std::map<std::uintptr_t, std::size_t> free;  // first address → bytes; no two ranges are adjacent

    std::uintptr_t begin() const { return reinterpret_cast<std::uintptr_t>(pages.data()); }
    bool contains(std::uintptr_t address) const { return address >= begin() && address - begin() < pages.bytes(); }
};

// Ordered by group, then size: the first range of a group that is large enough is the best fit.
struct FreeRange {
    int group = every_node;
    std::size_t bytes = 0;
    std::uintptr_t begin = 0;
    Slab* slab = nullptr;
    bool operator<(const FreeRange& other) const {
        return std::tie(group, bytes, begin) < std::tie(other.group, other.bytes, other.begin);
    }
};

struct Out {
    Slab* slab = nullptr;
    std::size_t bytes = 0;
};

struct Amount {
    std::size_t bytes = 0;      // a multiple of the granule
    std::size_t alignment = 0;  // at least a granule
    // A free range of this size holds the piece wherever the range begins.
    std::size_t surely() const { return bytes + alignment - granule; }
};

std::size_t round_up(std::size_t bytes, std::size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

Result<Amount> amount_of(std::size_t bytes, std::size_t alignment) {
    if (bytes == 0) return make_error<errors::host_piece_of_no_bytes>(bytes, alignment);
    if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
        return make_error<errors::host_piece_alignment>(bytes, alignment);
    }
    if (bytes > max_bytes / 2 || alignment > max_bytes / 2) {
        return make_error<errors::host_piece_too_large>(bytes, alignment);
    }
    return Amount{round_up(bytes, granule), std::max(alignment, granule)};
}

std::uintptr_t align_up(std::uintptr_t address, std::size_t alignment) {
    return (address + alignment - 1) & ~(static_cast<std::uintptr_t>(alignment) - 1);
}

}  // namespace

struct HostSlabs::Books {
    explicit Books(SlabOptions given) : options(std::move(given)) {
        const std::size_t whole = std::min(std::max<std::size_t>(options.slab_bytes, 1), max_bytes / 2);
        options.slab_bytes = round_up(whole, page_bytes());
    }

    // The unit to which HostPages rounds, so that no part of a slab is unused.
    std::size_t page_bytes() const {
        const bool huge = options.placement.page_size == PageSize::huge && options.machine.huge_page_bytes > 0;
        return huge ? options.machine.huge_page_bytes : options.calls->page_size_bytes();
    }
    Result<std::unique_ptr<Slab>> make(const Amount& amount, int group) const;
    bool give_back(Slab& slab) const;  // false: it is still registered
    int group_of_caller() const;

    // With `mutex` held:
    void add(std::unique_ptr<Slab> slab);
    std::unique_ptr<Slab> remove(Slab& slab);
    void insert_free(Slab& slab, std::uintptr_t begin, std::size_t bytes);
    void erase_free(Slab& slab, std::map<std::uintptr_t, std::size_t>::iterator range);
    std::optional<SlabPiece> take(const Amount& amount, int group);
    SlabPiece cut(Slab& slab, std::map<std::uintptr_t, std::size_t>::iterator range, const Amount& amount);
    void join(Slab& slab, std::uintptr_t begin, std::size_t bytes);
    Error refuse_release(std::uintptr_t address) const;

    SlabOptions options;
    std::mutex growing;        // held to grow, so that waiting threads find the new slab; taken before `mutex`
    mutable std::mutex mutex;  // guards everything below; no system call and no callback while it is held
    std::map<std::uintptr_t, std::unique_ptr<Slab>> slabs;
    std::set<FreeRange> by_size;  // of all slabs
    std::unordered_map<std::uintptr_t, Out> out;
    std::size_t reserved_bytes = 0;
    std::size_t used_bytes = 0;
};

// Slabs outlive the thread that made them. Locality::local therefore becomes the number of the node on which the thread
// runs now.
int HostSlabs::Books::group_of_caller() const {
    const bool by_thread = options.placement.locality == Locality::local && options.machine.numa_nodes.size() > 1;
    return by_thread ? options.calls->current_node() : every_node;
}

Result<std::unique_ptr<Slab>> HostSlabs::Books::make(const Amount& amount, int group) const {
    HostPlacement placement = options.placement;
    if (group >= 0) {
        placement.locality = Locality::node;
        placement.node = group;
    }
    const std::size_t page = page_bytes();
    auto slab = std::make_unique<Slab>();
    slab->group = group;
    slab->single = amount.surely() > options.slab_bytes;
    // A slab begins at a page, so smaller alignments need no extra bytes.
    const std::size_t needed = amount.alignment <= options.calls->page_size_bytes() ? amount.bytes : amount.surely();
    const std::size_t bytes = slab->single ? needed : options.slab_bytes;
    Result<HostPages> pages = HostPages::allocate(round_up(bytes, page), placement, options.near_node, options.machine,
                                                  *options.calls, options.touchers);
    if (!pages) return std::move(pages).error();
    slab->pages = std::move(pages).value();
    if (options.registration.add) {
        Result<std::uint64_t> address = options.registration.add(slab->pages.data(), slab->pages.bytes());
        if (!address) return std::move(address).error();
        slab->device_address = *address;
        slab->registered = true;
        // Registering may move pages, and where the GPU uses the CPU's page tables it does not lock them.
        if (Result<void> still = slab->pages.verify_again(); !still) {
            if (!give_back(*slab)) process::keep_until_exit(std::shared_ptr<Slab>(std::move(slab)));
            return std::move(still).error();
        }
    }
    slab->report = std::make_shared<const PlacementReport>(slab->pages.report());
    return slab;
}

bool HostSlabs::Books::give_back(Slab& slab) const {
    if (slab.registered && options.registration.remove && !options.registration.remove(slab.pages.data())) return false;
    slab.registered = false;
    slab.pages = HostPages();
    return true;
}

void HostSlabs::Books::insert_free(Slab& slab, std::uintptr_t begin, std::size_t bytes) {
    slab.free.emplace(begin, bytes);
    by_size.insert({slab.group, bytes, begin, &slab});
}

void HostSlabs::Books::erase_free(Slab& slab, std::map<std::uintptr_t, std::size_t>::iterator range) {
    by_size.erase({slab.group, range->second, range->first, &slab});
    slab.free.erase(range);
}

void HostSlabs::Books::add(std::unique_ptr<Slab> slab) {
    Slab& added = *slab;
    reserved_bytes += added.pages.bytes();
    slabs.emplace(added.begin(), std::move(slab));
    insert_free(added, added.begin(), added.pages.bytes());
}

// Only for a slab without pieces.
std::unique_ptr<Slab> HostSlabs::Books::remove(Slab& slab) {
    reserved_bytes -= slab.pages.bytes();
    while (!slab.free.empty()) erase_free(slab, slab.free.begin());
    auto node = slabs.extract(slab.begin());
    return std::move(node.mapped());
}

SlabPiece HostSlabs::Books::cut(Slab& slab, std::map<std::uintptr_t, std::size_t>::iterator range,
                                const Amount& amount) {
    const auto [begin, bytes] = *range;
    const std::uintptr_t data = align_up(begin, amount.alignment);
    erase_free(slab, range);
    if (data != begin) insert_free(slab, begin, data - begin);
    const std::size_t rest = begin + bytes - data - amount.bytes;
    if (rest > 0) insert_free(slab, data + amount.bytes, rest);
    out.emplace(data, Out{&slab, amount.bytes});
    ++slab.pieces;
    used_bytes += amount.bytes;
    const std::uint64_t device_address = slab.registered ? slab.device_address + (data - slab.begin()) : 0;
    return SlabPiece{reinterpret_cast<void*>(data), device_address, amount.bytes, slab.report};
}

// Tries the smallest range of at least the piece's size, whose beginning may not be aligned, and then a range that
// holds the piece wherever the range begins.
std::optional<SlabPiece> HostSlabs::Books::take(const Amount& amount, int group) {
    for (const std::size_t least : {amount.bytes, amount.surely()}) {
        const auto found = by_size.lower_bound({group, least, 0, nullptr});
        if (found == by_size.end() || found->group != group) continue;
        Slab& slab = *found->slab;
        const auto range = slab.free.find(found->begin);
        const std::uintptr_t lost = align_up(range->first, amount.alignment) - range->first;
        if (lost + amount.bytes <= range->second) return cut(slab, range, amount);
    }
    return std::nullopt;
}

void HostSlabs::Books::join(Slab& slab, std::uintptr_t begin, std::size_t bytes) {
    auto behind = slab.free.lower_bound(begin);
    if (behind != slab.free.begin()) {
        const auto before = std::prev(behind);
        if (before->first + before->second == begin) {
            begin = before->first;
            bytes += before->second;
            erase_free(slab, before);
        }
    }
    if (behind != slab.free.end() && begin + bytes == behind->first) {
        bytes += behind->second;
        erase_free(slab, behind);
    }
    insert_free(slab, begin, bytes);
}

// No valid release reaches this function, so it may look at each piece.
Error HostSlabs::Books::refuse_release(std::uintptr_t address) const {
    for (const auto& [begin, piece] : out) {
        if (address > begin && address - begin < piece.bytes) {
            return make_error<errors::releasing_inside_host_piece>(address - begin);
        }
    }
    const bool ours =
        std::any_of(slabs.begin(), slabs.end(), [&](const auto& entry) { return entry.second->contains(address); });
    if (ours) return make_error<errors::releasing_host_piece_again>();
    return make_error<errors::releasing_other_host_memory>();
}

HostSlabs::HostSlabs(SlabOptions options) : books_(std::make_unique<Books>(std::move(options))) {}

HostSlabs::~HostSlabs() {
    for (auto& [begin, slab] : books_->slabs) {
        // The device may still access the slab, so its addresses must not be reused.
        if (!books_->give_back(*slab)) process::keep_until_exit(std::shared_ptr<Slab>(std::move(slab)));
    }
}

Result<SlabPiece> HostSlabs::allocate(std::size_t bytes, std::size_t alignment) {
    const Result<Amount> amount = amount_of(bytes, alignment);
    if (!amount) return amount.error();
    const int group = books_->group_of_caller();
    const auto take = [&] {
        const std::lock_guard lock(books_->mutex);
        return books_->take(*amount, group);
    };
    if (std::optional<SlabPiece> piece = take()) return *std::move(piece);
    const std::lock_guard growing(books_->growing);
    // Another thread may have made a slab meanwhile.
    if (std::optional<SlabPiece> piece = take()) return *std::move(piece);
    Result<std::unique_ptr<Slab>> slab = books_->make(*amount, group);
    if (!slab) return std::move(slab).error();
    const std::lock_guard lock(books_->mutex);
    Slab& made = **slab;
    books_->add(std::move(slab).value());
    return books_->cut(made, made.free.begin(), *amount);
}

Result<void> HostSlabs::release(void* data) {
    if (!data) return {};
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    std::unique_ptr<Slab> unused;
    {
        const std::lock_guard lock(books_->mutex);
        const auto found = books_->out.find(address);
        if (found == books_->out.end()) return books_->refuse_release(address);
        const Out piece = found->second;
        books_->out.erase(found);
        books_->used_bytes -= piece.bytes;
        --piece.slab->pieces;
        books_->join(*piece.slab, address, piece.bytes);
        if (piece.slab->single && piece.slab->pieces == 0) unused = books_->remove(*piece.slab);
    }
    if (!unused || books_->give_back(*unused)) return {};
    const std::lock_guard lock(books_->mutex);
    books_->add(std::move(unused));  // still registered: kept for later pieces, and trim() tries again
    return {};
}

std::size_t HostSlabs::reserved_bytes() const {
    const std::lock_guard lock(books_->mutex);
    return books_->reserved_bytes;
}

std::size_t HostSlabs::used_bytes() const {
    const std::lock_guard lock(books_->mutex);
    return books_->used_bytes;
}

std::size_t HostSlabs::trim() {
    std::vector<std::unique_ptr<Slab>> unused;
    {
        const std::lock_guard lock(books_->mutex);
        for (auto next = books_->slabs.begin(); next != books_->slabs.end();) {
            Slab& slab = *next->second;
            ++next;
            if (slab.pieces == 0) unused.push_back(books_->remove(slab));
        }
    }
    std::size_t given_back = 0;
    for (std::unique_ptr<Slab>& slab : unused) {
        const std::size_t bytes = slab->pages.bytes();
        if (books_->give_back(*slab)) {
            given_back += bytes;
            continue;
        }
        const std::lock_guard lock(books_->mutex);
        books_->add(std::move(slab));
    }
    return given_back;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
