// SPDX-License-Identifier: Apache-2.0
// AdoptedPart: tells the owner of adopted memory that it is no longer used.
#include "piece.hpp"

#include "process.hpp"

#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

AdoptedPart::AdoptedPart(void* memory, std::size_t length, Release release, isthmus_adopt_callbacks c_release)
    : pointer(memory),
      bytes(length),
      release_(std::move(release)),
      c_release_(c_release),
      generation_(process::generation()) {}

AdoptedPart::~AdoptedPart() {
    if (told_ || generation_ != process::generation()) return;
    if (release_) release_(pointer, bytes);
    if (c_release_.release != nullptr) c_release_.release(c_release_.context, pointer, bytes);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
