// SPDX-License-Identifier: Apache-2.0
// Error and the names of its codes.
#include <isthmus/result.hpp>

#include "error_entry.hpp"
#include "error_places.hpp"

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>

namespace isthmus {
inline namespace v0 {

namespace {

struct Texts {
    std::string message;
    std::string remedy;
};

std::atomic<void (*)(std::string_view)> errors_watcher{nullptr};

std::string_view id_of(detail::AnyErrorEntry entry) noexcept {
    return reinterpret_cast<const char*>(entry + 1);
}
std::string_view message_of(detail::AnyErrorEntry entry) noexcept {
    return id_of(entry).data() + sizeof(detail::ErrorEntry<1, 1>::id);
}
std::string_view remedy_of(detail::AnyErrorEntry entry) noexcept {
    const std::string_view message = message_of(entry);
    return message.data() + message.size() + 1;
}

// The texts of an entry's fields, one after the other: four bytes for the length, then the text.
class FieldValues {
public:
    void add(const TextField& field) {
        TextField::Digits digits;
        const std::string_view text = field.text(digits);
        const auto length = static_cast<std::uint32_t>(text.size());
        char bytes[sizeof length];
        std::memcpy(bytes, &length, sizeof length);
        bytes_.append(std::string_view(bytes, sizeof bytes)).append(text);
    }
    std::string_view at(std::size_t place) const noexcept {
        for (std::string_view rest = bytes_; rest.size() >= sizeof(std::uint32_t); --place) {
            std::uint32_t length = 0;
            std::memcpy(&length, rest.data(), sizeof length);
            rest.remove_prefix(sizeof length);
            if (place == 0) return rest.substr(0, length);
            rest.remove_prefix(length);
        }
        return {};
    }

private:
    TextOf<1280> bytes_;  // a fault in a kernel names what may have caused it
};

template <class Line>
Line in_one_line(const Error& error, std::string_view message, std::string_view remedy) {
    Line line;
    line.append(name(error.code())).append(": ").append(message);
    const bool ended = std::string_view(line).back() == '.';
    if (!error.call().empty()) {
        line.append(" (").append(error.call());
        // 0: the call was refused before it was made, or has no code of its own (dlopen).
        if (error.driver_code() != 0) {
            TextField::Digits digits;
            line.append(" returned ").append(TextField(error.driver_code()).text(digits));
        }
        line.append(")");
    }
    if (!remedy.empty()) line.append(ended && error.call().empty() ? " Try: " : ". Try: ").append(remedy);
    if (!error.id().empty()) line.append(" [").append(error.id()).append("]");
    return line;
}

template <class Line>
Line filled(std::string_view format, const detail::ErrorFields& fields, const FieldValues& values) {
    Line line;
    for (detail::FieldPlace place = detail::next_field(format); place.found(); place = detail::next_field(format)) {
        line.append(format.substr(0, place.begin)).append(values.at(fields.place_of(place.name)));
        format.remove_prefix(place.end);
    }
    line.append(format);
    return line;
}

detail::ErrorFields fields_of(detail::AnyErrorEntry entry) noexcept {
    detail::ErrorFields fields;
    fields.add_all_of(message_of(entry));
    fields.add_all_of(remedy_of(entry));
    return fields;
}

// Memory of errors. A program that is refused again and again, as one that asks whether work has ended, takes it from a
// few places instead of the heap. A place knows where it belongs, because two copies of this file may be in a process.
template <class T>
class Places {
public:
    void* take() {
        std::uint32_t seen = taken_.load(std::memory_order_relaxed);
        while (seen != all) {
            const std::uint32_t bit = ~seen & (seen + 1);  // the lowest that is free
            // Acquire: pairs with the release in give_back(), so that the earlier user is done.
            if (taken_.compare_exchange_weak(seen, seen | bit, std::memory_order_acquire, std::memory_order_relaxed)) {
                Place& place = places_[std::countr_zero(bit)];
                place.owner = &taken_;
                place.bit = bit;
                return place.room;
            }
        }
        return (new Place)->room;
    }
    static void give_back(void* room) noexcept {
        Place* const place = reinterpret_cast<Place*>(static_cast<unsigned char*>(room) - offsetof(Place, room));
        if (place->owner == nullptr) return delete place;
        place->owner->fetch_and(~place->bit, std::memory_order_release);
    }
    // Writes to each place and changes nothing; another thread may take, use and give back places meanwhile.
    void touch() noexcept {
        for (Place& place : places_) {
            place.touched.fetch_or(0, std::memory_order_relaxed);
            place.end.fetch_or(0, std::memory_order_relaxed);
        }
    }

private:
    struct Place {
        std::atomic<std::uint32_t>* owner = nullptr;  // nullptr: from the heap
        std::uint32_t bit = 0;
        std::atomic<std::uint32_t> touched{0};  // always 0
        alignas(std::max_align_t) unsigned char room[sizeof(T)] = {};
        std::atomic<std::uint32_t> end{0};  // always 0
    };
    static_assert(sizeof(Place) < 4096, "a page between the two words would not be touched");
    static constexpr std::uint32_t all = ~std::uint32_t{0};
    std::atomic<std::uint32_t> taken_{0};
    Place places_[32] = {};
};

}  // namespace

struct Error::Detail {
    Code code = Code::invalid_handle;
    int driver_code = 0;
    detail::AnyErrorEntry entry = nullptr;  // in the catalogue; nullptr: `texts` were given
    TextOf<64> call;
    FieldValues values;
    std::atomic<const Texts*> texts{nullptr};  // for an entry: composed when first read

    Detail() = default;
    Detail(const Detail& other)
        : code(other.code),
          driver_code(other.driver_code),
          entry(other.entry),
          call(other.call),
          values(other.values),
          texts(other.entry == nullptr && other.texts.load() != nullptr ? new Texts(*other.texts.load()) : nullptr) {}
    Detail& operator=(const Detail&) = delete;
    static Places<Detail>& places() noexcept;
    static void* operator new(std::size_t);
    static void operator delete(void* memory) noexcept;
    ~Detail() { delete texts.load(std::memory_order_acquire); }

    // nullptr: out of memory.
    const Texts* in_words() noexcept {
        const Texts* known = texts.load(std::memory_order_acquire);
        if (known != nullptr || entry == nullptr) return known;
#if defined(__cpp_exceptions)
        try {
            return put_into_words();
        } catch (const std::bad_alloc&) {
            return nullptr;
        }
#else
        return put_into_words();
#endif
    }

private:
    const Texts* put_into_words() {
        const detail::ErrorFields fields = fields_of(entry);
        auto made = std::make_unique<Texts>(Texts{filled<std::string>(message_of(entry), fields, values),
                                                  filled<std::string>(remedy_of(entry), fields, values)});
        const Texts* known = nullptr;
        if (texts.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) return made.release();
        return known;  // another thread was first
    }
};

Places<Error::Detail>& Error::Detail::places() noexcept {
    static constinit Places<Detail> places;
    return places;
}
void* Error::Detail::operator new(std::size_t) {
    return places().take();
}
void Error::Detail::operator delete(void* memory) noexcept {
    Places<Detail>::give_back(memory);
}

namespace detail {

struct ErrorMaker {
    static Error make(AnyErrorEntry entry, Code code, std::initializer_list<TextField> fields) {
        auto made = std::make_unique<Error::Detail>();
        made->code = code;
        made->entry = entry;
        for (const TextField& field : fields) made->values.add(field);
        return Error(std::move(made));
    }
    static void touch_places() noexcept { Error::Detail::places().touch(); }
    static Sentence words(const Error& error, std::string_view (*format_of)(AnyErrorEntry),
                          std::string_view (Error::*text)() const noexcept) {
        const Error::Detail* const told = error.detail_.get();
        if (told == nullptr || told->entry == nullptr) return Sentence().append((error.*text)());
        return filled<Sentence>(format_of(told->entry), fields_of(told->entry), told->values);
    }
};

Sentence message_in_words(const Error& error) {
    return ErrorMaker::words(
        error, [](AnyErrorEntry entry) { return message_of(entry); }, &Error::message);
}
Sentence remedy_in_words(const Error& error) {
    return ErrorMaker::words(
        error, [](AnyErrorEntry entry) { return remedy_of(entry); }, &Error::remedy);
}

ErrorLine text_in_words(const Error& error) {
    return in_one_line<ErrorLine>(error, message_in_words(error), remedy_in_words(error));
}

void touch_places_of_errors() noexcept {
    ErrorMaker::touch_places();
}

Error error_of(AnyErrorEntry entry, Code code, std::initializer_list<TextField> fields) {
    if (const auto watcher = errors_watcher.load(std::memory_order_acquire); watcher != nullptr) watcher(id_of(entry));
    return ErrorMaker::make(entry, code, fields);
}

void watch_errors(void (*watcher)(std::string_view id)) noexcept {
    errors_watcher.store(watcher, std::memory_order_release);
}

}  // namespace detail

Error::Error(Code code, std::string message, std::string remedy) : detail_(std::make_unique<Detail>()) {
    detail_->code = code;
    detail_->texts = new Texts{std::move(message), std::move(remedy)};
}
Error::Error(std::unique_ptr<Detail> detail) noexcept : detail_(std::move(detail)) {}
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
    detail_->call = {};
    detail_->call.append(call);
    detail_->driver_code = driver_code;
    return std::move(*this);
}

Code Error::code() const noexcept {
    return detail_ ? detail_->code : Code::invalid_handle;
}
std::string_view Error::id() const noexcept {
    return detail_ && detail_->entry != nullptr ? id_of(detail_->entry) : std::string_view();
}
int Error::driver_code() const noexcept {
    return detail_ ? detail_->driver_code : 0;
}
std::string_view Error::call() const noexcept {
    return detail_ ? detail_->call.view() : std::string_view();
}
std::string_view Error::message() const noexcept {
    if (!detail_) return {};
    if (const Texts* texts = detail_->in_words(); texts != nullptr) return texts->message;
    return detail_->entry != nullptr ? message_of(detail_->entry) : std::string_view();
}
std::string_view Error::remedy() const noexcept {
    if (!detail_) return {};
    if (const Texts* texts = detail_->in_words(); texts != nullptr) return texts->remedy;
    return detail_->entry != nullptr ? remedy_of(detail_->entry) : std::string_view();
}

std::string Error::text() const {
    return in_one_line<std::string>(*this, message(), remedy());
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
        case Code::ended: return "ended";
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

}  // namespace v0
}  // namespace isthmus
