// SPDX-License-Identifier: Apache-2.0
// The directory of a listener's name: its ownership, its lock, and reaching the socket in it without following a link.
#pragma once

#include <isthmus/file_descriptor.hpp>
#include <isthmus/result.hpp>

#include <platform/process_calls.hpp>

#include <chrono>
#include <string>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

// Strips trailing "/" and "/.", because opening "link/" or "link/." would follow the link even with O_NOFOLLOW.
std::string without_trailing(std::string path);

// The name and lock of a living listener. The lock is a flock on the open directory, so it ends with the process in any
// case: a name in an unlocked directory belongs to a dead listener.
class ListenerPlace {
public:
    // Creates the directory if missing, checks and locks it, removes a dead listener's name, and listens.
    static Result<ListenerPlace> take(const std::string& asked, const platform::os::ProcessCalls& calls);
    ListenerPlace(ListenerPlace&&) noexcept = default;
    ListenerPlace& operator=(ListenerPlace&&) = delete;
    ~ListenerPlace() = default;  // closes: the lock ends with its last copy, the name stays

    int socket() const noexcept { return socket_.get(); }
    void end() noexcept;  // gives up name and lock, also for copies in forked children

private:
    ListenerPlace(FileDescriptor directory, const platform::os::ProcessCalls& calls)
        : directory_(std::move(directory)), calls_(&calls) {}
    FileDescriptor directory_;
    FileDescriptor socket_;
    const platform::os::ProcessCalls* calls_;
};

// A socket connected to the directory's listener. The directory must belong to this user, to root, or to the listening
// user. Removes a name without a listener.
Result<FileDescriptor> connect_to_place(const std::string& asked, std::chrono::nanoseconds timeout,
                                        const platform::os::ProcessCalls& calls);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
