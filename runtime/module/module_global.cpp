// SPDX-License-Identifier: Apache-2.0
// Variables of modules: their memory as buffers of the runtime, and for stand-ins.
#include <isthmus/module.hpp>

#include "buffer_state.hpp"
#include "composed.hpp"
#include "module_errors.hpp"
#include "module_rules.hpp"
#include "module_state.hpp"

#include <cstring>
#include <utility>

namespace isthmus {
inline namespace v0 {

void* StandInCall::find_global(std::string_view name) const noexcept {
    for (const auto& [variable, address] : of_->variables) {
        if (variable == name) return address;
    }
    return nullptr;
}

namespace detail {

Result<std::uint64_t> ModuleState::address_of(const std::string& variable, std::size_t& bytes) {
    std::uint64_t address = 0;
    const platform::Status found = modules()->global(handle_, variable.c_str(), address, bytes);
    if (found.code == Code::invalid_argument) {
        return make_error<errors::module_global_missing>(name, variable, names_of(contents.globals, contents.readable))
            .from_call(found.call, found.driver_code);
    }
    if (!found.ok()) return device->failure(found, worded("finding variable '{}' of {}", variable, name));
    return address;
}

// Stand-ins find variables without a driver call. A simulated GPU's memory has one address for its workers and for the
// program.
Result<void> ModuleState::find_variables() {
    if (device->synchronous || !modules()->simulated() || functions_->stand_ins.empty()) return {};
    for (const images::ImageGlobal& variable : contents.globals) {
        std::size_t bytes = 0;
        Result<std::uint64_t> address = address_of(variable.name, bytes);
        if (!address) return std::move(address).error();
        functions_->variables.emplace_back(variable.name,
                                           reinterpret_cast<void*>(static_cast<std::uintptr_t>(*address)));
    }
    return {};
}

// Without the lock while the memory is adopted: that may do work which was put off.
Result<TypedBuffer<std::byte>*> ModuleState::global(const std::string& variable, std::size_t element_bytes,
                                                    Device& on) {
    const Launch holds(*this);  // no release meanwhile
    if (!holds) return make_error<errors::module_was_released>(name, variable);
    const auto known = [&]() -> TypedBuffer<std::byte>* {
        const std::lock_guard lock(mutex_);
        const auto found = globals_.find(variable);
        return found == globals_.end() ? nullptr : &found->second;
    };
    TypedBuffer<std::byte>* found = known();
    if (found == nullptr && !device->synchronous) {
        std::size_t bytes = 0;
        const Result<std::uint64_t> address = address_of(variable, bytes);
        if (!address) return address.error();
        Result<Buffer<std::byte>> made =
            on.adopt<std::byte>(reinterpret_cast<void*>(static_cast<std::uintptr_t>(*address)), bytes);
        if (made) {
            const std::lock_guard lock(mutex_);
            found = &globals_.emplace(variable, std::move(made).value()).first->second;
        } else {
            found = known();  // another thread may have been first
            if (found == nullptr) return std::move(made).error();
        }
    }
    if (found == nullptr) {
        return make_error<errors::module_global_missing>(name, variable, names_of(contents.globals, contents.readable));
    }
    const std::size_t bytes = found->size_bytes();
    if (bytes > 0 && bytes % element_bytes == 0) return found;
    return make_error<errors::module_global_of_other_size>(variable, name, bytes, element_bytes);
}

Result<void> ModuleState::make_variables(Device& on) {
    if (!device->synchronous) return {};
    for (const images::ImageGlobal& variable : contents.globals) {
        if (variable.size_bytes == 0) continue;
        Result<Buffer<std::byte>> made = on.allocate_host<std::byte>(static_cast<std::size_t>(variable.size_bytes));
        if (!made) return std::move(made).error();
        void* const place = made->state()->memory->host;
        std::memset(place, 0, made->size_bytes());
        functions_->variables.emplace_back(variable.name, place);
        globals_.emplace(variable.name, std::move(made).value());
    }
    return {};
}

}  // namespace detail

Result<detail::FoundGlobal> Module::find_global(std::string_view name, std::size_t element_bytes) const {
    if (state_->device->bars(rules::PublicCall::use_module)) {
        return state_->device->refusal(rules::PublicCall::use_module, worded("finding variable '{}'", name));
    }
    Device on = device_;
    Result<TypedBuffer<std::byte>*> found = state_->global(std::string(name), element_bytes, on);
    if (!found) return std::move(found).error();
    return detail::FoundGlobal{*found, state_};
}

}  // namespace v0
}  // namespace isthmus
