// The directory in which a listener has its name: whose it is, who holds it, and getting from it to a socket without
// following a link.
#pragma once

#include <isthmus/file_descriptor.hpp>
#include <isthmus/result.hpp>

#include <platform/process_calls.hpp>

#include <chrono>
#include <string>
#include <utility>

namespace isthmus::inline v0::detail {

// A path that names its last component: opening "link/" or "link/." would follow the link, O_NOFOLLOW or not.
std::string without_trailing(std::string path);

// The name and the lock of a living listener. The lock is the open directory's (flock), so it ends with the process,
// however that ends: a name in a directory that nobody has locked is a dead listener's.
class ListenerPlace {
public:
    // Creates the directory where it is missing, checks and locks it, removes a dead listener's name, and listens.
    static Result<ListenerPlace> take(const std::string& asked, const platform::os::ProcessCalls& calls);
    ListenerPlace(ListenerPlace&&) noexcept = default;
    ListenerPlace& operator=(ListenerPlace&&) = delete;
    ~ListenerPlace() = default;  // closes: the lock ends with its last copy, the name stays

    int socket() const noexcept { return socket_.get(); }
    void end() noexcept;  // gives up name and lock, in forked children, too

private:
    ListenerPlace(FileDescriptor directory, const platform::os::ProcessCalls& calls)
        : directory_(std::move(directory)), calls_(&calls) {}
    FileDescriptor directory_;
    FileDescriptor socket_;
    const platform::os::ProcessCalls* calls_;
};

// A socket that is connected to the directory's listener. The directory belongs to this user, root, or the user who
// listens. A name without a listener is removed.
Result<FileDescriptor> connect_to_place(const std::string& asked, std::chrono::nanoseconds timeout,
                                        const platform::os::ProcessCalls& calls);

}  // namespace isthmus::inline v0::detail
