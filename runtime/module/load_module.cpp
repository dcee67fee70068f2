// SPDX-License-Identifier: Apache-2.0
// Device::load_module, and the module's own calls.
#include <isthmus/module.hpp>

#include <platform/os.hpp>

#include "composed.hpp"
#include "module_errors.hpp"
#include "module_state.hpp"

#include <span>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace {

Result<std::shared_ptr<detail::ModuleState>> load(Device& device, std::string name, std::span<const std::byte> image,
                                                  const ModuleOptions& options) {
    const std::shared_ptr<detail::DeviceState>& state = device.state();
    images::ImageContents contents = images::read_image(image);
    // What is wrong in PTX the driver's compiler tells better.
    const bool left_to_driver = contents.format == images::ImageFormat::ptx && !state->synchronous;
    if (!contents.damage.empty() && !left_to_driver) {
        return make_error<errors::module_is_no_image>(name, contents.damage);
    }
    Result<std::shared_ptr<detail::ModuleState>> made =
        detail::ModuleState::load(state, std::move(name), image, std::move(contents), options);
    if (made) {
        if (Result<void> variables = (*made)->make_variables(device); !variables) return std::move(variables).error();
    }
    return made;
}

}  // namespace

Result<Module> Device::load_module(std::span<const std::byte> image, const ModuleOptions& options) {
    if (state_->bars(rules::PublicCall::load_module)) return state_->refusal(rules::PublicCall::load_module);
    Result<std::shared_ptr<detail::ModuleState>> made = load(*this, "the module in memory", image, options);
    if (!made) return std::move(made).error();
    return Module(std::move(made).value(), *this);
}

Result<Module> Device::load_module(std::string_view path, const ModuleOptions& options) {
    if (state_->bars(rules::PublicCall::load_module)) return state_->refusal(rules::PublicCall::load_module);
    constexpr std::size_t most_bytes = std::size_t{1} << 30;
    constexpr std::size_t most_shown = 200;  // PTX text that was taken for a name
    std::string name = composed("module '{}'", path.substr(0, most_shown));
    if (path.find('\0') != path.npos) {  // the system would open what stands before it
        return make_error<errors::module_file_not_read>(name, "its name has a NUL");
    }
    const platform::os::FileText file = platform::os::read_file(std::string(path), most_bytes);
    if (file.error != 0) {
        return make_error<errors::module_file_not_read>(name, file.reason).from_call("open", file.error);
    }
    Result<std::shared_ptr<detail::ModuleState>> made =
        load(*this, std::move(name), std::as_bytes(std::span(file.text)), options);
    if (!made) return std::move(made).error();
    return Module(std::move(made).value(), *this);
}

Result<Module> Device::load_module(std::span<const std::byte> image) {
    return load_module(image, ModuleOptions{});
}

Result<Module> Device::load_module(std::string_view path) {
    return load_module(path, ModuleOptions{});
}

std::vector<std::string> Module::entries() const {
    std::vector<std::string> names;
    for (const images::ImageEntry& entry : state_->contents.entries) names.push_back(entry.name);
    return names;
}

Result<void> Module::release(Wait wait) {
    return state_->release(wait);
}

}  // namespace v0
}  // namespace isthmus
