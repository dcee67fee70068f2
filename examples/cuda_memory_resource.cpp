// SPDX-License-Identifier: Apache-2.0
// isthmus allocators as memory resources of CUDA C++: cuda::mr as of CCCL 3.0 (CUDA 13.0), which is experimental there.
// Host code: nothing of it needs nvcc or the CUDA runtime library.
#define LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE
#include <cuda/memory_resource>

#include <isthmus/isthmus.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <new>
#include <utility>

namespace {

using isthmus::MemoryKind;

// show: resource
// Memory of one kind of a device. The kind is part of the type, because the properties are.
template <MemoryKind kind>
class CudaResource {
public:
    static constexpr bool for_host = kind == MemoryKind::pinned || kind == MemoryKind::managed;
    static constexpr bool in_stream_order = kind == MemoryKind::pool;

    explicit CudaResource(isthmus::Device& device) : device_(device), allocator_(device.allocator(kind)) {}

    void* allocate(std::size_t bytes, std::size_t alignment = 256) { return take(bytes, alignment, nullptr); }
    // The program has waited for all work that uses the memory.
    void deallocate(void* address, std::size_t, std::size_t = 256) noexcept { give_back(address, nullptr); }

    // A pool's memory is usable on the stream at once, and freed behind its work. Other kinds know no order: they are
    // usable at once, and given back when the stream's work has ended.
    void* allocate_async(std::size_t bytes, std::size_t alignment, cuda::stream_ref stream) {
        if constexpr (!in_stream_order) return take(bytes, alignment, nullptr);
        isthmus::Stream wrapped = device_.wrap_stream(stream.get()).value();
        return take(bytes, alignment, &wrapped);
    }
    void* allocate_async(std::size_t bytes, cuda::stream_ref stream) { return allocate_async(bytes, 256, stream); }
    void deallocate_async(void* address, std::size_t, std::size_t, cuda::stream_ref stream) {
        isthmus::Stream wrapped = device_.wrap_stream(stream.get()).value();
        if constexpr (in_stream_order) return give_back(address, &wrapped);
        wrapped.synchronize().value();
        give_back(address, nullptr);
    }
    void deallocate_async(void* address, std::size_t bytes, cuda::stream_ref stream) {
        deallocate_async(address, bytes, 256, stream);
    }

    bool operator==(const CudaResource& other) const noexcept { return this == &other; }
    bool operator!=(const CudaResource& other) const noexcept { return this != &other; }
    friend void get_property(const CudaResource&, cuda::mr::device_accessible) noexcept {}
    friend void get_property(const CudaResource&, cuda::mr::host_accessible) noexcept requires(for_host) {}

    std::size_t blocks() const {
        const std::lock_guard lock(mutex_);
        return blocks_.size();
    }

private:
    static void* address_of(const isthmus::MemoryBlock& block) noexcept {
        return block.host != nullptr ? block.host : reinterpret_cast<void*>(block.device);
    }
    void* take(std::size_t bytes, std::size_t alignment, isthmus::Stream* stream) {
        const auto block = allocator_.allocate({bytes, std::max<std::size_t>(alignment, 256), stream});
        if (!block) throw std::bad_alloc();  // block.error() says why
        const std::lock_guard lock(mutex_);
        try {
            if (*block) blocks_.emplace(address_of(*block), *block);  // nothing for 0 bytes
        } catch (...) {
            (void)allocator_.release(*block, stream);
            throw;
        }
        return address_of(*block);
    }
    void give_back(void* address, isthmus::Stream* after) noexcept {
        const std::lock_guard lock(mutex_);
        const auto found = blocks_.find(address);
        if (found != blocks_.end() && allocator_.release(found->second, after)) blocks_.erase(found);
    }

    isthmus::Device& device_;
    isthmus::Allocator allocator_;
    mutable std::mutex mutex_;
    std::map<void*, isthmus::MemoryBlock> blocks_;
};

using cuda::mr::device_accessible;
using cuda::mr::host_accessible;
static_assert(cuda::mr::async_resource_with<CudaResource<MemoryKind::pool>, device_accessible>);
static_assert(!cuda::mr::resource_with<CudaResource<MemoryKind::pool>, host_accessible>);
static_assert(cuda::mr::resource_with<CudaResource<MemoryKind::pinned>, host_accessible, device_accessible>);
static_assert(cuda::mr::resource_with<CudaResource<MemoryKind::managed>, host_accessible, device_accessible>);
// end

int failures = 0;
void expect(bool held, const char* what) {
    if (held) return;
    std::printf("not so: %s\n", what);
    ++failures;
}

void pinned(isthmus::Device& device) {
    // show: use
    CudaResource<MemoryKind::pinned> resource(device);
    cuda::mr::resource_ref<host_accessible, device_accessible> ref = resource;  // what CUDA libraries take
    auto* const numbers = static_cast<int*>(ref.allocate(1024 * sizeof(int)));
    // end
    numbers[1023] = 7;
    expect(numbers[1023] == 7 && resource.blocks() == 1, "the CPU writes pinned memory");
    ref.deallocate(numbers, 1024 * sizeof(int));
    expect(resource.blocks() == 0, "the block went back");
    bool threw = false;
    try {
        (void)ref.allocate(std::size_t{1} << 60);
    } catch (const std::bad_alloc&) {
        threw = true;
    }
    expect(threw && resource.blocks() == 0, "more than there is throws bad_alloc");
}

void pool(isthmus::Device& device) {
    if (!device.capabilities().has(isthmus::Feature::pools)) return;
    CudaResource<MemoryKind::pool> resource(device);
    cuda::mr::async_resource_ref<device_accessible> ref = resource;
    isthmus::Stream stream = device.create_stream().value();
    const cuda::stream_ref cuda_stream(static_cast<cudaStream_t>(stream.native_handle().value()));
    void* const memory = ref.allocate_async(1 << 16, cuda_stream);
    expect(memory != nullptr && resource.blocks() == 1, "a pool gives memory in a stream's order");
    ref.deallocate_async(memory, 1 << 16, cuda_stream);
    expect(resource.blocks() == 0, "it is freed behind the stream's work");
    expect(stream.synchronize().ok(), "the stream ends");
}

}  // namespace

int main() {
    isthmus::Runtime runtime = isthmus::Runtime::open().value();
    pinned(runtime.default_device());
    pool(runtime.default_device());
    std::printf("resources of cuda::mr: %s\n", failures == 0 ? "as expected" : "not as expected");
    return failures == 0 ? 0 : 1;
}
