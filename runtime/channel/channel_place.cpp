// SPDX-License-Identifier: Apache-2.0
// Directories are opened once and checked through their descriptors. Names are reached through /proc/self/fd: no path
// is resolved twice, and none is too long for a socket address.
#include "channel_place.hpp"

#include "channel_errors.hpp"
#include "channel_link.hpp"
#include "composed.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

constexpr const char* place_name = "channel";
constexpr int waiting_connections = 8;
// 1 ms each. A listener that ends removes its name before it gives the lock back.
constexpr int lock_tries = 20;
// So many where nobody has the name: removing a dead one holds the lock for some calls, between which a process may
// stand still.
constexpr int lock_tries_beside_no_name = 5000;

sockaddr_un address_of(const std::string& path) noexcept {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), std::min(path.size() + 1, sizeof(address.sun_path) - 1));
    return address;
}
std::string path_of(int fd) {
    return "/proc/self/fd/" + std::to_string(fd);
}

void pause_1ms(const platform::os::ProcessCalls& calls) noexcept {
    const timespec time{0, 1'000'000};
    calls.wait(nullptr, 0, &time);
}

// `directory`: a result of without_trailing().
Result<FileDescriptor> open_directory(const std::string& directory, int flags,
                                      const platform::os::ProcessCalls& calls) {
    FileDescriptor opened(calls.open(directory.c_str(), flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (opened) return opened;
    const int error = errno;
    if (error == ELOOP || error == ENOTDIR) return make_error<errors::channel_directory_is_a_link>(directory);
    return channel_error("open", error, composed("the directory {} could not be opened", directory));
}

// The owner of a directory can replace the name in it. So if that is another user, only that user may listen there.
Result<void> check_owner(const std::string& directory, uid_t owner, int socket,
                         const platform::os::ProcessCalls& calls) {
    if (owner == 0 || owner == calls.geteuid()) return {};
    ucred peer{0, static_cast<uid_t>(-1), static_cast<gid_t>(-1)};
    socklen_t bytes = sizeof peer;
    if (calls.getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) {
        return channel_error("getsockopt(SO_PEERCRED)", errno, "the system does not say who is at the other end");
    }
    if (peer.uid == owner) return {};
    return make_error<errors::channel_directory_not_of_its_listener>(directory, owner, peer.uid);
}

bool locked(int directory, const platform::os::ProcessCalls& calls) noexcept {
    return calls.flock(directory, LOCK_EX | LOCK_NB) == 0;
}

// Whether some process listens under the name, or is about to, or that is unknown. Asked with a socket of another kind,
// so that a listener gets no connection to accept from it.
bool has_living_name(int directory, const platform::os::ProcessCalls& calls) {
    const FileDescriptor name(calls.openat(directory, place_name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!name) return errno != ENOENT;
    const FileDescriptor socket(calls.socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket) return true;
    const sockaddr_un address = address_of(path_of(name.get()));
    const auto* const to = reinterpret_cast<const sockaddr*>(&address);
    return calls.connect(socket.get(), to, sizeof(address)) == 0 || errno != ECONNREFUSED;
}

Result<void> check_owned(int directory, const std::string& name, const platform::os::ProcessCalls& calls) {
    struct stat facts {};
    if (calls.fstat(directory, &facts) != 0)
        return channel_error("fstat", errno, composed("{} could not be checked", name));
    if (facts.st_uid != calls.geteuid()) {
        return make_error<errors::channel_directory_of_another_user>(name, facts.st_uid);
    }
    if ((facts.st_mode & 077) != 0) return make_error<errors::channel_directory_open_to_others>(name);
    return {};
}

// Whether the name in a locked directory is a dead listener's: a socket of this user that refuses connections. true: it
// is; false: no such name exists. Anything else under that name is refused.
Result<bool> has_dead_name(int at, const std::string& directory, const platform::os::ProcessCalls& calls) {
    const FileDescriptor name(calls.openat(at, place_name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!name) {
        if (errno == ENOENT) return false;
        return channel_error("openat", errno,
                             composed("the entry of a listener in {} could not be checked", directory));
    }
    struct stat facts {};
    if (calls.fstat(name.get(), &facts) != 0)
        return channel_error("fstat", errno, composed("{} could not be checked", directory));
    if (!S_ISSOCK(facts.st_mode)) return make_error<errors::listener_entry_no_socket>(directory, place_name);
    if (facts.st_uid != calls.geteuid()) {
        return make_error<errors::listener_entry_of_another_user>(directory, place_name, facts.st_uid);
    }
    const FileDescriptor socket(calls.socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) return channel_error("socket", errno, "a listener's name could not be checked");
    const sockaddr_un address = address_of(path_of(name.get()));
    while (calls.connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
        const int error = errno;
        if (error == ECONNREFUSED) return true;
        if (error == EINTR) continue;
        if (error == EAGAIN || error == EPROTOTYPE) break;  // its queue is full, or it is a socket of another kind
        return channel_error("connect", error, composed("the listener's name in {} could not be checked", directory));
    }
    return make_error<errors::listener_entry_in_use>(place_name, directory);
}

// Removes the name if its listener is dead. A listener that is starting holds the lock.
void remove_dead_name(int directory, const platform::os::ProcessCalls& calls) noexcept {
    const FileDescriptor readable(calls.openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!readable || !locked(readable.get(), calls)) return;
    const Result<bool> dead = has_dead_name(readable.get(), {}, calls);
    if (dead && *dead) calls.unlinkat(readable.get(), place_name, 0);
}

// Whether the name now belongs to something other than a socket.
bool was_replaced(int directory, const platform::os::ProcessCalls& calls) noexcept {
    const FileDescriptor name(calls.openat(directory, place_name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat facts {};
    return name && calls.fstat(name.get(), &facts) == 0 && !S_ISSOCK(facts.st_mode);
}

}  // namespace

std::string without_trailing(std::string path) {
    for (;;) {
        const bool slash = path.size() > 1 && path.back() == '/';
        const bool dot = path.size() > 1 && path.back() == '.' && path[path.size() - 2] == '/';
        if (!slash && !dot) return path;
        path.pop_back();
    }
}

Result<ListenerPlace> ListenerPlace::take(const std::string& asked, const platform::os::ProcessCalls& calls) {
    if (asked.empty()) return make_error<errors::listener_without_directory>();
    const std::string directory = without_trailing(asked);
    if (calls.mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
        return channel_error("mkdir", errno, composed("the directory {} could not be made", directory));
    }
    Result<FileDescriptor> opened = open_directory(directory, O_RDONLY, calls);
    if (!opened) return std::move(opened).error();
    ListenerPlace place(std::move(opened).value(), calls);
    const int at = place.directory_.get();
    if (Result<void> fine = check_owned(at, directory, calls); !fine) return std::move(fine).error();
    for (int tries = 1; !locked(at, calls); ++tries) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            return channel_error("flock", errno, composed("the directory {} could not be locked", directory));
        }
        const bool in_use = tries >= lock_tries && has_living_name(at, calls);
        if (in_use || tries == lock_tries_beside_no_name) {
            return make_error<errors::listener_directory_in_use>(directory).from_call("flock", EWOULDBLOCK);
        }
        pause_1ms(calls);
    }
    Result<bool> dead = has_dead_name(at, directory, calls);
    if (!dead) return std::move(dead).error();
    if (*dead && calls.unlinkat(at, place_name, 0) != 0 && errno != ENOENT) {
        return channel_error("unlinkat", errno,
                             composed("a dead listener's name in {} could not be removed", directory));
    }
    place.socket_ = FileDescriptor(calls.socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!place.socket_) return channel_error("socket", errno, "a listener could not be made");
    const sockaddr_un address = address_of(composed("{}/{}", path_of(at), place_name));
    if (calls.bind(place.socket(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
        return channel_error("bind", errno,
                             composed("a listener could not get its name in {} (is /proc mounted?)", directory));
    }
    if (calls.listen(place.socket(), waiting_connections) != 0) {
        const int error = errno;
        place.end();
        return channel_error("listen", error, composed("a listener could not be opened in {}", directory));
    }
    return place;
}

void ListenerPlace::end() noexcept {
    if (!was_replaced(directory_.get(), *calls_)) calls_->unlinkat(directory_.get(), place_name, 0);
    // shutdown() also ends it if a forked child still holds copies of both.
    if (socket_) calls_->shutdown(socket_.get(), SHUT_RDWR);
    calls_->flock(directory_.get(), LOCK_UN);
}

Result<FileDescriptor> connect_to_place(const std::string& asked, std::chrono::nanoseconds timeout,
                                        const platform::os::ProcessCalls& calls) {
    const std::string directory = without_trailing(asked);
    Result<FileDescriptor> opened = open_directory(directory, O_PATH, calls);
    if (!opened) {
        if (opened.error().driver_code() == ENOENT) return make_error<errors::no_listener>(directory);
        return std::move(opened).error();
    }
    struct stat facts {};
    if (calls.fstat(opened->get(), &facts) != 0)
        return channel_error("fstat", errno, composed("{} could not be checked", directory));
    if ((facts.st_mode & 022) != 0) return make_error<errors::channel_directory_writable_by_others>(directory);
    const uid_t owner = facts.st_uid;
    const FileDescriptor name(calls.openat(opened->get(), place_name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!name) {
        if (errno == ENOENT) return make_error<errors::no_listener>(directory);
        return channel_error("openat", errno, composed("the listener in {} could not be reached", directory));
    }
    if (calls.fstat(name.get(), &facts) != 0)
        return channel_error("fstat", errno, composed("{} could not be checked", directory));
    if (!S_ISSOCK(facts.st_mode)) return make_error<errors::channel_entry_no_socket>(directory, place_name);
    FileDescriptor socket(calls.socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) return channel_error("socket", errno, "a channel could not be made");
    const sockaddr_un address = address_of(path_of(name.get()));
    const ChannelDeadline deadline = after(timeout);
    while (calls.connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
        const int error = errno;
        if (error == ECONNREFUSED) {
            remove_dead_name(opened->get(), calls);
            return make_error<errors::no_listener>(directory);
        }
        if (error != EAGAIN && error != EINTR) {
            return channel_error("connect", error, composed("the listener in {} could not be reached", directory));
        }
        // EAGAIN: the listener's queue of connections to accept is full.
        if (std::chrono::steady_clock::now() >= deadline) {
            return make_error<errors::listener_accepts_nobody>(directory);
        }
        pause_1ms(calls);
    }
    if (Result<void> fine = check_owner(directory, owner, socket.get(), calls); !fine) return std::move(fine).error();
    return socket;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
