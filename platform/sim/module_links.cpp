// SPDX-License-Identifier: Apache-2.0
// The driver's linker, for PTX alone: as text, in a fatbin, or what an earlier cuLinkComplete gave. The simulator's
// machine code is the joined text, which its loader takes.
#include "call.hpp"
#include "device_runtime.hpp"
#include "module.hpp"
#include "packed_images.hpp"
#include "ptx_kernels.hpp"
#include "ptx_words.hpp"

#include <cstring>
#include <span>
#include <string_view>
#include <utility>

namespace isthmus::sim {
namespace {

// CUjitInputType
constexpr int cubin = 0, ptx_text = 1, fatbin = 2, library = 4, newest_type = 5;

std::uint32_t capability_of(const Driver& d, const Context& context) {
    return static_cast<std::uint32_t>(d.fact(context.device, attribute::cc_major) * 10 +
                                      d.fact(context.device, attribute::cc_minor));
}

// The PTX of an input; empty: there is none.
std::string text_of(int type, std::span<const std::byte> input, std::uint32_t capability) {
    std::string text(reinterpret_cast<const char*>(input.data()), input.size());
    text.resize(std::strlen(text.c_str()));
    if (type == ptx_text) return text;
    if (images::read_image(std::as_bytes(std::span(text))).format == images::ImageFormat::ptx) return text;
    if (type != fatbin) return "";
    const std::vector<std::byte> unpacked = unpacked_image(input);
    return std::string(images::ptx_text(unpacked.empty() ? input : unpacked, capability));
}

// Requires the driver's mutex.
Result add(Driver& d, const Context& context, LinkState* state, int type, std::span<const std::byte> input,
           const char* name, const char* call) {
    // Observed (580): nothing is added after cuLinkComplete, whatever it answered.
    const bool is_over = state->failed || !state->result.empty();
    if (is_over || type < cubin || type > newest_type || input.empty()) return result::invalid_value;
    const std::uint32_t capability = capability_of(d, context);
    const bool runtime = type == library && is_device_runtime(input);
    if (runtime && std::exchange(state->has_device_runtime, true)) return result::ok;
    std::string text = runtime ? std::string(device_runtime_text()) : text_of(type, input, capability);
    if (text.empty()) {
        say("%s: this input of type %d has no PTX; machine code and NVVM's code are not modelled", call, type);
        return result::not_supported;
    }
    std::string log;
    Result code = judge_image(images::read_image(std::as_bytes(std::span(text.data(), text.size()))),
                              machine().record().facts.driver_version, capability, log);
    if (code == result::ok) {
        const std::string own = "input file " + std::to_string(state->texts.size() + 1);
        state->texts.push_back({name && *name ? name : own, std::move(text)});
        ptx::Joined joined = ptx::join(state->texts);
        if (!joined.error.empty()) {
            log = "error   : " + joined.error;
            state->texts.pop_back();
            state->defines_twice = true;
            code = result::invalid_source;  // observed (580)
        }
    }
    state->logs.write(log);
    return code;
}

// The name in the assembler's words for a function that nothing defines; empty: they say something else.
std::string unresolved_name(const std::string& error) {
    constexpr std::string_view words = "Unresolved extern function '";
    const std::size_t at = error.find(words);
    if (at == std::string::npos) return "";
    const std::size_t first = at + words.size();
    return error.substr(first, error.find('\'', first) - first);
}

// Observed (580, H200): the linker's words name the input, too. The first that has the name.
std::string undefined_reference(const LinkState& state, const std::string& name) {
    for (const ptx::NamedText& one : state.texts) {
        if (one.text.find(name) != std::string::npos) {
            return "error   : Undefined reference to '" + name + "' in '" + one.name + "'";
        }
    }
    return "error   : Undefined reference to '" + name + "'";
}

}  // namespace

extern "C" {

Result cuLinkCreate_v2(unsigned count, int* options, void** values, LinkState** state) {
    return call_in_context(CallId::cuLinkCreate_v2, [&](Driver& d, Context&) -> Result {
        if (!state) return result::invalid_value;
        CompilerLogs logs;
        if (const Result code = logs.read(count, options, values)) return code;
        const std::lock_guard lock(d.mutex);
        *state = d.links.create();
        (*state)->logs = logs;
        return result::ok;
    });
}

Result cuLinkAddData_v2(LinkState* state, int type, void* data, std::size_t bytes, const char* name, unsigned, int*,
                        void**) {
    return call_in_context(CallId::cuLinkAddData_v2, [&](Driver& d, Context& context) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!d.links.alive(state)) return result::invalid_handle;
        if (!data) return result::invalid_value;
        return add(d, context, state, type, {static_cast<const std::byte*>(data), bytes}, name, "cuLinkAddData");
    });
}

Result cuLinkAddFile_v2(LinkState* state, int type, const char* path, unsigned, int*, void**) {
    return call_in_context(CallId::cuLinkAddFile_v2, [&](Driver& d, Context& context) -> Result {
        if (!path) return result::invalid_value;
        const std::optional<std::string> bytes = read_file(path);
        const std::lock_guard lock(d.mutex);
        if (!d.links.alive(state)) return result::invalid_handle;
        if (state->failed || !state->result.empty()) return result::invalid_value;
        if (!bytes) return result::file_not_found;
        return add(d, context, state, type, std::as_bytes(std::span(*bytes)), path, "cuLinkAddFile");
    });
}

// The image is valid as long as the state.
Result cuLinkComplete(LinkState* state, void** image, std::size_t* bytes) {
    return call_in_context(CallId::cuLinkComplete, [&](Driver& d, Context&) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!d.links.alive(state)) return result::invalid_handle;
        if (!image || state->failed || state->texts.empty()) return result::invalid_value;
        if (state->defines_twice) return result::invalid_source;  // observed (580)
        state->result = ptx::join(state->texts).text;
        if (const std::string error = ptx_error(state->result); !error.empty()) {
            const std::string undefined_name = unresolved_name(error);
            const bool unresolved = !undefined_name.empty();
            state->logs.write(unresolved ? undefined_reference(*state, undefined_name) : error);
            state->failed = true;
            return unresolved ? result::invalid_source : result::invalid_ptx;
        }
        state->result += register_limit_pragma(state->logs.most_registers);
        const ptx::Program program(state->result);
        const std::string fault = fault_of(program);
        const std::string& undefined_variable = program.undefined_variable();
        if (!fault.empty() || !undefined_variable.empty()) {
            state->logs.write(fault.empty() ? undefined_reference(*state, undefined_variable) : fault);
            state->failed = true;
            return fault.empty() ? result::invalid_source : result::invalid_ptx;
        }
        state->logs.write("");
        *image = state->result.data();
        if (bytes) *bytes = state->result.size() + 1;  // with the NUL, by which the loader finds its end
        return result::ok;
    });
}

Result cuLinkDestroy(LinkState* state) {
    return call_in_context(CallId::cuLinkDestroy, [&](Driver& d, Context&) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!d.links.alive(state)) return result::invalid_handle;
        d.links.destroy(state);
        return result::ok;
    });
}
}

}  // namespace isthmus::sim
