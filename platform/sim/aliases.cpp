// SPDX-License-Identifier: Apache-2.0
// Copies aliased memory for a kernel, and merges the copies.
#include "aliases.hpp"

#include "memory_file.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace isthmus::sim {
namespace {

// Larger memory is not copied for a kernel: its aliases then are one memory from the beginning.
constexpr std::size_t max_bytes = std::size_t{64} << 20;
constexpr std::uint32_t concurrent_use = 4;  // ArgumentUse

struct View {  // struct of a view in a pack
    Address data;
    std::uint64_t size;
};

using Word = std::uint64_t;

// Other kernels may write other bytes of this memory at the same time. Words are therefore read and written in one
// piece, as on the hardware, and ThreadSanitizer does not check this code.
#define ISTHMUS_SIM_UNCHECKED __attribute__((no_sanitize("thread")))

ISTHMUS_SIM_UNCHECKED void copy_words(Word* to, const Word* from, std::size_t words) {
    for (std::size_t at = 0; at < words; ++at) {
        __atomic_store_n(to + at, __atomic_load_n(from + at, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
    }
}

// Writes the bytes that differ between `before` and `now` into the memory, one by one: other threads may write the
// bytes beside them.
ISTHMUS_SIM_UNCHECKED void take_changes(Word* memory, const Word* now, const Word* before, std::size_t words) {
    for (std::size_t at = 0; at < words; ++at) {
        if (now[at] == before[at]) continue;
        auto* const to = reinterpret_cast<unsigned char*>(memory + at);
        const auto* const from = reinterpret_cast<const unsigned char*>(now + at);
        const auto* const old = reinterpret_cast<const unsigned char*>(before + at);
        for (std::size_t byte = 0; byte < sizeof(Word); ++byte) {
            if (from[byte] != old[byte]) __atomic_store_n(to + byte, from[byte], __ATOMIC_RELAXED);
        }
    }
}

Word* map_words(void* at, std::size_t bytes, int file, std::size_t offset) {
    const int kind = (file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED) | (at != nullptr ? MAP_FIXED : 0);
    void* const pointer = ::mmap(at, bytes, PROT_READ | PROT_WRITE, kind, file, static_cast<off_t>(offset));
    return pointer == MAP_FAILED ? nullptr : static_cast<Word*>(pointer);
}

}  // namespace

struct AliasedMemory::Copy {
    std::size_t bytes = 0;
    Word* memory = nullptr;  // the memory itself
    Word* now = nullptr;     // the copy that the kernel uses
    Word* before = nullptr;  // its content at the last refresh
    bool is_memory = false;  // no longer a copy

    void refresh() const {
        copy_words(now, memory, bytes / sizeof(Word));
        copy_words(before, memory, bytes / sizeof(Word));
    }
    void merge() const {
        if (!is_memory) take_changes(memory, now, before, bytes / sizeof(Word));
    }
    // Maps the memory's pages at the kernel's address. It uses mremap() because the program may have closed the
    // memory's file.
    void become_memory() { is_memory = ::mremap(memory, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, now) != MAP_FAILED; }
};

struct AliasedMemory::Range {
    Address base = 0;
    std::size_t bytes = 0;
    std::byte* place = nullptr;
    bool holds(Address address) const { return address >= base && address - base < bytes; }
};

// Maps one range, whose mappings ascend without a gap.
bool AliasedMemory::build(const std::vector<Region*>& mappings, const std::vector<Region*>& copied) {
    Range range;
    range.base = mappings.front()->base;
    range.bytes = static_cast<std::size_t>(mappings.back()->base + mappings.back()->bytes - range.base);
    range.place = static_cast<std::byte*>(d_.protection.reserve_aligned(range.bytes, granularity_bytes, nullptr));
    if (!range.place) return false;
    ranges_.push_back(range);
    for (Region* const mapping : mappings) {
        std::byte* const at = range.place + (mapping->base - range.base);
        const int file = mapping->physical->file;
        if (std::find(copied.begin(), copied.end(), mapping) == copied.end()) {
            if (!map_words(at, mapping->bytes, file, memory_file_offset_bytes)) return false;
            continue;
        }
        Copy copy;
        copy.bytes = mapping->bytes;
        copy.now = map_words(at, copy.bytes, -1, 0);
        copy.memory = map_words(nullptr, copy.bytes, file, memory_file_offset_bytes);
        copy.before = map_words(nullptr, copy.bytes, -1, 0);
        copies_.push_back(copy);
        if (!copy.now || !copy.memory || !copy.before) return false;
        copy.refresh();
    }
    return true;
}

AliasedMemory::AliasedMemory(Driver& d, const Twin& twin, std::byte* pack) : d_(d) {
    if (d.virtual_memory.mappings.size() < 2) return;
    std::vector<Region*> touched;  // in the order of the arguments
    std::vector<const Physical*> concurrent;
    for (const Parameter& parameter : twin.parameters) {
        if (!parameter.is_view()) continue;
        View view;
        std::memcpy(&view, pack + parameter.offset_bytes, sizeof(view));
        bool gapless = false;
        for (Region* const mapping : mappings_of(d, view.data, view.size * parameter.element_bytes, gapless)) {
            if (parameter.use == concurrent_use) concurrent.push_back(mapping->physical);
            if (std::find(touched.begin(), touched.end(), mapping) == touched.end()) touched.push_back(mapping);
        }
    }
    std::vector<Region*> copied;
    std::size_t bytes = 0;
    for (std::size_t at = 0; at < touched.size(); ++at) {
        const Physical* const physical = touched[at]->physical;
        const auto end = touched.begin() + static_cast<std::ptrdiff_t>(at);
        const bool again = std::any_of(touched.begin(), end, [&](Region* one) { return one->physical == physical; });
        const bool shared = std::find(concurrent.begin(), concurrent.end(), physical) != concurrent.end();
        if (!again || shared) continue;
        copied.push_back(touched[at]);
        bytes += touched[at]->bytes;
    }
    if (copied.empty() || bytes > max_bytes) return;
    std::sort(touched.begin(), touched.end(), [](Region* a, Region* b) { return a->base < b->base; });
    for (std::size_t first = 0; first < touched.size();) {
        std::size_t end = first + 1;
        while (end < touched.size() && touched[end]->base == touched[end - 1]->base + touched[end - 1]->bytes) ++end;
        const auto begins = touched.begin() + static_cast<std::ptrdiff_t>(first);
        const std::vector<Region*> run(begins, touched.begin() + static_cast<std::ptrdiff_t>(end));
        const bool has_copies = std::any_of(run.begin(), run.end(), [&](Region* one) {
            return std::find(copied.begin(), copied.end(), one) != copied.end();
        });
        if (has_copies && !build(run, copied)) {  // not enough memory: the kernel gets the aliases themselves
            forget();
            return;
        }
        first = end;
    }
    for (const Parameter& parameter : twin.parameters) {
        if (!parameter.is_view()) continue;
        View view;
        std::memcpy(&view, pack + parameter.offset_bytes, sizeof(view));
        const auto in =
            std::find_if(ranges_.begin(), ranges_.end(), [&](const Range& r) { return r.holds(view.data); });
        if (in == ranges_.end()) continue;
        view.data = reinterpret_cast<Address>(in->place) + (view.data - in->base);
        std::memcpy(pack + parameter.offset_bytes, &view, sizeof(view));
    }
}

AliasedMemory::~AliasedMemory() {
    for (const Copy& copy : copies_) copy.merge();  // the kernel's end is a fence
    forget();
}

void AliasedMemory::forget() noexcept {
    for (const Copy& copy : copies_) {
        if (copy.memory) ::munmap(copy.memory, copy.bytes);
        if (copy.before) ::munmap(copy.before, copy.bytes);
    }
    for (const Range& range : ranges_) d_.protection.unmap(range.place, range.bytes);
    copies_.clear();
    ranges_.clear();
}

void AliasedMemory::fence() noexcept {
    for (const Copy& copy : copies_) copy.merge();
    for (Copy& copy : copies_) {
        if (fences_left_ == 0 && !copy.is_memory) copy.become_memory();
        if (!copy.is_memory) copy.refresh();
    }
    if (fences_left_ > 0) --fences_left_;
}

}  // namespace isthmus::sim
