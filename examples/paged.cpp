// SPDX-License-Identifier: Apache-2.0
// A cache of two sequences that begin alike: their common pages exist once.
#include <isthmus/isthmus.hpp>

#include "brighten.hpp"

#include <cstdio>

int main() {
    isthmus::Runtime runtime = isthmus::Runtime::open({.launch_mode = isthmus::LaunchMode::checked}).value();
    isthmus::Device& device = runtime.default_device();
    isthmus::Stream& stream = device.stream();

    auto made = isthmus::PagedPool::create(device, 4);
    if (made.code() == isthmus::Code::unsupported) {  // no virtual memory, as on the CPU device
        std::printf("no pages here: %s\n", made.error().text().c_str());
        return 0;
    }
    isthmus::PagedPool pool = std::move(made).value();
    using Sequence = isthmus::PagedRange<std::uint8_t>;
    auto first = Sequence::create(pool, 1000).value();  // addresses for 1000 pages; they cost no memory
    first.map(0, pool.take(2).value()).value();
    stream.fill(first, std::uint8_t{10}).value();

    // The second sequence shares the first page, and continues in one of its own.
    auto second = Sequence::create(pool, 1000).value();
    second.map(0, first.page(0)).value();
    second.map(1, pool.take(1).value()).value();
    const std::size_t page = pool.page_bytes();
    stream.launch(brighten, page, second.part(page, page).value(), 5).value();
    stream.launch(brighten, page, first, 1).value();

    std::uint8_t shared = 0;
    stream.copy_to_host(std::span(&shared, 1), second, 0).value();
    std::printf("%zu and %zu pages in %zu; the shared one holds %d\n", first.size() / page, second.size() / page,
                pool.pages() - pool.free_pages(), shared);
    first = {};  // its own page is free again; the shared one stays
    std::printf("%zu of %zu pages are free\n", pool.free_pages(), pool.pages());
    return shared == 11 && pool.free_pages() == 2 ? 0 : 1;
}
