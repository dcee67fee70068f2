// Error and the names of its codes.
#include <isthmus/result.hpp>

#include <exception>

namespace isthmus::inline v0 {

struct Error::Detail {
    Code code = Code::invalid_handle;
    int driver_code = 0;
    std::string call;
    std::string message;
    std::string remedy;
};

Error::Error(Code code, std::string message, std::string remedy)
    : detail_(std::make_unique<Detail>(Detail{code, 0, {}, std::move(message), std::move(remedy)})) {}
Error::Error(const Error& other) : detail_(other.detail_ ? std::make_unique<Detail>(*other.detail_) : nullptr) {}
Error& Error::operator=(const Error& other) {
    if (this != &other) detail_ = other.detail_ ? std::make_unique<Detail>(*other.detail_) : nullptr;
    return *this;
}
Error::Error(Error&&) noexcept = default;
Error& Error::operator=(Error&&) noexcept = default;
Error::~Error() = default;

Error&& Error::from_call(std::string_view call, int driver_code) && {
    if (!detail_) detail_ = std::make_unique<Detail>();
    detail_->call = call;
    detail_->driver_code = driver_code;
    return std::move(*this);
}

Code Error::code() const noexcept {
    return detail_ ? detail_->code : Code::invalid_handle;
}
int Error::driver_code() const noexcept {
    return detail_ ? detail_->driver_code : 0;
}
std::string_view Error::call() const noexcept {
    return detail_ ? std::string_view(detail_->call) : std::string_view();
}
std::string_view Error::message() const noexcept {
    return detail_ ? std::string_view(detail_->message) : std::string_view();
}
std::string_view Error::remedy() const noexcept {
    return detail_ ? std::string_view(detail_->remedy) : std::string_view();
}

std::string Error::text() const {
    std::string line(name(code()));
    line.append(": ").append(message());
    if (!call().empty()) {
        line.append(" (").append(call());
        // 0: the call was refused before it was made, or has no code of its own (dlopen).
        if (driver_code() != 0) line.append(" returned ").append(std::to_string(driver_code()));
        line.append(")");
    }
    if (!remedy().empty()) line.append(line.back() == '.' ? " Try: " : ". Try: ").append(remedy());
    return line;
}

std::string_view name(Code code) noexcept {
    switch (code) {
        case Code::ok: return "ok";
        case Code::invalid_argument: return "invalid_argument";
        case Code::wrong_device: return "wrong_device";
        case Code::not_accessible: return "not_accessible";
        case Code::in_use: return "in_use";
        case Code::unsupported: return "unsupported";
        case Code::out_of_memory: return "out_of_memory";
        case Code::not_permitted: return "not_permitted";
        case Code::timed_out: return "timed_out";
        case Code::not_ready: return "not_ready";
        case Code::device_lost: return "device_lost";
        case Code::no_driver: return "no_driver";
        case Code::driver_too_old: return "driver_too_old";
        case Code::driver_mismatch: return "driver_mismatch";
        case Code::no_device: return "no_device";
        case Code::system_limit: return "system_limit";
        case Code::no_gpu_code: return "no_gpu_code";
        case Code::invalid_handle: return "invalid_handle";
        case Code::forked: return "forked";
        case Code::driver_error: return "driver_error";
        case Code::system_error: return "system_error";
        case Code::capture_error: return "capture_error";
        case Code::unverified: return "unverified";
        case Code::already_released: return "already_released";
        case Code::interior_pointer: return "interior_pointer";
        case Code::unknown_pointer: return "unknown_pointer";
        case Code::not_ordered: return "not_ordered";
        case Code::peer_lost: return "peer_lost";
        case Code::peer_broke_rules: return "peer_broke_rules";
        case Code::overtaken: return "overtaken";
    }
    return "unknown";
}

namespace detail {
void raise(const Error& error) {
#if defined(__cpp_exceptions)
    throw BadResult(error);
#else
    (void)error;
    std::terminate();
#endif
}
}  // namespace detail

BadResult::BadResult(const Error& error) : error_(error), text_(error.text()) {}
BadResult::~BadResult() = default;
const char* BadResult::what() const noexcept {
    return text_.c_str();
}

}  // namespace isthmus::inline v0
