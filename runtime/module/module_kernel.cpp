// SPDX-License-Identifier: Apache-2.0
// Kernels of modules: finding them, comparing their parameters, running their stand-ins, launching them.
#include <isthmus/module.hpp>

#include "composed.hpp"
#include "launch_node.hpp"
#include "module_errors.hpp"
#include "module_rules.hpp"
#include "module_state.hpp"
#include "short_name.hpp"
#include "stream_state.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// Parameters as the driver tells them. Code::unsupported: it does not.
platform::Status ask_parameters(platform::Modules& modules, platform::FunctionHandle function,
                                std::vector<images::ImageParameter>& out) {
    constexpr std::size_t most = 8192;  // no parameter block holds more
    while (out.size() < most) {
        std::size_t offset = 0, bytes = 0;
        const platform::Status told = modules.parameter(function, out.size(), offset, bytes);
        if (told.code == Code::invalid_argument) break;
        if (!told.ok()) return told;
        out.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(bytes)});
    }
    return {};
}

std::string key_of(const std::string& entry, const ModuleSignature& signature) {
    std::string key = entry + '\n' + (signature.own_layout ? "i" : "p") + std::to_string(signature.item_rank);
    const auto add = [&key](std::initializer_list<std::uint32_t> numbers) {
        for (const std::uint32_t number : numbers) key += ' ' + std::to_string(number);
    };
    add({signature.pack_bytes, signature.pack_offset, signature.parameter_count});
    for (std::uint32_t at = 0; at < signature.parameter_count; ++at) {
        const ParameterInfo& one = signature.parameter[at];
        add({one.offset_bytes, one.size_bytes, one.element_bytes, static_cast<std::uint32_t>(one.use),
             static_cast<std::uint32_t>(one.atomics), std::uint32_t{one.is_signed}, std::uint32_t{one.own_device}});
    }
    // Alignments of values move them in the entry's block, too.
    for (std::uint32_t at = 0; at < signature.block_count; ++at) {
        add({signature.block[at].offset_bytes, signature.block[at].size_bytes});
    }
    return key;
}

std::span<const BlockParameter> block_of(const ModuleSignature& signature) {
    return {signature.block, signature.block_count};
}

Error refusal_of_shape(const ModuleKernelState& kernel, const LaunchShape& shape, const ShapeVerdict& verdict) {
    const char* const name = kernel.info->name;
    using Part = ShapeVerdict::Part;
    switch (verdict.part) {
        case Part::block:
            return make_error<errors::module_block_too_large>(name, shape.block.x, shape.block.y, shape.block.z,
                                                              verdict.text);
        case Part::grid:
            return make_error<errors::module_grid_too_large>(name, shape.grid.x, shape.grid.y, shape.grid.z,
                                                             verdict.text);
        case Part::shared:
            return make_error<errors::module_shared_too_large>(name, shape.shared_bytes, kernel.limits.static_shared,
                                                               kernel.limits.most_shared);
        case Part::no_clusters:
            return make_error<errors::module_clusters_unsupported>(name, named(*kernel.module->device));
        case Part::cluster:
        case Part::none: break;
    }
    return make_error<errors::module_cluster_refused>(name, shape.cluster.x, shape.cluster.y, shape.cluster.z,
                                                      verdict.text);
}

// Drivers refuse more than 48 KiB unless the function was told before. It keeps one number, for all signatures.
Result<void> allow_shared(const ModuleKernelState& kernel, std::uint64_t bytes) {
    if (bytes == 0 || kernel.allowed_shared == nullptr) return {};
    AllowedShared& allowed_so_far = *kernel.allowed_shared;
    const std::lock_guard lock(allowed_so_far.mutex);
    if (bytes <= allowed_so_far.bytes) return {};
    const auto wanted = static_cast<std::uint32_t>(bytes);
    const platform::Status allowed = kernel.module->modules()->allow_shared(kernel.function, wanted);
    if (!allowed.ok()) {
        return kernel.module->device->failure(
            allowed, composed("dynamic shared memory for kernel '{}' of {}", kernel.info->name, kernel.module->name));
    }
    allowed_so_far.bytes = wanted;
    return {};
}

void narrow(const Extent& from, std::uint32_t (&to)[3]) {
    to[0] = static_cast<std::uint32_t>(from.x);
    to[1] = static_cast<std::uint32_t>(from.y);
    to[2] = static_cast<std::uint32_t>(from.z);
}

Result<void> check_launch(const DeviceState& device, const ModuleKernelState& kernel, const LaunchShape& shape) {
    const ModuleState& module = *kernel.module;
    if (module.device.get() != &device) {
        return make_error<errors::module_of_other_device>(kernel.info->name, module.name, named(*module.device),
                                                          named(device));
    }
    if (kernel.own_layout) return {};
    const ShapeVerdict verdict = check_shape(shape, kernel.limits);
    if (verdict.part != ShapeVerdict::Part::none) return refusal_of_shape(kernel, shape, verdict);
    return {};
}

}  // namespace

void run_simulated(void* self, const Extent& grid, const Extent& block, std::uint32_t shared_bytes,
                   void* const* parameters) {
    const auto& kernel = *static_cast<const ModuleKernelState*>(self);
    kernel.stand_in->run(StandInCall(grid, block, shared_bytes, kernel.functions), parameters);
}

void run_module_twin(const Extent& extent, std::uint64_t, std::uint64_t, const void* pack) {
    const auto& launch = *static_cast<const ModuleLaunch*>(pack);
    const auto& kernel = *static_cast<const ModuleKernelState*>(launch.twin);
    // A stand-in gets the addresses of its parameters, as an entry's are given to a driver, and writes to none of them.
    auto* const bytes = static_cast<unsigned char*>(const_cast<void*>(pack));
    std::vector<void*> parameters;
    if (launch.own_layout) {
        parameters = {const_cast<Extent*>(&extent), bytes + launch.pack_offset};
    } else {
        for (std::uint32_t at = 0; at < kernel.info->parameter_count; ++at) {
            parameters.push_back(bytes + kernel.info->parameter[at].offset_bytes);
        }
    }
    const Extent block{launch.block[0], launch.block[1], launch.block[2]};
    kernel.stand_in->run(StandInCall(extent, block, launch.shared_bytes, kernel.functions), parameters.data());
}

StandIn stand_in_of(std::string entry, const KernelInfo& kernel, std::uint32_t pack_bytes) {
    return {std::move(entry),
            {static_cast<std::uint32_t>(sizeof(Extent)), pack_bytes},
            [&kernel](const StandInCall&, void* const* parameters) {
                const Extent items = *static_cast<const Extent*>(parameters[0]);
                const std::uint64_t outermost = kernel.rank == 1 ? items.x : kernel.rank == 2 ? items.y : items.z;
                kernel.twin(items, 0, outermost, parameters[1]);
            }};
}

ParameterCheck parameter_check_of(const ModuleKernelState& state) noexcept {
    return state.check;
}

Result<void> ModuleState::find_function(const std::string& entry, ModuleKernelState& kernel) {
    if (device->synchronous) {
        if (contents.readable && contents.entry(entry) == nullptr) {
            return make_error<errors::module_entry_missing>(name, entry, names_of(contents.entries, true));
        }
        kernel.limits = common_limits();
        return {};
    }
    const Words what = worded("finding kernel '{}' of {}", entry, name);
    // With lazy loading the driver loads the code now.
    const std::optional<CallInFlight> call = device->services.try_enter(rules::DriverUse::load_code);
    if (!call) return device->services.refusal(rules::DriverUse::load_code, what);
    const platform::Status found = modules()->find(handle_, entry.c_str(), kernel.function);
    if (found.code == Code::invalid_argument) {
        return make_error<errors::module_entry_missing>(name, entry, names_of(contents.entries, contents.readable))
            .from_call(found.call, found.driver_code);
    }
    if (!found.ok()) return refused(found, worded("finding kernel '{}'", entry), {});
    const platform::Status asked = modules()->limits(kernel.function, kernel.limits);
    if (!asked.ok()) return device->failure(asked, what);
    AllowedShared& allowed = functions_->allowed_shared[entry];
    const std::lock_guard lock(allowed.mutex);
    allowed.bytes = std::max(allowed.bytes, kernel.limits.dynamic_shared);
    kernel.allowed_shared = &allowed;
    return {};
}

Result<void> ModuleState::check_parameters(const std::string& entry, const ModuleSignature& signature,
                                           ModuleKernelState& kernel) const {
    std::vector<images::ImageParameter> told;
    if (!device->synchronous) {
        const platform::Status asked = ask_parameters(*modules(), kernel.function, told);
        if (asked.ok()) {
            kernel.check = ParameterCheck::driver;
        } else if (asked.code != Code::unsupported) {
            return device->failure(asked, composed("the parameters of kernel '{}' of {}", entry, name));
        }
    }
    const images::ImageEntry* const known = contents.entry(entry);
    if (kernel.check == ParameterCheck::none && known != nullptr && known->parameters_read) {
        told = known->parameters;
        kernel.check = ParameterCheck::image;
    }
    if (kernel.check == ParameterCheck::none) return {};
    const std::string difference = difference_between(block_of(signature), told);
    if (difference.empty()) return {};
    const char* const source = kernel.check == ParameterCheck::driver ? "the driver" : "the image";
    return make_error<errors::module_parameters_differ>(entry, name, source, difference);
}

Result<void> ModuleState::take_stand_in(const std::string& entry, const ModuleSignature& signature,
                                        ModuleKernelState& kernel) {
    const bool simulated = !device->synchronous && modules()->simulated();
    if (!device->synchronous && !simulated) return {};
    const auto found = std::find_if(functions_->stand_ins.begin(), functions_->stand_ins.end(),
                                    [&](const StandIn& one) { return one.entry == entry; });
    if (found == functions_->stand_ins.end()) {
        if (runs_without_stand_in(device->synchronous, simulated, contents)) return {};
        return make_error<errors::module_needs_stand_in>(entry, name, named(*device));
    }
    const std::string difference = difference_between(block_of(signature), found->parameters);
    if (!difference.empty()) return make_error<errors::module_stand_in_differs>(entry, name, difference);
    kernel.stand_in = &*found;
    if (!simulated) return {};
    platform::StandInEntry runs{run_simulated, &kernel, {}};
    std::uint32_t memory = 0;
    for (std::uint32_t at = 0; at < signature.parameter_count; ++at) {
        ParameterInfo view = signature.parameter[at];
        if (view.use == ArgumentUse::value) continue;
        if (signature.own_layout) {
            view.offset_bytes += signature.block[1].offset_bytes - signature.pack_offset;
        } else {
            view.offset_bytes = signature.block[at].offset_bytes;
            view.size_bytes = signature.block[at].size_bytes;
        }
        runs.views.push_back(view);
        ++memory;
    }
    const platform::Status given = modules()->stand_in(kernel.function, runs);
    if (!given.ok()) return device->failure(given, composed("the stand-in of kernel '{}' of {}", entry, name));
    return {};
}

Result<const ModuleKernelState*> ModuleState::kernel(const std::string& entry, const ModuleSignature& signature) {
    const std::string key = key_of(entry, signature);
    const std::lock_guard lock(mutex_);
    if (released_) return make_error<errors::module_was_released>(name, entry);
    if (const auto known = functions_->kernels.find(key); known != functions_->kernels.end()) {
        return known->second.get();
    }
    auto made = std::make_unique<ModuleKernelState>();
    made->module = this;
    made->functions = functions_.get();
    made->own_layout = signature.own_layout;
    made->item_rank = signature.item_rank;
    made->pack_offset = signature.pack_offset;
    if (Result<void> found = find_function(entry, *made); !found) return std::move(found).error();
    if (Result<void> same = check_parameters(entry, signature, *made); !same) return std::move(same).error();
    if (Result<void> taken = take_stand_in(entry, signature, *made); !taken) return std::move(taken).error();
    made->info = &device->books->module_kernels.of(entry, signature.parameter, signature.parameter_count,
                                                   signature.pack_bytes, run_module_twin);
    return functions_->kernels.emplace(key, std::move(made)).first->second.get();
}

Result<LaunchReport> launch_module_kernel(const Stream& stream, const LaunchOptions& options,
                                          const ModuleKernelState& kernel, const LaunchShape& shape, void* pack,
                                          const LaunchArgument* arguments, std::size_t count) {
    StreamState& target = *stream.state();
    const KernelInfo& info = *kernel.info;
    if (target.device->bars(rules::PublicCall::launch)) {
        return target.device->refusal(rules::PublicCall::launch, launching(info.name));
    }
    if (Result<void> lawful = check_launch(*target.device, kernel, shape); !lawful) return std::move(lawful).error();
    ModuleState::Launch launch(*kernel.module);
    if (!launch) return make_error<errors::module_was_released>(kernel.module->name, info.name);
    if (Result<void> allowed = allow_shared(kernel, shape.shared_bytes); !allowed) return std::move(allowed).error();
    const std::shared_ptr<void> token = launch.token();
    auto& told = *static_cast<ModuleLaunch*>(pack);
    told.function = static_cast<std::uint64_t>(kernel.function);
    narrow(shape.block, told.block);
    narrow(shape.cluster, told.cluster);
    told.shared_bytes = static_cast<std::uint32_t>(shape.shared_bytes);
    told.own_layout = kernel.own_layout;
    told.item_rank = kernel.item_rank;
    told.pack_offset = kernel.pack_offset;
    told.twin = &kernel;
    told.keeps = &token;
    launch.on(target);
    return launch_described(target, options, info, shape.grid, pack, arguments, count);
}

const KernelInfo& info_of(const ModuleKernelState& kernel) noexcept {
    return *kernel.info;
}

LaunchExplanation explain_module_kernel(const Stream& stream, const ModuleKernelState& kernel, const LaunchShape& shape,
                                        LaunchExplanation explained) {
    Result<void> lawful = check_launch(*stream.state()->device, kernel, shape);
    if (lawful && !ModuleState::Launch(*kernel.module)) {
        lawful = make_error<errors::module_was_released>(kernel.module->name, kernel.info->name);
    }
    if (!lawful) {
        explained.refusal = std::move(lawful).error();
        explained.driver_calls = 0;
    }
    return explained;
}

}  // namespace detail

Result<std::shared_ptr<const detail::ModuleKernelState>> Module::find_kernel(
    std::string_view entry, const detail::ModuleSignature& signature) const {
    if (state_->device->bars(rules::PublicCall::use_module)) {
        return state_->device->refusal(rules::PublicCall::use_module, worded("finding kernel '{}'", entry));
    }
    if (state_->device->services.any()) state_->device->services.forget_ended();
    Result<const detail::ModuleKernelState*> found = state_->kernel(std::string(entry), signature);
    if (!found) return std::move(found).error();
    return std::shared_ptr<const detail::ModuleKernelState>(state_, *found);
}

}  // namespace v0
}  // namespace isthmus
