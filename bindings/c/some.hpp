// SPDX-License-Identifier: Apache-2.0
// Some<T, n>: as many objects as a call asks for, n of them without the heap.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace isthmus::c {

template <class T, std::size_t n>
class Some {
public:
    explicit Some(std::size_t count) {
        if (count > n) more_.resize(count);
    }
    Some(const Some&) = delete;
    Some& operator=(const Some&) = delete;
    T* data() noexcept { return more_.empty() ? few_.data() : more_.data(); }
    T& operator[](std::size_t at) noexcept { return data()[at]; }

private:
    std::array<T, n> few_{};
    std::vector<T> more_;
};

}  // namespace isthmus::c
