// SPDX-License-Identifier: Apache-2.0
// Loads images and finds kernels in them.
#include "kernel_modules.hpp"

#include <isthmus/module_launch.hpp>

#include "composed.hpp"
#include "first_use.hpp"

#include <vector>

namespace isthmus::platform::cuda {
namespace {

// The entry of this kernel; nullptr: not found yet, or of a kernel that lay at its address before.
template <class Kernels>
auto* known_in(Kernels& kernels, const KernelInfo& kernel) {
    const auto known = kernels.find(&kernel);
    const bool same = known != kernels.end() && known->second.first_use == first_use_of(kernel.first_use);
    return same ? &known->second.handle : nullptr;
}

}  // namespace

int register_twin(const Library& library, const KernelInfo& kernel) {
    // Both extent types must have one layout: the simulator calls the twin with its own.
    static_assert(sizeof(isthmus_sim_extent) == sizeof(Extent) &&
                  offsetof(isthmus_sim_extent, z) == offsetof(Extent, z));
    std::vector<isthmus_sim_parameter> parameters;  // the simulator copies them
    for (std::uint32_t i = 0; i < kernel.parameter_count; ++i) {
        const ParameterInfo& from = kernel.parameter[i];
        parameters.push_back(
            {from.offset_bytes, from.size_bytes, from.element_bytes, static_cast<std::uint32_t>(from.use)});
    }
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
    description.image_first_use = first_use_of(kernel.image->first_use);
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

// Equal code is one image, whichever library has it. A simulator runs the kernels' twins: there, the code is the
// library's own.
std::string KernelModules::key_of(const KernelImage& image) const {
    const bool simulated = context_.library().register_twin != nullptr;
    return composed("{} {} {}", image.hash, image.size_bytes, simulated ? first_use_of(image.first_use) : 0);
}

bool KernelModules::knows(const KernelInfo& kernel) {
    if (kernel.rank == detail::module_rank) return true;
    const std::lock_guard lock(mutex_);
    return known_in(functions_, kernel) != nullptr;
}

Status KernelModules::resolve(const KernelInfo& kernel, FunctionHandle& out) {
    if (kernel.rank == detail::module_rank) {  // each launch names its function: nothing is kept by address
        out = FunctionHandle{1};
        return {};
    }
    const std::lock_guard lock(mutex_);
    if (const FunctionHandle* known = known_in(functions_, kernel)) {
        out = *known;
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
    functions_[&kernel] = {first_use_of(kernel.first_use), out};
    return found;
}

// A failed load is repeated by the next resolve(): a memory shortage may pass.
Status KernelModules::load(const KernelImage& image, CUmodule& module) {
    const std::string key = key_of(image);
    if (const auto known = modules_.find(key); known != modules_.end()) {
        module = known->second;
        return {};
    }
    const Status loaded =
        context_.inside("cuModuleLoadData", [&] { return context_.api().module_load_data(&module, image.data); });
    if (loaded.ok()) modules_.emplace(key, module);
    return loaded;
}

bool KernelModules::knows_free_of_context(const KernelInfo& kernel) {
    const std::lock_guard lock(mutex_);
    return known_in(kernels_, kernel) != nullptr;
}

Status KernelModules::free_of_context(const KernelInfo& kernel, CUkernel& out) {
    const std::lock_guard lock(mutex_);
    if (const CUkernel* known = known_in(kernels_, kernel)) {
        out = *known;
        return {};
    }
    CUlibrary library = nullptr;
    if (Status loaded = load(*kernel.image, library); !loaded.ok()) return loaded;
    const Status found = context_.anywhere(
        "cuLibraryGetKernel", [&] { return context_.api().library_get_kernel(&out, library, kernel.symbol); });
    if (found.ok()) kernels_[&kernel] = {first_use_of(kernel.first_use), out};
    return found;
}

Status KernelModules::load(const KernelImage& image, CUlibrary& library) {
    const std::string key = key_of(image);
    if (const auto known = libraries_.find(key); known != libraries_.end()) {
        library = known->second;
        return {};
    }
    const Status loaded = context_.anywhere("cuLibraryLoadData", [&] {
        return context_.api().library_load_data(&library, image.data, nullptr, nullptr, 0, nullptr, nullptr, 0);
    });
    if (loaded.ok()) libraries_.emplace(key, library);
    return loaded;
}

}  // namespace isthmus::platform::cuda
