// SPDX-License-Identifier: Apache-2.0
// Makes and uses the memory of a replay through the public interface.
#include "played_memory.hpp"

#include <isthmus/adopt.hpp>
#include <isthmus/read_back.hpp>
#include <isthmus/stream.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

namespace isthmus::tools::replay {
namespace {

bool is_whole(const BufferBase& buffer, const MemoryUse& use) {
    return use.first == 0 && use.bytes >= buffer.size_bytes();
}

template <class View>
Result<Opened> kept(Result<View> view) {
    if (!view) return std::move(view).error();
    return Opened(std::make_shared<View>(std::move(view).value()));
}

// `memory`: a buffer or a part.
template <class B>
Result<Opened> opened(B& memory, ArgumentUse use) {
    switch (use) {
        case ArgumentUse::read: return kept(memory.read_on_host());
        case ArgumentUse::write: return kept(memory.write_on_host());
        case ArgumentUse::concurrent: return kept(memory.concurrent_on_host());
        case ArgumentUse::read_write:
        case ArgumentUse::value: break;
    }
    return kept(memory.read_write_on_host());
}

Result<Buffer<std::byte>> adopt(Device& device, const Memory& memory, std::size_t bytes) {
    HostMemory block = host_memory(memory.bytes);
    if (block == nullptr) {
        return Error(Code::out_of_memory, "there is no memory for what other code allocated", "replay less at a time");
    }
    AdoptOptions options;
    options.use = memory.use;
    options.release = [](void* pointer, std::size_t) noexcept { std::free(pointer); };
    Result<Buffer<std::byte>> adopted = device.adopt<std::byte>(block.get(), bytes, std::move(options));
    if (adopted) (void)block.release();
    return adopted;
}

}  // namespace

HostMemory host_memory(std::uint64_t bytes) {
    constexpr std::uint64_t page = 4096;
    void* const memory = bytes > std::numeric_limits<std::uint64_t>::max() - page
                             ? nullptr
                             : std::aligned_alloc(page, (std::max<std::uint64_t>(bytes, 1) + page - 1) / page * page);
    return {static_cast<std::byte*>(memory), std::free};
}

Result<PlayedMemory> PlayedMemory::make(Device& device, const Memory& memory) {
    const auto of = [](auto made) -> Result<PlayedMemory> {
        if (!made) return std::move(made).error();
        return PlayedMemory(std::move(made).value());
    };
    const auto bytes = static_cast<std::size_t>(memory.bytes);
    if (memory.made == Made::adopted && memory.kind != MemoryKind::pinned && memory.kind != MemoryKind::managed) {
        return of(adopt(device, memory, bytes));
    }
    if (memory.made == Made::adopted) return of(device.allocate<std::byte>(bytes, memory.kind));
    if (memory.made == Made::of_kind && memory.kind == MemoryKind::unknown) {
        return of(device.allocate<std::byte>(bytes));
    }
    if (memory.made == Made::of_kind) {
        const MemoryKind kind = memory.kind == MemoryKind::graph ? MemoryKind::device : memory.kind;
        return of(device.allocate<std::byte>(bytes, kind));
    }
    if (memory.use.updates != AtomicSet::load_store) {
        return of(device.allocate_shared<std::uint32_t>((bytes + 3) / 4, memory.use));
    }
    return of(device.allocate_shared<std::byte>(bytes, memory.use));
}

const BufferBase& PlayedMemory::buffer() const {
    return std::visit([](const auto& memory) -> const BufferBase& { return memory; }, memory_);
}

NativeUse<std::byte> PlayedMemory::as_use(const MemoryUse& use) {
    const auto argument = std::visit([](auto& memory) { return updates(memory).argument; }, memory_);
    NativeUse<std::byte> given{argument, use.use};
    if (bytes() == nullptr || is_whole(buffer(), use)) return given;
    const Result<BufferPart<std::byte>> part =
        bytes()->part(static_cast<std::size_t>(use.first), static_cast<std::size_t>(use.bytes));
    if (!part) return given;
    given.argument.first_byte = part->first_byte();
    given.argument.raw_count = part->size();
    given.argument.is_part = true;
    return given;
}

Result<Opened> PlayedMemory::open_view(const MemoryUse& use) {
    if (bytes() != nullptr && !is_whole(buffer(), use)) {
        const Result<BufferPart<std::byte>> part =
            bytes()->part(static_cast<std::size_t>(use.first), static_cast<std::size_t>(use.bytes));
        if (!part) return part.error();
        return opened(*part, use.use);
    }
    return std::visit([&](auto& memory) { return opened(memory, use.use); }, memory_);
}

Result<void> PlayedMemory::read_back() {
    return std::visit(
        [](auto& memory) -> Result<void> {
            const auto content = isthmus::read_back(memory);
            if (!content) return content.error();
            return {};
        },
        memory_);
}

Result<void> PlayedMemory::copy(Stream& stream, PlayedMemory& to, const MemoryUse& to_use, PlayedMemory& from,
                                const MemoryUse& from_use) {
    Buffer<std::byte>* const there = to.bytes();
    Buffer<std::byte>* const here = from.bytes();
    if (there == nullptr || here == nullptr) return {};
    const auto count = static_cast<std::size_t>(std::min(to_use.bytes, from_use.bytes));
    return stream.copy(*there, static_cast<std::size_t>(to_use.first), *here, static_cast<std::size_t>(from_use.first),
                       count);
}

Result<void> PlayedMemory::fill(Stream& stream, const MemoryUse& use) {
    if (bytes() == nullptr) return stream.fill(std::get<Words>(memory_), 0);
    const CopyLayout layout{static_cast<std::size_t>(use.first)};
    return stream.fill_region(*bytes(), layout, {static_cast<std::size_t>(use.bytes)}, std::byte{0});
}

}  // namespace isthmus::tools::replay
