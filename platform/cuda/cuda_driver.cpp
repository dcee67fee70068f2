// SPDX-License-Identifier: Apache-2.0
// One CUDA device as a platform::Driver: its facts, facets and error explanations.
#include "cuda_device.hpp"

#include "cuda_captures.hpp"
#include "cuda_execution.hpp"
#include "cuda_memory.hpp"
#include "cuda_modules.hpp"
#include "cuda_multicast.hpp"
#include "cuda_pools.hpp"
#include "cuda_transfers.hpp"
#include "cuda_virtual_memory.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

namespace isthmus::platform::cuda {
namespace {

constexpr int memory_pools_supported = 115;    // CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED
constexpr int virtual_memory_supported = 102;  // CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
constexpr int multicast_supported = 132;       // CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED

// Attributes read at opening keep their values: capabilities follow from them. Ascending.
std::vector<AttributeFact> joined(std::vector<AttributeFact> first, const std::vector<AttributeFact>& all) {
    const std::size_t read = first.size();
    for (const AttributeFact& fact : all) {
        const auto known = first.begin() + static_cast<std::ptrdiff_t>(read);
        if (std::none_of(first.begin(), known, [&](const AttributeFact& one) { return one.id == fact.id; })) {
            first.push_back(fact);
        }
    }
    std::sort(first.begin(), first.end(), [](const auto& one, const auto& other) { return one.id < other.id; });
    return first;
}

// Members are destroyed from the last up: modules are unloaded before the library releases the primary contexts.
class CudaDriver final : public Driver {
public:
    CudaDriver(std::shared_ptr<const Library> library, DeviceFacts facts, DeviceContext& context)
        : library_(std::move(library)),
          facts_(std::move(facts)),
          context_(context),
          has_pools_(facts_.attribute(memory_pools_supported).value_or(0) != 0 && CudaPools::complete(context.api())),
          has_virtual_memory_(facts_.attribute(virtual_memory_supported).value_or(0) != 0 &&
                              CudaVirtualMemory::complete(context.api())),
          has_multicast_(has_virtual_memory_ && facts_.attribute(multicast_supported).value_or(0) != 0 &&
                         CudaMulticast::complete(context.api())),
          memory_(context),
          execution_(context),
          pools_(context),
          transfers_(context),
          captures_(context, execution_.modules()),
          virtual_memory_(context),
          multicast_(context),
          modules_(context) {}

    const DeviceFacts& facts() const noexcept override { return facts_; }
    const DeviceFacts& all_facts(bool may_ask) const noexcept override {
        if (!all_are_read_.load(std::memory_order_acquire)) {  // pairs with the release below
            if (!may_ask) return facts_;
            const std::lock_guard lock(reading_);
            if (!all_are_read_.load(std::memory_order_relaxed)) {
                all_facts_ = facts_;
                all_facts_.attributes =
                    joined(facts_.attributes, read_all_attributes(context_.api(), context_.device()));
                all_facts_.pci = read_pci(*library_, all_facts_);
                all_are_read_.store(true, std::memory_order_release);
            }
        }
        return all_facts_;
    }
    Memory& memory() noexcept override { return memory_; }
    Execution& execution() noexcept override { return execution_; }
    Pools* pools() noexcept override { return has_pools_ ? &pools_ : nullptr; }
    Transfers* transfers() noexcept override { return &transfers_; }
    Captures* captures() noexcept override { return &captures_; }
    VirtualMemory* virtual_memory() noexcept override { return has_virtual_memory_ ? &virtual_memory_ : nullptr; }
    Multicast* multicast() noexcept override { return has_multicast_ ? &multicast_ : nullptr; }
    Modules* modules() noexcept override { return CudaModules::complete(context_.api()) ? &modules_ : nullptr; }
    bool context_died() noexcept override { return context_.died(); }
    bool synchronous() const noexcept override { return false; }

    Error explain(const Status& status, std::string_view what_was_asked) const override {
        const char* text = nullptr;
        if (status.driver_code != 0 && status.code != Code::forked) {
            (void)context_.api().get_error_string(status.driver_code, &text);
        }
        return explain_status(status, what_was_asked, text ? text : "");
    }

private:
    std::shared_ptr<const Library> library_;
    DeviceFacts facts_;
    mutable std::mutex reading_;  // guards the members below, until all are read
    mutable DeviceFacts all_facts_;
    mutable std::atomic<bool> all_are_read_{false};
    DeviceContext& context_;  // owned by the library
    bool has_pools_;
    bool has_virtual_memory_;
    bool has_multicast_;
    CudaMemory memory_;
    CudaExecution execution_;
    CudaPools pools_;
    CudaTransfers transfers_;
    CudaCaptures captures_;
    CudaVirtualMemory virtual_memory_;
    CudaMulticast multicast_;
    CudaModules modules_;
};

}  // namespace

std::unique_ptr<Driver> make_device(std::shared_ptr<const Library> library, DeviceFacts facts, DeviceContext& context) {
    return std::make_unique<CudaDriver>(std::move(library), std::move(facts), context);
}

}  // namespace isthmus::platform::cuda
