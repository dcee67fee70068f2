// Closing, once.
#include <isthmus/file_descriptor.hpp>

#include <unistd.h>

#include <cerrno>

namespace isthmus::inline v0 {

// After EINTR the number is free already (Linux): closing it again could close somebody else's.
void FileDescriptor::close() noexcept {
    if (number_ < 0) return;
    const int before = errno;
    ::close(std::exchange(number_, -1));
    errno = before;
}

}  // namespace isthmus::inline v0
