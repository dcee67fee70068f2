// SPDX-License-Identifier: Apache-2.0
// Loads images and finds kernels in them.
#include "kernel_modules.hpp"

#include <memory>
#include <vector>

namespace isthmus::platform::cuda {
namespace {

using SimulatedParameters = std::vector<isthmus_sim_parameter>;

// The simulator keeps pointers to these until the process ends, longer than any runtime lives: so they are made once
// per kernel and never freed. Not used with a real driver.
const SimulatedParameters& parameters_for_simulator(const KernelInfo& kernel) {
    static std::mutex mutex;
    static auto* made = new std::unordered_map<const KernelInfo*, std::unique_ptr<SimulatedParameters>>;
    const std::lock_guard lock(mutex);
    std::unique_ptr<SimulatedParameters>& parameters = (*made)[&kernel];
    if (!parameters) {
        parameters = std::make_unique<SimulatedParameters>();
        for (std::uint32_t i = 0; i < kernel.parameter_count; ++i) {
            const ParameterInfo& from = kernel.parameter[i];
            parameters->push_back(
                {from.offset_bytes, from.size_bytes, from.element_bytes, static_cast<std::uint32_t>(from.use)});
        }
    }
    return *parameters;
}

}  // namespace

int register_twin(const Library& library, const KernelInfo& kernel) {
    // Both extent types must have one layout: the simulator calls the twin with its own.
    static_assert(sizeof(isthmus_sim_extent) == sizeof(Extent) &&
                  offsetof(isthmus_sim_extent, z) == offsetof(Extent, z));
    const SimulatedParameters& parameters = parameters_for_simulator(kernel);
    isthmus_sim_kernel description{};
    description.struct_bytes = sizeof(description);
    description.image_hash = kernel.image->hash;
    description.image_data = kernel.image->data;
    description.image_bytes = kernel.image->size_bytes;
    description.symbol = kernel.symbol;
    description.parameter = parameters.data();
    description.parameter_count = kernel.parameter_count;
    description.pack_bytes = kernel.pack_bytes;
    description.rank = kernel.rank;
    description.block_threads = kernel.block_threads;
    description.twin = reinterpret_cast<decltype(description.twin)>(reinterpret_cast<void*>(kernel.twin));
    // SimulatedGpu and isthmus_sim_updates share a layout too (unit.kernels.atomic_ref compares them).
    description.play_gpu = reinterpret_cast<decltype(description.play_gpu)>(reinterpret_cast<void*>(kernel.play_gpu));
    return library.register_twin(&description);
}

KernelModules::~KernelModules() {
    if (context_.library().forked()) return;
    for (const auto& loaded : libraries_) {  // context-independent: they survive a destroyed context
        const CaptureCare care(context_.library());
        (void)insist([&] { return context_.api().library_unload(loaded.second); });
    }
    for (const auto& loaded : modules_) {
        (void)context_.give_back("cuModuleUnload", [&] { return context_.api().module_unload(loaded.second); });
    }
}

bool KernelModules::knows(const KernelInfo& kernel) {
    const std::lock_guard lock(mutex_);
    return functions_.count(&kernel) != 0;
}

Status KernelModules::resolve(const KernelInfo& kernel, FunctionHandle& out) {
    const std::lock_guard lock(mutex_);
    if (const auto known = functions_.find(&kernel); known != functions_.end()) {
        out = known->second;
        return {};
    }
    const bool simulated = context_.library().register_twin != nullptr;
    if (!kernel.image || (!kernel.image->has_gpu_code && !simulated)) {
        return {Code::no_gpu_code, 0, "cuModuleLoadData"};
    }
    if (simulated && register_twin(context_.library(), kernel) != 0) {
        return {Code::in_use, 0, "isthmus_sim_register_kernel"};
    }
    CUmodule module = nullptr;
    if (Status loaded = load(*kernel.image, module); !loaded.ok()) return loaded;
    CUfunction function = nullptr;
    const Status found = context_.inside(
        "cuModuleGetFunction", [&] { return context_.api().module_get_function(&function, module, kernel.symbol); });
    if (!found.ok()) return found;
    out = handle_of<FunctionHandle>(function);
    functions_.emplace(&kernel, out);
    return found;
}

// A failed load is repeated by the next resolve(): a memory shortage may pass.
Status KernelModules::load(const KernelImage& image, CUmodule& module) {
    if (const auto known = modules_.find(image.data); known != modules_.end()) {
        module = known->second;
        return {};
    }
    const Status loaded =
        context_.inside("cuModuleLoadData", [&] { return context_.api().module_load_data(&module, image.data); });
    if (loaded.ok()) modules_.emplace(image.data, module);
    return loaded;
}

bool KernelModules::knows_free_of_context(const KernelInfo& kernel) {
    const std::lock_guard lock(mutex_);
    return kernels_.count(&kernel) != 0;
}

Status KernelModules::free_of_context(const KernelInfo& kernel, CUkernel& out) {
    const std::lock_guard lock(mutex_);
    if (const auto known = kernels_.find(&kernel); known != kernels_.end()) {
        out = known->second;
        return {};
    }
    CUlibrary library = nullptr;
    if (Status loaded = load(*kernel.image, library); !loaded.ok()) return loaded;
    const Status found = context_.anywhere(
        "cuLibraryGetKernel", [&] { return context_.api().library_get_kernel(&out, library, kernel.symbol); });
    if (found.ok()) kernels_.emplace(&kernel, out);
    return found;
}

Status KernelModules::load(const KernelImage& image, CUlibrary& library) {
    if (const auto known = libraries_.find(image.data); known != libraries_.end()) {
        library = known->second;
        return {};
    }
    const Status loaded = context_.anywhere("cuLibraryLoadData", [&] {
        return context_.api().library_load_data(&library, image.data, nullptr, nullptr, 0, nullptr, nullptr, 0);
    });
    if (loaded.ok()) libraries_.emplace(image.data, library);
    return loaded;
}

}  // namespace isthmus::platform::cuda
