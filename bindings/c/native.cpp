// SPDX-License-Identifier: Apache-2.0
// Work of other code on buffers: scopes, and single calls.
#include <isthmus/native_work.hpp>

#include "calls.hpp"
#include "handles.hpp"
#include "scopes.hpp"
#include "some.hpp"

#include <cstddef>
#include <memory>
#include <vector>

using namespace isthmus;

namespace {

using Work = int32_t (*)(void* context, void* cu_stream, const isthmus_native_use* uses);

// More uses than any launch has arguments are a count that was never filled in.
constexpr std::size_t most_uses = 4096;

// The uses of one call, as the runtime takes them.
class Request {
public:
    Request(const c::Call& call, std::size_t count)
        : call_(call), arguments_(count), parameters_(count), views_(count), count_(count) {}

    Result<void> take(const isthmus_native_use* uses) {
        for (std::size_t at = 0; at < count_; ++at) {
            const isthmus_native_use& use = uses[at];
            const std::string where = "uses[" + std::to_string(at) + "]";
            ISTHMUS_TRY(call_.needs({{(where + ".buffer").c_str(), use.buffer}}));
            if (use.reserved != 0) return call_.refuse(where + ".reserved", "is not 0", "leave it 0");
            ISTHMUS_TRY(const ArgumentUse how, c::use_of_flags(call_, (where + ".flags").c_str(), use.flags));
            arguments_[at] = detail::argument_of(use.buffer->cpp);
            parameters_[at] = {static_cast<std::uint32_t>(at * sizeof(detail::NativeView)), sizeof(detail::NativeView),
                               1, how};
        }
        return {};
    }
    detail::NativeRequest request(const char* name) {
        return {c::kept_name(name), arguments_.data(), parameters_.data(), views_.data(),
                static_cast<std::uint32_t>(count_)};
    }
    const detail::NativeView* views() noexcept { return views_.data(); }

private:
    const c::Call& call_;
    c::Some<detail::LaunchArgument, 8> arguments_;
    c::Some<ParameterInfo, 8> parameters_;
    c::Some<detail::NativeView, 8> views_;
    std::size_t count_;
};

struct Given {
    Work work;
    void* context;
    isthmus_native_use* uses;
    std::size_t count;
};

void run(Work work, void* context, void* cu_stream, isthmus_native_use* uses, std::size_t count,
         const detail::NativeView* views, detail::NativeOutcome& out) {
    for (std::size_t at = 0; at < count; ++at) uses[at].pointer = views[at].data;
    out.called = true;
    out.code = work(context, cu_stream, uses);
}

void run_given(void* erased, void* cu_stream, const detail::NativeView* views, detail::NativeOutcome& out) {
    const Given& given = *static_cast<Given*>(erased);
    run(given.work, given.context, cu_stream, given.uses, given.count, views, out);
}

// A graph of the CPU device keeps it. Its uses name no buffers: those may be gone by then, the graph holds the memory.
class KeptCall final : public detail::KeptWork {
public:
    KeptCall(const Given& given, const detail::NativeView* views)
        : work_(given.work), context_(given.context), uses_(given.uses, given.uses + given.count) {
        for (std::size_t at = 0; at < uses_.size(); ++at) {
            uses_[at].buffer = nullptr;
            views_.push_back(views[at]);
        }
    }
    void run(detail::NativeOutcome& out) override {
        ::run(work_, context_, nullptr, uses_.data(), uses_.size(), views_.data(), out);
    }

private:
    Work work_;
    void* context_;
    std::vector<isthmus_native_use> uses_;
    std::vector<detail::NativeView> views_;
};

std::shared_ptr<detail::KeptWork> keep_given(void* erased, const detail::NativeView* views) {
    return std::make_shared<KeptCall>(*static_cast<Given*>(erased), views);
}

Result<void> check_uses(const c::Call& call, const isthmus_native_use* uses, std::size_t count) {
    if (count > most_uses) return call.refuse("count", "is " + std::to_string(count), "at most 4096 uses are taken");
    return count == 0 ? Result<void>() : call.needs({{"uses", uses}});
}

}  // namespace

isthmus_code isthmus_stream_open_native_scope(isthmus_stream* stream, const char* name, isthmus_native_use* uses,
                                              size_t count, isthmus_native_scope** scope, isthmus_error** error) {
    return c::guarded("isthmus_stream_open_native_scope", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"stream", stream}, {"name", name}, {"scope", scope}}));
        ISTHMUS_TRY(check_uses(call, uses, count));
        Request request(call, count);
        ISTHMUS_TRY(request.take(uses));
        std::vector<isthmus_native_scope::Opened> opened;
        opened.reserve(count);
        Result<detail::OpenedNative> claimed = detail::open_native_scope(stream->cpp, request.request(name));
        if (!claimed) return std::move(claimed).error();
        for (std::size_t at = 0; at < count; ++at) {
            opened.push_back(
                {c::Ref<isthmus_buffer>(*uses[at].buffer), request.views()[at].data, uses[at].flags != ISTHMUS_READ});
        }
        *scope = new isthmus_native_scope(*stream, std::move(opened), std::move(claimed).value());
        for (std::size_t at = 0; at < count; ++at) uses[at].pointer = request.views()[at].data;
        return {};
    });
}

void* isthmus_native_scope_stream(const isthmus_native_scope* scope) {
    return scope == nullptr ? nullptr : scope->cpp.stream();
}

// What failed work was to write has no defined content, with and without `failed`: later uses wait in either case.
isthmus_code isthmus_native_scope_close(isthmus_native_scope* scope, int32_t, isthmus_error** error) {
    return c::guarded("isthmus_native_scope_close", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"scope", scope}}));
        const std::unique_ptr<isthmus_native_scope> closed(scope);
        if (Result<std::uint64_t> position = closed->cpp.close(); !position) return std::move(position).error();
        return {};
    });
}

isthmus_code isthmus_stream_enqueue_native(isthmus_stream* stream, const char* name, isthmus_native_use* uses,
                                           size_t count,
                                           int32_t (*work)(void* context, void* cu_stream,
                                                           const isthmus_native_use* uses),
                                           void* context, isthmus_error** error) {
    return c::guarded("isthmus_stream_enqueue_native", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"stream", stream}, {"name", name}, {"work", reinterpret_cast<const void*>(work)}}));
        ISTHMUS_TRY(check_uses(call, uses, count));
        Request request(call, count);
        ISTHMUS_TRY(request.take(uses));
        Given given{work, context, uses, count};
        detail::NativeOutcome outcome;
        detail::NativeRequest erased = request.request(name);
        erased.work = &given;
        erased.call = run_given;
        erased.keep = keep_given;
        erased.outcome = &outcome;
        if (Result<std::uint64_t> position = detail::enqueue_native(stream->cpp, erased); !position) {
            return std::move(position).error();
        }
        return {};
    });
}
