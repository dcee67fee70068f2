// SPDX-License-Identifier: Apache-2.0
// FileDescriptor: closes exactly once.
#include <isthmus/file_descriptor.hpp>

#include <unistd.h>

#include <cerrno>

namespace isthmus {
inline namespace v0 {

// After EINTR the descriptor is free already (Linux): a second close could close another owner's descriptor.
void FileDescriptor::close() noexcept {
    if (number_ < 0) return;
    const int before = errno;
    ::close(std::exchange(number_, -1));
    errno = before;
}

}  // namespace v0
}  // namespace isthmus
