// SPDX-License-Identifier: Apache-2.0
// FileDescriptor: a file descriptor of this process with one owner, which closes it.
#pragma once

#include <isthmus/export.hpp>

#include <utility>

namespace isthmus {
inline namespace v0 {

// Closes the descriptor when destroyed. Movable; owns nothing after a move. Every descriptor that the library puts into
// one is closed by exec (O_CLOEXEC). Thread safety: as an int.
class [[nodiscard]] FileDescriptor {
public:
    FileDescriptor() noexcept = default;
    // Takes ownership of an open descriptor; negative: none.
    explicit FileDescriptor(int number) noexcept : number_(number < 0 ? -1 : number) {}
    FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    FileDescriptor& operator=(FileDescriptor&& other) noexcept {
        if (this != &other) {
            close();
            number_ = std::exchange(other.number_, -1);
        }
        return *this;
    }
    ~FileDescriptor() { close(); }

    int get() const noexcept { return number_; }                   // still owned here; -1: none
    int release() noexcept { return std::exchange(number_, -1); }  // the caller has to close it
    ISTHMUS_API void close() noexcept;
    explicit operator bool() const noexcept { return number_ >= 0; }

private:
    int number_ = -1;
};

}  // namespace v0
}  // namespace isthmus
