// SPDX-License-Identifier: Apache-2.0
// Memory that leaves the driver as a dma-buf, and dma-bufs in the device's address space.
#include "sim_two_processes.hpp"
#include "sim_virtual_scene.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace isthmus::sim::test {
namespace {

constexpr std::size_t page = 4096;
constexpr int dma_buf_fd = 1, external_dma_buf = 9;

Result exported(Address address, std::size_t bytes, int& file, int type = dma_buf_fd, unsigned long long flags = 0) {
    return cuMemGetHandleForAddressRange(&file, address, bytes, type, flags);
}

Result imported(int file, std::size_t bytes, ExternalMemory*& memory, int type = external_dma_buf) {
    ExternalMemoryDescription from = {};
    from.type = type;
    from.handle.descriptor = file;
    from.bytes = bytes;
    return cuImportExternalMemory(&memory, &from);
}

// The first word, as another driver that maps the dma-buf sees it.
int first_word(int file) {
    void* const at = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    REQUIRE_THAT(at != MAP_FAILED);
    const int word = *static_cast<int*>(at);
    *static_cast<int*>(at) = word + 1;
    ::munmap(at, page);
    return word;
}

TEST(SimExternalMemory, ADmaBufIsTheMemoryItself) {  // keeps Y5's ground
    in_own_process([] {
        open_device();
        const Address plain = device_memory(2 * page);
        fill(plain, 5);
        int file = -1;
        const bool exports = fact(attribute::dma_buf) != 0;
        REQUIRE_CODE(exported(plain, 2 * page, file), exports ? 0 : 1);
        if (exports) {
            REQUIRE_THAT((::fcntl(file, F_GETFD) & FD_CLOEXEC) != 0);
            REQUIRE_THAT(first_word(file) == 5 && first_int(plain) == 6);
            int again = -1;
            REQUIRE_CODE(exported(plain, page, again), 0);
            REQUIRE_THAT(first_word(again) == 6);
            REQUIRE_CODE(cuMemFree_v2(plain), 0);
            REQUIRE_THAT(first_word(file) == 7);  // the descriptor keeps it
            ::close(again);
            ::close(file);
        }
        void* pinned = nullptr;
        REQUIRE_CODE(cuMemHostAlloc(&pinned, page, 3), 0);
        *static_cast<int*>(pinned) = 9;
        const bool exports_pinned = fact(attribute::host_alloc_dma_buf) != 0;
        REQUIRE_CODE(exported(reinterpret_cast<Address>(pinned), page, file), exports_pinned ? 0 : 1);
        if (exports_pinned) {
            REQUIRE_THAT(first_word(file) == 9 && *static_cast<int*>(pinned) == 10);
            ::close(file);
        }
        REQUIRE_CODE(cuMemFreeHost(pinned), 0);
        if (virtual_memory() && exports) {
            const Address mapping = mapped(granule);
            REQUIRE_CODE(give_access(mapping, granule), 0);
            fill(mapping, 3);
            REQUIRE_CODE(exported(mapping, granule, file), 0);
            REQUIRE_THAT(first_word(file) == 3 && first_int(mapping) == 4);
            ::close(file);
        }
    });
}

TEST(SimExternalMemory, WhatCannotBeExportedIsRefused) {  // keeps Y5's ground
    in_own_process([] {
        open_device();
        const Address plain = device_memory(2 * page);
        int file = -1;
        REQUIRE_CODE(exported(plain + 512, page, file), 1);
        REQUIRE_CODE(exported(plain, 512, file), 1);
        REQUIRE_CODE(exported(plain, 0, file), 1);
        REQUIRE_CODE(exported(plain, 4 * page, file), 1);
        REQUIRE_CODE(exported(plain, page, file, 2), 1);
        REQUIRE_CODE(exported(plain, page, file, dma_buf_fd, 1), 801);
        REQUIRE_CODE(exported(0, page, file), 1);
        REQUIRE_CODE(cuMemGetHandleForAddressRange(nullptr, plain, page, dma_buf_fd, 0), 1);
        Address managed = 0;
        if (cuMemAllocManaged(&managed, page, 1) == 0) REQUIRE_CODE(exported(managed, page, file), 1);
        REQUIRE_THAT(file == -1);
    });
}

TEST(SimExternalMemory, IsImportedOnThorAndUsedBehindItsObject) {  // keeps Y5's ground
    in_own_process([] {
        open_device();
        ExternalMemory* memory = nullptr;
        const Address plain = device_memory(2 * page);
        fill(plain, 5);
        int file = -1;
        REQUIRE_CODE(imported(-1, page, memory), 1);
        if (exported(plain, 2 * page, file) != 0) return;
        REQUIRE_CODE(imported(file, 2 * page, memory, 1), 801);
        const Result code = imported(file, 2 * page, memory);
        constexpr int compute_capability_major = 75;
        REQUIRE_CODE(code, fact(compute_capability_major) == 11 ? 0 : 801);
        if (code != 0) return;
        const int other = ::memfd_create("no dma-buf", MFD_CLOEXEC);
        ExternalMemory* none = nullptr;
        REQUIRE_CODE(imported(other, page, none), 1);
        REQUIRE_THAT(::fcntl(file, F_GETFD) >= 0);  // still the caller's
        ::close(file);
        ExternalRange range = {};
        range.bytes = 4 * page;
        Address address = 0;
        REQUIRE_CODE(cuExternalMemoryGetMappedBuffer(&address, memory, &range), 1);
        range.bytes = 2 * page;
        REQUIRE_CODE(cuExternalMemoryGetMappedBuffer(&address, memory, &range), 0);
        REQUIRE_THAT(address != plain && first_int(address) == 5);
        REQUIRE_CODE(cuDestroyExternalMemory(memory), 0);
        REQUIRE_CODE(cuDestroyExternalMemory(memory), 400);
        fill(address, 8);
        REQUIRE_THAT(first_int(plain) == 8);
        REQUIRE_CODE(cuMemFree_v2(address), 0);
        REQUIRE_CODE(cuMemFree_v2(address), 1);
        REQUIRE_CODE(cuMemFree_v2(plain), 0);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
