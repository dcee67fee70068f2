// SPDX-License-Identifier: Apache-2.0
// Connections to other machines: options, listeners, greetings.
#include "ucx.hpp"

#include <isthmus/version.hpp>

#include <poll.h>

#include <algorithm>
#include <array>
#include <string>

using namespace isthmus;

struct isthmus_ucx_listener {
    explicit isthmus_ucx_listener(ucx::Listener made) : cpp(std::move(made)) {}
    ucx::Listener cpp;
};

namespace isthmus::c {

Result<void> same_version(const Call& call) {
    if (isthmus_version() == ISTHMUS_VERSION) return {};
    return Error(Code::unsupported,
                 std::string(call.name) +
                     ": libisthmus-c-ucx is of version " ISTHMUS_VERSION_STRING ", and libisthmus-c of " +
                     isthmus_version_text(),
                 "install both from one build");
}

}  // namespace isthmus::c

namespace {

Result<std::chrono::nanoseconds> time_of(const c::Call& call, const char* field, std::uint64_t given,
                                         std::chrono::nanoseconds otherwise) {
    if (given > INT64_MAX) return call.refuse(field, "exceeds INT64_MAX", "pass nanoseconds");
    return given == 0 ? otherwise : std::chrono::nanoseconds(static_cast<std::int64_t>(given));
}

Result<std::optional<ucx::Key>> key_of(const c::Call& call, const isthmus_ucx_options& given) {
    if (given.key_file != nullptr && given.key != nullptr) {
        return call.refuse("options.key", "is given beside options.key_file", "give one of them");
    }
    if (given.key_file != nullptr) {
        ISTHMUS_TRY(ucx::Key read, ucx::Key::load(given.key_file));
        return std::make_optional(read);
    }
    if (given.key == nullptr) return std::optional<ucx::Key>();
    std::array<std::byte, ucx::Key::size_bytes> bytes{};
    std::memcpy(bytes.data(), given.key, bytes.size());
    return std::make_optional<ucx::Key>(bytes);
}

Result<ucx::ConnectionOptions> options_of(const c::Call& call, const isthmus_ucx_options* from) {
    static_assert(ISTHMUS_UCX_KEY_BYTES == ucx::Key::size_bytes);
    constexpr isthmus_ucx_options otherwise = ISTHMUS_UCX_OPTIONS_INIT;
    ISTHMUS_TRY(const isthmus_ucx_options given,
                c::read_struct(call, "options", from, sizeof(isthmus_ucx_options), otherwise));
    ucx::ConnectionOptions options;
    ISTHMUS_TRY(options.key, key_of(call, given));
    ISTHMUS_TRY(options.step_timeout,
                time_of(call, "options.step_timeout_ns", given.step_timeout_ns, options.step_timeout));
    ISTHMUS_TRY(options.setup_timeout,
                time_of(call, "options.setup_timeout_ns", given.setup_timeout_ns, options.setup_timeout));
    ISTHMUS_TRY(options.silence, time_of(call, "options.silence_ns", given.silence_ns, options.silence));
    if (given.most_bytes != 0) options.max_bytes = given.most_bytes;
    if (given.stopped != nullptr) {
        options.stopped = [stopped = given.stopped, context = given.stopped_context] { return stopped(context) != 0; };
    }
    return options;
}

}  // namespace

isthmus_code isthmus_ucx_listener_create(const char* address, const isthmus_ucx_options* options,
                                         isthmus_ucx_listener** listener, isthmus_error** error) {
    return c::guarded("isthmus_ucx_listener_create", error, [&](const c::Call& call) -> Result<void> {
        c::prepare_errors();
        ISTHMUS_TRY(call.needs({{"address", address}, {"listener", listener}}));
        ISTHMUS_TRY(const ucx::ConnectionOptions asked, options_of(call, options));
        ISTHMUS_TRY(const ucx::Address parsed, ucx::Address::parse(address));
        ISTHMUS_TRY(ucx::Listener made, ucx::Listener::create(parsed, asked));
        *listener = new isthmus_ucx_listener(std::move(made));
        return {};
    });
}

uint16_t isthmus_ucx_listener_port(const isthmus_ucx_listener* listener) {
    return listener == nullptr ? std::uint16_t{0} : listener->cpp.port();
}
int isthmus_ucx_listener_fd(const isthmus_ucx_listener* listener) {
    return listener == nullptr ? -1 : listener->cpp.descriptor();
}
void isthmus_ucx_listener_free(isthmus_ucx_listener* listener) {
    delete listener;
}

isthmus_code isthmus_ucx_listener_accept(isthmus_ucx_listener* listener, int64_t wait_ns, int* fd,
                                         isthmus_error** error) {
    return c::guarded("isthmus_ucx_listener_accept", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"listener", listener}, {"fd", fd}}));
        ISTHMUS_TRY(call.wait(wait_ns));
        using Clock = std::chrono::steady_clock;
        const std::chrono::nanoseconds most = wait_ns == ISTHMUS_WAIT_DEFAULT
                                                  ? std::chrono::nanoseconds(std::chrono::seconds(1))
                                                  : std::chrono::nanoseconds(wait_ns);
        const Clock::time_point begin = Clock::now();
        for (;;) {
            Result<FileDescriptor> accepted = listener->cpp.accept();
            if (accepted) {
                *fd = accepted->release();
                return {};
            }
            const std::chrono::nanoseconds left = most - (Clock::now() - begin);
            if (accepted.code() != Code::not_ready) return std::move(accepted).error();
            if (left <= std::chrono::nanoseconds(0)) {
                return Error(wait_ns == ISTHMUS_WAIT_NEVER ? Code::not_ready : Code::timed_out,
                             std::string(call.name) + ": no receiver within " + std::to_string(most.count()) + " ns",
                             "call again, or wait with poll()");
            }
            const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
            const timespec time{static_cast<time_t>(seconds.count()), static_cast<long>((left - seconds).count())};
            pollfd wait{listener->cpp.descriptor(), POLLIN, 0};
            (void)ppoll(&wait, 1, &time, nullptr);
        }
    });
}

isthmus_code isthmus_ucx_connection_greet(int fd, const isthmus_ucx_options* options,
                                          isthmus_ucx_connection** connection, isthmus_error** error) {
    return c::guarded("isthmus_ucx_connection_greet", error, [&](const c::Call& call) -> Result<void> {
        FileDescriptor taken(fd);  // first of all: whatever fails, it is closed
        c::prepare_errors();
        ISTHMUS_TRY(call.needs({{"connection", connection}}));
        if (fd < 0) return call.refuse("fd", "is " + std::to_string(fd), "pass what the listener accepted");
        ISTHMUS_TRY(const ucx::ConnectionOptions asked, options_of(call, options));
        ISTHMUS_TRY(ucx::Connection made, ucx::Connection::greet(std::move(taken), asked));
        *connection = new isthmus_ucx_connection(std::move(made));
        return {};
    });
}

isthmus_code isthmus_ucx_connection_connect(const char* address, const isthmus_ucx_options* options,
                                            isthmus_ucx_connection** connection, isthmus_error** error) {
    return c::guarded("isthmus_ucx_connection_connect", error, [&](const c::Call& call) -> Result<void> {
        c::prepare_errors();
        ISTHMUS_TRY(call.needs({{"address", address}, {"connection", connection}}));
        ISTHMUS_TRY(const ucx::ConnectionOptions asked, options_of(call, options));
        ISTHMUS_TRY(const ucx::Address parsed, ucx::Address::parse(address));
        ISTHMUS_TRY(ucx::Connection made, ucx::Connection::connect(parsed, asked));
        *connection = new isthmus_ucx_connection(std::move(made));
        return {};
    });
}

void isthmus_ucx_connection_free(isthmus_ucx_connection* connection) {
    delete connection;
}
