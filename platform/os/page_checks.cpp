// SPDX-License-Identifier: Apache-2.0
// NUMA system calls in chunks and with masks of fixed size, so that placement does not need libnuma.
#include "page_checks.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif

namespace isthmus::platform::os {
namespace {

constexpr std::size_t bits_per_word = sizeof(unsigned long) * CHAR_BIT;
// Linux has at most 1024 nodes (CONFIG_NODES_SHIFT ≤ 10); get_mempolicy refuses masks smaller than the kernel's.
constexpr std::size_t mask_bits = 4096;
using NodeMask = std::array<unsigned long, mask_bits / bits_per_word>;

int last_errno() {
    return errno != 0 ? errno : EIO;
}

int touch_part(void* data, std::size_t bytes, std::size_t page_bytes, const SystemCalls& calls) {
    // MADV_POPULATE_WRITE returns an error where touching would raise SIGBUS.
    errno = 0;
    if (calls.madvise(data, bytes, MADV_POPULATE_WRITE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return last_errno();
    // Older kernels: fresh pages are zero, so writing a zero changes nothing.
    volatile unsigned char* byte = static_cast<unsigned char*>(data);
    for (std::size_t offset = 0; offset < bytes; offset += page_bytes) byte[offset] = 0;
    return 0;
}

}  // namespace

int touch_pages(void* data, std::size_t bytes, std::size_t page_bytes, const SystemCalls& calls,
                const Workers& workers) {
    const std::size_t useful = bytes / least_touch_bytes;
    const auto count = static_cast<unsigned>(std::min<std::size_t>(workers.count, useful));
    if (count < 2 || !workers.run) return touch_part(data, bytes, page_bytes, calls);
    // Parts end at multiples of least_touch_bytes, so that two workers never touch one huge page.
    const std::size_t part = (useful + count - 1) / count * least_touch_bytes;
    std::atomic<int> first_error{0};
    workers.run(count, [&](unsigned index) {
        const std::size_t begin = std::min(bytes, part * index);
        const std::size_t end = index + 1 == count ? bytes : std::min(bytes, begin + part);
        if (begin == end) return;
        const int error = touch_part(static_cast<char*>(data) + begin, end - begin, page_bytes, calls);
        int none = 0;
        if (error != 0) first_error.compare_exchange_strong(none, error, std::memory_order_relaxed);
    });
    return first_error.load(std::memory_order_relaxed);  // ordered: run() returns after every task
}

Whereabouts find_pages(void* data, std::size_t bytes, std::size_t page_bytes, const std::vector<int>& wanted,
                       const SystemCalls& calls) {
    constexpr std::size_t chunk = 256;
    std::array<void*, chunk> pages{};
    std::array<int, chunk> nodes{};
    Whereabouts found;
    char* const begin = static_cast<char*>(data);
    bool several = false;
    for (std::size_t offset = 0; offset < bytes;) {
        std::size_t count = 0;
        for (; count < chunk && offset < bytes; ++count, offset += page_bytes) pages[count] = begin + offset;
        // Without target nodes, move_pages moves nothing and reports the current ones.
        errno = 0;
        if (calls.move_pages(0, count, pages.data(), nullptr, nodes.data(), 0) != 0) {
            found.error = last_errno();
            return found;
        }
        for (std::size_t i = 0; i < count; ++i) {
            const int node = nodes[i];
            const bool first = found.pages == 0;
            ++found.pages;
            if (node < 0) {
                ++found.absent;
                continue;
            }
            several = several || (!first && found.node != -1 && found.node != node);
            found.node = node;
            if (wanted.empty() || std::find(wanted.begin(), wanted.end(), node) != wanted.end()) continue;
            if (found.outside++ == 0) found.outside_node = node;
        }
    }
    if (several) found.node = -1;
    return found;
}

std::optional<std::vector<int>> allowed_nodes(const SystemCalls& calls) {
    NodeMask mask{};
    if (calls.get_mempolicy_allowed(mask.data(), mask_bits) != 0) return std::nullopt;
    std::vector<int> nodes;
    for (std::size_t bit = 0; bit < mask_bits; ++bit) {
        if ((mask[bit / bits_per_word] >> (bit % bits_per_word)) & 1ul) nodes.push_back(static_cast<int>(bit));
    }
    return nodes;
}

int bind_pages(void* data, std::size_t bytes, int mode, const std::vector<int>& nodes, const SystemCalls& calls) {
    NodeMask mask{};
    for (const int node : nodes) {
        const auto bit = static_cast<std::size_t>(node);
        if (node < 0 || bit >= mask_bits) return EINVAL;
        mask[bit / bits_per_word] |= 1ul << (bit % bits_per_word);
    }
    errno = 0;
    // The kernel counts one bit less than it is told (mbind(2), get_nodes); MPOL_LOCAL wants no mask at all.
    const long result = nodes.empty() ? calls.mbind(data, bytes, mode, nullptr, 0, 0)
                                      : calls.mbind(data, bytes, mode, mask.data(), mask_bits, 0);
    return result == 0 ? 0 : last_errno();
}

}  // namespace isthmus::platform::os
