// SPDX-License-Identifier: Apache-2.0
// Kernels that C++ code registered, found and launched by name.
#include <isthmus/c_kernels.hpp>
#include <isthmus/kernel_info.hpp>
#include <isthmus/parameter_name.hpp>

#include "arguments.hpp"
#include "calls.hpp"
#include "handles.hpp"
#include "private_calls.hpp"
#include "registered.hpp"
#include "some.hpp"

#include <cstddef>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_set>
#include <vector>

using namespace isthmus;

namespace isthmus::c {

template struct Reach<LaunchPacked, &Stream::launch_packed>;

namespace {

// Never shrinks. Many threads look up, few register.
class Register {
public:
    // Never destroyed: libraries register from their static objects.
    static Register& instance() {
        static Register& one = *new Register;
        return one;
    }
    Result<void> add(const Call& call, std::string name, const KernelInfo& kernel) {
        const std::unique_lock lock(mutex_);
        if (const auto known = by_name_.find(name); known != by_name_.end()) {
            if (known->second == &kernel) return {};
            return Error(Code::in_use, std::string(call.name) + ": another kernel is registered as '" + name + "'",
                         "register this one under a name of its own");
        }
        in_order_.reserve(in_order_.size() + 1);
        kernels_.insert(&kernel);
        const auto added = by_name_.emplace(std::move(name), &kernel).first;
        in_order_.push_back(added->first.c_str());
        return {};
    }
    const KernelInfo* find(const std::string& name) const {
        const std::shared_lock lock(mutex_);
        const auto known = by_name_.find(name);
        return known == by_name_.end() ? nullptr : known->second;
    }
    bool has(const void* kernel) const {
        const std::shared_lock lock(mutex_);
        return kernels_.count(static_cast<const KernelInfo*>(kernel)) != 0;
    }
    std::size_t count() const {
        const std::shared_lock lock(mutex_);
        return in_order_.size();
    }
    const char* name(std::size_t index) const {
        const std::shared_lock lock(mutex_);
        return index < in_order_.size() ? in_order_[index] : nullptr;
    }

private:
    mutable std::shared_mutex mutex_;
    std::map<std::string, const KernelInfo*> by_name_;
    std::unordered_set<const KernelInfo*> kernels_;
    std::vector<const char*> in_order_;
};

Result<Extent> extent_of(const Call& call, const KernelInfo& kernel, const uint64_t given[3]) {
    const std::size_t dimensions = kernel.rank == 0 ? 3 : kernel.rank;
    for (std::size_t at = dimensions; at < 3; ++at) {
        if (given[at] != 1) {
            return call.refuse("extent[" + std::to_string(at) + "]",
                               "is " + std::to_string(given[at]) + ", but the index space of kernel '" + kernel.name +
                                   "' has " + std::to_string(dimensions) + " dimensions",
                               "set it to 1");
        }
    }
    return Extent{given[0], given[1], given[2]};
}

}  // namespace

const KernelInfo* registered(const void* kernel) {
    return kernel != nullptr && Register::instance().has(kernel) ? static_cast<const KernelInfo*>(kernel) : nullptr;
}

}  // namespace isthmus::c

using isthmus::c::Register;

isthmus_code isthmus_kernel_register(const char* name, const void* info, size_t info_bytes, uint32_t abi,
                                     isthmus_error** error) {
    return c::guarded("isthmus_kernel_register", error, [&](const c::Call& call) -> Result<void> {
        c::prepare_errors();
        ISTHMUS_TRY(call.needs({{"name", name}, {"info", info}}));
        if (*name == '\0') return call.refuse("name", "is empty", "give the kernel a name");
        if (info_bytes != sizeof(KernelInfo) || abi != detail::kernel_abi) {
            return call.refuse("info", "is of another version of the C++ headers",
                               "compile the program with the headers of this library");
        }
        return Register::instance().add(call, name, *static_cast<const KernelInfo*>(info));
    });
}

const void* isthmus_kernel_by_name(const char* name) {
    if (name == nullptr) return nullptr;
    return c::answered<const void*>(nullptr, [&] { return Register::instance().find(name); });
}
size_t isthmus_kernel_count(void) {
    return c::answered<std::size_t>(0, [] { return Register::instance().count(); });
}
const char* isthmus_kernel_name(size_t index) {
    return c::answered<const char*>(nullptr, [&] { return Register::instance().name(index); });
}
const char* isthmus_kernel_parameters(const void* kernel) {
    return c::answered<const char*>(nullptr, [&] {
        const KernelInfo* const known = c::registered(kernel);
        return known == nullptr ? nullptr : known->parameters;
    });
}
int32_t isthmus_kernel_rank(const void* kernel) {
    return c::answered<int32_t>(-1, [&] {
        const KernelInfo* const known = c::registered(kernel);
        return known == nullptr ? -1 : int32_t{known->rank};
    });
}

isthmus_code isthmus_stream_launch(isthmus_stream* stream, const void* kernel, const uint64_t extent[3],
                                   const isthmus_argument* arguments, size_t count, isthmus_error** error) {
    return c::guarded("isthmus_stream_launch", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"stream", stream}, {"kernel", kernel}, {"extent", extent}}));
        const KernelInfo* const known = c::registered(kernel);
        if (known == nullptr) {
            return call.refuse("kernel", "is no registered kernel", "use what isthmus_kernel_by_name() answers");
        }
        ISTHMUS_TRY(const Extent items, c::extent_of(call, *known, extent));
        alignas(64) std::byte pack[4096];  // KernelTraits allows no more
        c::Some<detail::LaunchArgument, 12> described(known->parameter_count);
        ISTHMUS_TRY(c::pack_arguments(call, *known, arguments, count, pack, described.data()));
        Result<LaunchReport> launched =
            (stream->cpp.*member_of(c::LaunchPacked{}))(LaunchOptions{}, *known, items, pack, described.data(), count);
        return launched ? Result<void>() : std::move(launched).error();
    });
}
