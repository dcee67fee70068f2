// SPDX-License-Identifier: Apache-2.0
// What the machine and its devices can do, as JSON with the keys of `isthmus caps --json`.
#include <isthmus/capability.hpp>
#include <isthmus/facts.hpp>
#include <isthmus/profile.hpp>

#include "calls.hpp"
#include "handles.hpp"

#include <concepts>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

using namespace isthmus;

namespace {

// Appends values; commas where the value before asks for one.
class Json {
public:
    Json& open(char bracket) {
        separate();
        text_ += bracket;
        first_ = true;
        return *this;
    }
    Json& close(char bracket) {
        text_ += bracket;
        first_ = false;
        return *this;
    }
    Json& key(std::string_view name) {
        value(name);
        text_ += ": ";
        first_ = true;
        return *this;
    }
    Json& value(std::string_view text) {
        separate();
        text_ += '"';
        for (const char one : text) append(one);
        text_ += '"';
        return *this;
    }
    Json& value(bool yes) {
        separate();
        text_ += yes ? "true" : "false";
        return *this;
    }
    Json& value(std::integral auto number) {
        separate();
        text_ += std::to_string(number);
        return *this;
    }
    Json& field(std::string_view name, const auto& content) { return key(name).value(content); }
    Json& field(std::string_view name, const char* content) { return key(name).value(std::string_view(content)); }
    const std::string& text() const noexcept { return text_; }

private:
    void separate() {
        if (!first_) text_ += ", ";
        first_ = false;
    }
    // Control characters escaped, and bytes that no system's texts have replaced: all output is ASCII or UTF-8 as
    // given.
    void append(char one) {
        if (one == '"' || one == '\\') {
            text_ += '\\';
            text_ += one;
        } else if (static_cast<unsigned char>(one) < 0x20) {
            char escaped[8];
            (void)std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(one));
            text_ += escaped;
        } else {
            text_ += one;
        }
    }
    std::string text_;
    bool first_ = true;
};

void write_features(Json& to, const Capabilities& capabilities) {
    to.key("features").open('{');
    for (int at = 0; at < feature_count; ++at) {
        const Capability& one = capabilities.features[static_cast<std::size_t>(at)];
        to.key(name(static_cast<Feature>(at))).open('{');
        to.field("state", name(one.state)).field("origin", name(one.origin)).field("reason", one.reason).close('}');
    }
    to.close('}');
}

void write_attributes(Json& to, const DeviceFacts& facts) {
    to.key("attributes").open('{');
    for (const AttributeFact& fact : facts.attributes) {
        std::string key(attribute_name(fact.id));
        if (key.empty()) key = "ATTRIBUTE_" + std::to_string(fact.id);
        to.key(key);
        if (fact.refused_code == 0) {
            to.value(fact.value);
        } else {
            to.open('{').field("refused", fact.refused_code).close('}');
        }
    }
    to.close('}');
}

void write_device(Json& to, const Device& device) {
    const Capabilities& has = device.capabilities();
    const DeviceFacts& facts = device.facts();
    to.open('{').field("ordinal", facts.ordinal).field("name", facts.name);
    to.field("total_memory_bytes", facts.total_memory_bytes).field("row", name(has.model));
    to.key("axes").open('{').field("translation", name(has.translation)).field("memory", name(has.memory));
    to.field("managed", name(has.managed)).field("link_atomics", name(has.link_atomics)).close('}');
    to.key("compute_capability").open('[').value(has.compute_major).value(has.compute_minor).close(']');
    to.field("host_numa_node", has.host_numa_node).field("gpu_numa_node", has.gpu_numa_node);
    to.key("host_atomics").open('[');
    for (const std::uint32_t bits : has.host_atomics) to.value(bits);
    to.close(']');
    write_features(to, has);
    write_attributes(to, facts);
    if (facts.pci) {
        to.key("pci").open('{').field("speed_mt_per_s", facts.pci->speed_mt_per_s).field("lanes", facts.pci->lanes);
        to.field("max_speed_mt_per_s", facts.pci->max_speed_mt_per_s).field("max_lanes", facts.pci->max_lanes);
        to.field("numa_node", facts.pci->numa_node).field("near_cpus", facts.pci->near_cpus).close('}');
    }
    if (has.profile) to.field("profile_measured_on", has.profile->measured_on);
    to.close('}');
}

std::string machine_json(const isthmus_runtime& runtime) {
    const MachineFacts& machine = runtime.cpp.machine();
    Json to;
    to.open('{').field("driver_version", machine.driver_version).field("simulated", machine.simulated);
    to.field("kernel_release", machine.kernel_release).field("cpu_name", machine.cpu_name);
    to.field("page_size_bytes", machine.page_size_bytes);
    to.key("numa_nodes").open('[');
    for (const NumaNode& node : machine.numa_nodes) {
        to.open('{').field("id", node.id).field("cpus", node.cpu_count).field("memory_bytes", node.memory_bytes);
        to.field("cpu_list", node.cpus).close('}');
    }
    to.close(']').field("addressing_mode", machine.addressing_mode);
    to.key("devices").open('[');
    for (const isthmus_device& device : runtime.devices) write_device(to, *device.cpp);
    to.close(']');
    if (const auto& absent = runtime.cpp.cuda_absence()) to.field("cuda_absence", absent->message());
    to.close('}');
    return to.text();
}

// For free().
Result<void> hand_out_text(const std::string& text, char** out) {
    auto* const copy = static_cast<char*>(std::malloc(text.size() + 1));
    if (copy == nullptr) return Error(Code::out_of_memory, "no memory is left for a text");
    std::memcpy(copy, text.c_str(), text.size() + 1);
    *out = copy;
    return {};
}

}  // namespace

isthmus_code isthmus_runtime_capabilities_json(const isthmus_runtime* runtime, char** json, isthmus_error** error) {
    return c::guarded("isthmus_runtime_capabilities_json", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"runtime", runtime}, {"json", json}}));
        return hand_out_text(machine_json(*runtime), json);
    });
}

isthmus_code isthmus_runtime_counters_text(const isthmus_runtime* runtime, char** text, isthmus_error** error) {
    return c::guarded("isthmus_runtime_counters_text", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"runtime", runtime}, {"text", text}}));
        return hand_out_text(runtime->cpp.counters_text(), text);
    });
}
