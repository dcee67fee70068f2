// SPDX-License-Identifier: Apache-2.0
// The driver's linker, for PTX alone. The simulator's machine code is the text itself, which its loader takes.
#include "call.hpp"
#include "module.hpp"

#include <cstring>
#include <span>

namespace isthmus::sim {

extern "C" {

Result cuLinkCreate_v2(unsigned count, int* options, void** values, LinkState** state) {
    return call_in_context(CallId::cuLinkCreate_v2, [&](Driver& d, Context&) -> Result {
        if (!state) return result::invalid_value;
        const std::lock_guard lock(d.mutex);
        *state = d.links.create();
        find_log(count, options, values, (*state)->log, (*state)->log_bytes);
        return result::ok;
    });
}

Result cuLinkAddData_v2(LinkState* state, int type, void* data, std::size_t bytes, const char*, unsigned, int*,
                        void**) {
    return call_in_context(CallId::cuLinkAddData_v2, [&](Driver& d, Context& context) -> Result {
        constexpr int ptx = 1;
        if (type != ptx) {
            say("cuLinkAddData: input of type %d is not modelled; only PTX is", type);
            return result::not_supported;
        }
        const std::lock_guard lock(d.mutex);
        if (!d.links.alive(state)) return result::invalid_handle;
        if (!data || bytes == 0 || !state->text.empty()) return result::invalid_value;
        std::string text(static_cast<const char*>(data), bytes);
        text.resize(std::strlen(text.c_str()));
        std::string log;
        const std::uint32_t capability = static_cast<std::uint32_t>(d.fact(context.device, attribute::cc_major) * 10 +
                                                                    d.fact(context.device, attribute::cc_minor));
        const Result code = judge_image(images::read_image(std::as_bytes(std::span(text.data(), text.size()))),
                                        machine().record().facts.driver_version, capability, log);
        write_log(log, state->log, state->log_bytes);
        if (code == result::ok) state->text = std::move(text);
        return code;
    });
}

// Valid as long as the state.
Result cuLinkComplete(LinkState* state, void** image, std::size_t* bytes) {
    return call_in_context(CallId::cuLinkComplete, [&](Driver& d, Context&) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!d.links.alive(state)) return result::invalid_handle;
        if (!image || state->text.empty()) return result::invalid_value;
        *image = state->text.data();
        if (bytes) *bytes = state->text.size() + 1;  // with the NUL, by which the loader finds its end
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
