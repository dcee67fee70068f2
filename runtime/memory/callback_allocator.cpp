// SPDX-License-Identifier: Apache-2.0
// A user's allocator behind C callbacks: translation, and checks of the blocks that it returns.
#include <isthmus/callback_allocator.hpp>
#include <isthmus/stream.hpp>

#include "memory_errors.hpp"

#include <map>
#include <mutex>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace {

constexpr int last_code = static_cast<int>(Code::unknown_pointer);

Error answered(const char* what, int code) {
    const Code typed = code > 0 && code <= last_code ? static_cast<Code>(code) : Code::driver_error;
    return make_error_as<errors::allocator_callback_failed>(typed, what, code).from_call(what, code);
}

struct Callbacks {
    explicit Callbacks(const isthmus_allocator_callbacks& given) : functions(given) {}
    Callbacks(const Callbacks&) = delete;
    Callbacks& operator=(const Callbacks&) = delete;
    ~Callbacks() {
        if (functions.destroy != nullptr) functions.destroy(functions.context);
    }
    const isthmus_allocator_callbacks functions;
    std::mutex mutex;
    std::map<std::uint64_t, std::uint64_t> tags;  // address → tag, until the block is released
};

std::uint64_t address_of(const MemoryBlock& block) {
    return block.host ? reinterpret_cast<std::uintptr_t>(block.host) : block.device;
}

class CallbackAllocator {
public:
    explicit CallbackAllocator(const isthmus_allocator_callbacks& callbacks)
        : callbacks_(std::make_shared<Callbacks>(callbacks)) {}

    Result<MemoryBlock> allocate(const AllocationRequest& request) {
        const isthmus_allocator_callbacks& user = callbacks_->functions;
        isthmus_memory_block made{};
        const int code = user.allocate(user.context, request.bytes, request.alignment,
                                       request.stream ? request.stream->id() : 0, &made);
        if (code != 0) return answered("allocate", code);
        const bool known = made.kind >= 0 && made.kind < memory_kind_count;
        const MemoryBlock block{0, made.host,
                                made.device != 0 ? made.device : reinterpret_cast<std::uintptr_t>(made.host),
                                request.bytes, known ? static_cast<MemoryKind>(made.kind) : MemoryKind::unknown};
        if (!block || made.bytes < request.bytes || !known || address_of(block) % request.alignment != 0) {
            if (made.host != nullptr || made.device != 0) (void)user.release(user.context, &made, 0);
            return make_error<errors::allocator_callback_block_unusable>();
        }
        const std::lock_guard lock(callbacks_->mutex);
        callbacks_->tags[address_of(block)] = made.tag;
        return block;
    }

    Result<void> release(const MemoryBlock& block, Stream* after) {
        const isthmus_allocator_callbacks& user = callbacks_->functions;
        isthmus_memory_block given{block.host, block.device, block.bytes, static_cast<int>(block.kind), 0};
        {
            const std::lock_guard lock(callbacks_->mutex);
            const auto tag = callbacks_->tags.find(address_of(block));
            if (tag == callbacks_->tags.end()) {
                return make_error<errors::allocator_callback_block_unknown>();
            }
            given.tag = tag->second;
            callbacks_->tags.erase(tag);
        }
        const int code = user.release(user.context, &given, after ? after->id() : 0);
        if (code == 0) return {};
        const std::lock_guard lock(callbacks_->mutex);
        callbacks_->tags.emplace(address_of(block), given.tag);  // not released: the caller may retry
        return answered("release", code);
    }

private:
    std::shared_ptr<Callbacks> callbacks_;
};

}  // namespace

Result<Allocator> allocator_from(const isthmus_allocator_callbacks& callbacks) {
    if (callbacks.allocate == nullptr || callbacks.release == nullptr) {
        return make_error<errors::allocator_callback_missing>();
    }
    return Allocator(CallbackAllocator(callbacks));
}

}  // namespace v0
}  // namespace isthmus
