// SPDX-License-Identifier: Apache-2.0
// What the handles of isthmus.h are. Each holds the runtime that it came from, so that handles may be freed in any
// order.
#pragma once

#include <isthmus.h>
#include <isthmus/ipc/shared_memory.hpp>
#include <isthmus/runtime.hpp>

#include "calls.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace isthmus::c {

// Counts the owners of a handle; one from the start.
class Counted {
public:
    Counted() = default;
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    void add_owner() noexcept { owners_.fetch_add(1, std::memory_order_relaxed); }
    // Whether that was the last. Release: what this owner did comes before the destruction; acquire: the destruction
    // comes behind what the others did. Pairs with itself on the other threads.
    bool remove_owner() noexcept { return owners_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

protected:
    ~Counted() = default;

private:
    std::atomic<std::uint32_t> owners_{1};
};

// One owner of a counted handle.
template <class T>
class Ref {
public:
    Ref() = default;
    explicit Ref(T& counted) noexcept : counted_(&counted) { counted.add_owner(); }
    Ref(const Ref& other) noexcept : counted_(other.counted_) {
        if (counted_ != nullptr) counted_->add_owner();
    }
    Ref(Ref&& other) noexcept : counted_(std::exchange(other.counted_, nullptr)) {}
    Ref& operator=(Ref other) noexcept {
        std::swap(counted_, other.counted_);
        return *this;
    }
    ~Ref() { drop(counted_); }
    // Takes over an owner that is there already.
    static Ref adopted(T* counted) noexcept {
        Ref one;
        one.counted_ = counted;
        return one;
    }
    static void drop(T* counted) noexcept {
        if (counted != nullptr && counted->remove_owner()) delete counted;
    }
    T* get() const noexcept { return counted_; }
    T* operator->() const noexcept { return counted_; }
    T& operator*() const noexcept { return *counted_; }
    explicit operator bool() const noexcept { return counted_ != nullptr; }

private:
    T* counted_ = nullptr;
};

}  // namespace isthmus::c

// Lies within its runtime.
struct isthmus_device {
    isthmus::Device* cpp;
    isthmus_runtime* runtime;
    std::string name;
    const char* profile_date;  // nullptr: none
};

struct isthmus_runtime : isthmus::c::Counted {
    explicit isthmus_runtime(isthmus::Runtime opened) : cpp(std::move(opened)) {}
    isthmus_device* of(const isthmus::Device& device) noexcept { return &devices[device.index()]; }

    isthmus::Runtime cpp;
    std::vector<isthmus_device> devices;  // never grows behind opening
    std::string absence;                  // empty: none is missing
};

// In each handle the runtime is the first member: it goes last.
struct isthmus_stream {
    isthmus_stream(isthmus_device& of, isthmus::Stream stream)
        : runtime(*of.runtime), device(&of), cpp(std::move(stream)) {}
    isthmus::c::Ref<isthmus_runtime> runtime;
    isthmus_device* device;
    isthmus::Stream cpp;
};

struct isthmus_event {
    isthmus_event(isthmus_runtime& of, isthmus::Event event) : runtime(of), cpp(std::move(event)) {}
    isthmus::c::Ref<isthmus_runtime> runtime;
    isthmus::Event cpp;
};

struct isthmus_buffer : isthmus::c::Counted {
    isthmus_buffer(isthmus_device& of, isthmus::Buffer<std::byte> buffer, const void* foreign = nullptr)
        : runtime(*of.runtime), device(&of), adopted(foreign), cpp(std::move(buffer)) {}
    isthmus::c::Ref<isthmus_runtime> runtime;
    isthmus_device* device;
    const void* adopted;  // the address of other code's memory, which may be aligned for bytes only
    // Its const functions do not change the handle; nothing here moves or releases it. Mutable, because const handles
    // are sources of copies and reads.
    isthmus::Buffer<std::byte> cpp;
    std::shared_ptr<isthmus::detail::SharedPiece> exportable{};  // of a buffer that was made to be exported
};

namespace isthmus::c {

// `argument` names the struct in messages.
Result<SharedUse> use_of(const Call& call, const char* argument, const isthmus_shared_use& use);
// As isthmus_shared_use within another struct, or NULL: what `otherwise` says.
Result<SharedUse> use_at(const Call& call, const char* argument, const isthmus_shared_use* use);

inline Result<ArgumentUse> use_of_flags(const Call& call, const char* argument, std::uint32_t flags) {
    switch (flags) {
        case ISTHMUS_READ: return ArgumentUse::read;
        case ISTHMUS_WRITE: return ArgumentUse::write;
        case ISTHMUS_READ_WRITE: return ArgumentUse::read_write;
        default: return call.refuse(argument, "is " + std::to_string(flags), "use ISTHMUS_READ, ISTHMUS_WRITE or both");
    }
}

// The range as offset and size within the buffer; invalid_argument beyond its end. `argument`: the offset's name.
Result<std::size_t> size_in(const Call& call, const isthmus_buffer& buffer, std::uint64_t offset, std::uint64_t bytes,
                            const char* argument = "offset");

// Hands a new handle to the caller.
template <class H, class Made, class... More>
Result<void> make_handle(H** out, Result<Made> made, More&&... more) {
    if (!made) return std::move(made).error();
    *out = new H(std::forward<More>(more)..., std::move(made).value());
    return {};
}

}  // namespace isthmus::c
