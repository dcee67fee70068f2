// SPDX-License-Identifier: Apache-2.0
// NvtxObserver: what a runtime does as NVTX ranges and marks, beside the kernels in Nsight Systems. Header only, over
// the program's own NVTX 3 headers (CUDA's include/nvtx3, or the package nvidia-nvtx); nothing is linked but libdl.
#pragma once

#include <isthmus/observer.hpp>

#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace isthmus {
inline namespace v0 {

// Domain "isthmus"; each sort of span and mark is a category; the payload is the bytes. Spans are ranges of their
// thread (nvtxDomainRangePush); host views and native scopes, which may overlap, are marks at their begin and end.
// Lives longer than all that the runtime made. The callbacks allocate nothing; NVTX itself does at the first call of a
// thread.
class NvtxObserver {
public:
    // `next` is told everything behind NVTX.
    explicit NvtxObserver(const ObserverCallbacks* next = nullptr) : domain_(nvtxDomainCreateA("isthmus")) {
        if (next != nullptr) next_ = *next;
        for (std::uint32_t span = 0; span < span_count; ++span) {
            name_category(1 + span, isthmus::name(static_cast<Span>(span)));
        }
        for (std::uint32_t mark = 0; mark < mark_count; ++mark) {
            name_category(1 + span_count + mark, isthmus::name(static_cast<Mark>(mark)));
        }
        callbacks_.context = this;
        callbacks_.begin = [](void* self, Span span, std::string_view name, const ObservedFacts& facts) noexcept {
            static_cast<NvtxObserver*>(self)->begin(span, name, facts);
        };
        callbacks_.end = [](void* self, Span span, std::string_view name, const ObservedFacts& facts) noexcept {
            static_cast<NvtxObserver*>(self)->end(span, name, facts);
        };
        callbacks_.mark = [](void* self, Mark mark, std::string_view name, const ObservedFacts& facts) noexcept {
            static_cast<NvtxObserver*>(self)->mark(mark, name, facts);
        };
    }
    NvtxObserver(const NvtxObserver&) = delete;
    NvtxObserver& operator=(const NvtxObserver&) = delete;
    ~NvtxObserver() { nvtxDomainDestroy(domain_); }

    const ObserverCallbacks* callbacks() const noexcept { return &callbacks_; }  // for RuntimeOptions::observer

private:
    // A text that ends with 0, as NVTX takes it; cut where it is too long.
    class Text {
    public:
        Text(std::string_view first, std::string_view second = {}) noexcept {
            append(first);
            if (!second.empty()) append(": ");
            append(second);
            text_[length_] = 0;
        }
        const char* c_str() const noexcept { return text_.data(); }

    private:
        void append(std::string_view more) noexcept {
            const std::size_t fits = std::min(more.size(), text_.size() - 1 - length_);
            // Unlike memcpy(), copy() also takes an empty text without an address.
            length_ += more.copy(text_.data() + length_, fits);
        }
        std::array<char, 160> text_;
        std::size_t length_ = 0;
    };

    static bool is_scope(Span span) noexcept { return span == Span::host_view || span == Span::native_scope; }
    static std::uint32_t category(Span span) noexcept { return 1 + static_cast<std::uint32_t>(span); }
    static std::uint32_t category(Mark mark) noexcept { return 1 + span_count + static_cast<std::uint32_t>(mark); }

    void name_category(std::uint32_t category, std::string_view name) const noexcept {
        nvtxDomainNameCategoryA(domain_, category, Text(name).c_str());
    }
    static nvtxEventAttributes_t attributes(std::uint32_t category, const Text& text, const ObservedFacts& facts) {
        nvtxEventAttributes_t event{};
        event.version = NVTX_VERSION;
        event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
        event.category = category;
        event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
        event.payload.ullValue = facts.bytes;
        event.messageType = NVTX_MESSAGE_TYPE_ASCII;
        event.message.ascii = text.c_str();
        return event;
    }

    void begin(Span span, std::string_view name, const ObservedFacts& facts) noexcept {
        const Text text(is_scope(span) ? std::string_view("opened") : isthmus::name(span), name);
        const nvtxEventAttributes_t event = attributes(category(span), text, facts);
        if (is_scope(span)) {
            nvtxDomainMarkEx(domain_, &event);
        } else {
            (void)nvtxDomainRangePushEx(domain_, &event);
        }
        if (next_.begin != nullptr) next_.begin(next_.context, span, name, facts);
    }
    void end(Span span, std::string_view name, const ObservedFacts& facts) noexcept {
        if (is_scope(span)) {
            const Text text("closed", name);
            const nvtxEventAttributes_t event = attributes(category(span), text, facts);
            nvtxDomainMarkEx(domain_, &event);
        } else {
            (void)nvtxDomainRangePop(domain_);
        }
        if (next_.end != nullptr) next_.end(next_.context, span, name, facts);
    }
    void mark(Mark mark, std::string_view name, const ObservedFacts& facts) noexcept {
        if (mark < Mark::buffer) {  // what a replay needs would hide the rest
            const Text text(isthmus::name(mark), mark == Mark::refused ? facts.error : name);
            const nvtxEventAttributes_t event = attributes(category(mark), text, facts);
            nvtxDomainMarkEx(domain_, &event);
        }
        if (next_.mark != nullptr) next_.mark(next_.context, mark, name, facts);
    }

    const nvtxDomainHandle_t domain_;
    ObserverCallbacks callbacks_;
    ObserverCallbacks next_;
};

}  // namespace v0
}  // namespace isthmus
