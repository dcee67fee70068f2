// SPDX-License-Identifier: Apache-2.0
// Containers of the standard library in memory that the GPU uses in place: std::pmr::memory_resource over an allocator.
#include <isthmus/isthmus.hpp>

#include "brighten.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory_resource>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace {

// show: resource
// Any allocator whose memory the CPU may use: pinned, managed, host. Outlives what it gave. A block goes back when no
// work uses it: the program waits before a container ends, or grows.
class MemoryResource final : public std::pmr::memory_resource {
public:
    explicit MemoryResource(isthmus::Allocator allocator) : allocator_(std::move(allocator)) {}

    // Blocks that were given and are not back, those included that the driver did not take back.
    std::size_t blocks() const {
        const std::lock_guard lock(mutex_);
        return blocks_.size();
    }

private:
    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
        isthmus::AllocationRequest request;
        request.bytes = std::max<std::size_t>(bytes, 1);
        request.alignment = std::max(alignment, request.alignment);
        const auto block = allocator_.allocate(request);
        if (!block) throw std::bad_alloc();
        const std::lock_guard lock(mutex_);
        try {
            if (block->host == nullptr) throw std::bad_alloc();  // memory that the CPU cannot use
            blocks_.emplace(block->host, *block);
        } catch (...) {
            (void)allocator_.release(*block);
            throw;
        }
        return block->host;
    }
    void do_deallocate(void* address, std::size_t, std::size_t) override {
        const std::lock_guard lock(mutex_);
        const auto found = blocks_.find(address);
        if (found != blocks_.end() && allocator_.release(found->second)) blocks_.erase(found);
    }
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

    isthmus::Allocator allocator_;
    mutable std::mutex mutex_;
    std::map<void*, isthmus::MemoryBlock> blocks_;  // an address alone does not identify a block
};
// end

int failures = 0;
void expect(bool held, const char* what) {
    if (held) return;
    std::printf("not so: %s\n", what);
    ++failures;
}

void vectors(isthmus::Device& device, MemoryResource& pinned) {
    isthmus::Stream& stream = device.stream();
    constexpr std::size_t size = 4096;
    // show: use
    std::pmr::vector<std::uint8_t> pixels(size, std::uint8_t{10}, &pinned);
    // A kernel takes the vector's memory as it is. No host view guards it: wait before the CPU uses it again.
    stream.launch(brighten, size, isthmus::View<std::uint8_t>{pixels.data(), pixels.size()}, 5).value();
    stream.synchronize().value();
    // end
    expect(std::all_of(pixels.begin(), pixels.end(), [](std::uint8_t pixel) { return pixel == 15; }),
           "the kernel worked in the vector's own memory");
    expect(pinned.blocks() == 1, "the vector has one block");
    std::pmr::vector<std::uint8_t> moved(std::move(pixels), &pinned);
    expect(moved.size() == size && pinned.blocks() == 1, "equal resources move, and copy nothing");
}

void many(MemoryResource& pinned) {
    // show: pool
    // Many small objects: a pool of the standard library takes larger blocks and divides them.
    std::pmr::unsynchronized_pool_resource pool(&pinned);
    std::pmr::map<int, std::pmr::vector<float>> tracks(&pool);
    for (int track = 0; track < 100; ++track) tracks[track].resize(16);
    // end
    expect(tracks.at(99).get_allocator().resource() == &pool, "the vectors in the map use the pool, too");
    expect(pinned.blocks() > 0 && pinned.blocks() < 100, "the pool takes fewer blocks than there are objects");
}

bool gives_memory(isthmus::Allocator allocator) {
    MemoryResource resource(std::move(allocator));
    try {
        resource.deallocate(resource.allocate(64), 64);
    } catch (const std::bad_alloc&) {
        expect(resource.blocks() == 0, "a refused block is not kept");
        return false;
    }
    return true;
}

}  // namespace

int main() {
    isthmus::Runtime runtime = isthmus::Runtime::open({.launch_mode = isthmus::LaunchMode::checked}).value();
    isthmus::Device& device = runtime.default_device();
    MemoryResource pinned(device.allocator(isthmus::MemoryKind::pinned));
    vectors(device, pinned);
    many(pinned);
    expect(pinned.blocks() == 0, "everything went back");
    expect(gives_memory(device.allocator(isthmus::MemoryKind::device)) == device.is_cpu(),
           "device memory of a GPU is refused: the CPU cannot use it");
    expect(!gives_memory(isthmus::LimitAllocator(device.allocator(isthmus::MemoryKind::pinned), 1)),
           "an allocator that is full throws bad_alloc");
    std::printf("vectors in pinned memory: %s\n", failures == 0 ? "yes" : "no");
    return failures == 0 ? 0 : 1;
}
