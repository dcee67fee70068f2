// SPDX-License-Identifier: Apache-2.0
// PlayedMemory: memory of a recording, made again on the device of a replay.
#pragma once

#include "recording.hpp"

#include <isthmus/device.hpp>
#include <isthmus/native_work.hpp>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <optional>
#include <variant>

namespace isthmus::tools::replay {

// A view or a native scope, which is closed when it ends.
using Opened = std::shared_ptr<void>;

class PlayedMemory {
public:
    // Errors: as the call that made it.
    static Result<PlayedMemory> make(Device& device, const Memory& memory);

    const BufferBase& buffer() const;
    // As enqueue_native() takes it.
    NativeUse<std::byte> as_use(const MemoryUse& use);
    Result<Opened> open_view(const MemoryUse& use);
    Result<void> read_back();
    // Both are buffers of bytes: not those with words for updates.
    static Result<void> copy(Stream& stream, PlayedMemory& to, const MemoryUse& to_use, PlayedMemory& from,
                             const MemoryUse& from_use);
    Result<void> fill(Stream& stream, const MemoryUse& use);
    // Buffers only: nullptr for words.
    Buffer<std::byte>* bytes() { return std::get_if<Buffer<std::byte>>(&memory_); }

private:
    using Words = Buffer<std::uint32_t>;  // updates are atomic for words of a size

    explicit PlayedMemory(Buffer<std::byte> bytes) : memory_(std::move(bytes)) {}
    explicit PlayedMemory(Words words) : memory_(std::move(words)) {}

    std::variant<Buffer<std::byte>, Words> memory_;
};

// Host memory of no buffer, at a page.
using HostMemory = std::unique_ptr<std::byte, void (*)(void*)>;
HostMemory host_memory(std::uint64_t bytes);  // nullptr: there is none

}  // namespace isthmus::tools::replay
