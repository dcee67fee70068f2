// SPDX-License-Identifier: Apache-2.0
// JSON text → MachineRecord. Invalid input is refused with its place; nothing is guessed.
#include <machines/record.hpp>

#include "fields.hpp"
#include "json_syntax.hpp"
#include "platform_errors.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>

namespace isthmus::platform::machines {

namespace {

using Json = nlohmann::json;

// A value and its place in the document. `value` is null where the field is absent.
struct Place {
    const Json* value = nullptr;
    std::string path;
    explicit operator bool() const noexcept { return value != nullptr; }
};

// Reads fields into variables and keeps the first fault; after a fault, further reads do not change the result.
class Reader {
public:
    std::optional<Error> fault;

    void fail(const std::string& path, const std::string& what) {
        if (fault) return;
        fault = make_error<errors::record_does_not_fit>(path.empty() ? "the text" : path, what);
    }

    // The object's members must all be in `allowed`.
    template <class Names>
    bool object(const Place& place, const Names& allowed) {
        if (!place) return false;
        if (!place.value->is_object()) return fail(place.path, "must be an object"), false;
        for (const auto& item : place.value->items()) {
            if (std::find(std::begin(allowed), std::end(allowed), item.key()) == std::end(allowed)) {
                fail(join(place.path, item.key()), "is not a field that this version knows");
            }
        }
        return true;
    }

    static Place optional(const Place& in, std::string_view key) {
        const auto found = in.value->find(key);
        if (found == in.value->end()) return {nullptr, join(in.path, key)};
        return {&*found, join(in.path, key)};
    }
    Place required(const Place& in, std::string_view key) {
        Place found = optional(in, key);
        if (!found) fail(found.path, "is missing");
        return found;
    }
    template <class Each>
    void array(const Place& place, Each each) {
        if (!place) return;
        if (!place.value->is_array()) return fail(place.path, "must be an array");
        std::size_t index = 0;
        for (const Json& item : *place.value) each(Place{&item, place.path + "[" + std::to_string(index++) + "]"});
    }

    void read(const Place& place, std::string& out) {
        if (!place) return;
        if (!place.value->is_string()) return fail(place.path, "must be a string");
        out = place.value->get_ref<const std::string&>();
    }
    void read(const Place& place, bool& out) {
        if (!place) return;
        if (!place.value->is_boolean()) return fail(place.path, "must be true or false");
        out = *place.value->get_ptr<const Json::boolean_t*>();
    }
    template <class Integer>
    void read(const Place& place, Integer& out, std::int64_t least, std::uint64_t most) {
        if (!place) return;
        const auto* natural = place.value->get_ptr<const Json::number_unsigned_t*>();
        const auto* integer = place.value->get_ptr<const Json::number_integer_t*>();
        if (natural != nullptr && *natural <= most && (least <= 0 || *natural >= static_cast<std::uint64_t>(least))) {
            out = static_cast<Integer>(*natural);
        } else if (natural == nullptr && integer != nullptr && *integer < 0 && *integer >= least) {
            out = static_cast<Integer>(*integer);
        } else {
            fail(place.path, "must be an integer from " + std::to_string(least) + " to " + std::to_string(most));
        }
    }

private:
    static std::string join(const std::string& path, std::string_view key) {
        return path.empty() ? std::string(key) : path + "." + std::string(key);
    }
};

constexpr std::uint64_t int_max = std::numeric_limits<int>::max();
constexpr std::int64_t int_min = std::numeric_limits<int>::min();
constexpr std::uint64_t u64_max = std::numeric_limits<std::uint64_t>::max();

// Every value must have a source: exactly one source without a list, and no source that lists an absent value.
template <class Names>
void read_evidence(Reader& reader, const Place& place, const Names& fields, std::vector<Source>& out) {
    std::set<std::string> listed;
    int defaults = 0;
    reader.array(place, [&](const Place& item) {
        if (!reader.object(item, evidence_fields)) return;
        Source source;
        std::string is;
        reader.read(reader.required(item, "is"), is);
        if (!evidence_from(is, source.is)) reader.fail(item.path + ".is", "must be observed, documented or assumed");
        reader.read(reader.required(item, "from"), source.from);
        if (source.from.empty()) reader.fail(item.path + ".from", "must say where the values come from");
        const Place of = Reader::optional(item, "of");
        reader.array(of, [&](const Place& entry) {
            std::string name;
            reader.read(entry, name);
            const bool known =
                attribute_id(name) > 0 || std::find(std::begin(fields), std::end(fields), name) != std::end(fields);
            if (!known) reader.fail(entry.path, "names neither a field nor an attribute");
            if (!listed.insert(name).second) reader.fail(entry.path, "is listed by two sources");
            source.of.push_back(std::move(name));
        });
        if (source.of.empty()) ++defaults;
        out.push_back(std::move(source));
    });
    if (place && defaults != 1) reader.fail(place.path, "must have exactly one source without \"of\"");
}

// Accepts only sysfs' format: "0-15,32-47".
void read_cpu_list(Reader& reader, const Place& place, std::string& out) {
    reader.read(place, out);
    if (out.find_first_not_of("0123456789-,") != std::string::npos || out.size() > 2048) {
        reader.fail(place.path, "must be a list of CPU numbers and ranges");
        out.clear();
    }
}

void read_pci(Reader& reader, const Place& place, std::optional<PciPlace>& out) {
    if (!place || !reader.object(place, pci_fields)) return;
    PciPlace& pci = out.emplace();
    reader.read(Reader::optional(place, "speed_mt_per_s"), pci.speed_mt_per_s, 0, 1'000'000);
    reader.read(Reader::optional(place, "lanes"), pci.lanes, 0, 32);
    reader.read(Reader::optional(place, "max_speed_mt_per_s"), pci.max_speed_mt_per_s, 0, 1'000'000);
    reader.read(Reader::optional(place, "max_lanes"), pci.max_lanes, 0, 32);
    reader.read(Reader::optional(place, "numa_node"), pci.numa_node, -1, 1023);
    read_cpu_list(reader, Reader::optional(place, "near_cpus"), pci.near_cpus);
}

void read_nodes(Reader& reader, const Place& place, std::vector<NumaNode>& out) {
    reader.array(place, [&](const Place& item) {
        if (!reader.object(item, node_fields)) return;
        NumaNode node;
        reader.read(reader.required(item, "id"), node.id, 0, 1023);
        reader.read(reader.required(item, "cpus"), node.cpu_count, 0, int_max);
        reader.read(reader.required(item, "memory_bytes"), node.memory_bytes, 0, u64_max);
        read_cpu_list(reader, Reader::optional(item, "cpu_list"), node.cpus);
        if (!out.empty() && node.id <= out.back().id)
            reader.fail(item.path + ".id", "must be larger than the one before");
        out.push_back(node);
    });
}

void read_params(Reader& reader, const Place& place, std::vector<std::pair<std::string, std::string>>& out) {
    if (!place) return;
    if (!place.value->is_object()) return reader.fail(place.path, "must be an object");
    for (const auto& item : place.value->items()) {
        std::string value;
        reader.read(Place{&item.value(), place.path + "." + item.key()}, value);
        out.emplace_back(item.key(), std::move(value));
    }
}

void read_machine(Reader& reader, const Place& place, MachineRecord& record) {
    if (!reader.object(place, machine_fields)) return;
    MachineFacts& facts = record.facts;
    reader.read(reader.required(place, "init_code"), record.init_code, -1, 999);
    reader.read(reader.required(place, "driver_version"), facts.driver_version, 0, 1000000);
    reader.read(reader.required(place, "kernel_release"), facts.kernel_release);
    reader.read(reader.required(place, "cpu_name"), facts.cpu_name);
    reader.read(reader.required(place, "page_size_bytes"), facts.page_size_bytes, 4096, 1u << 30);
    if ((facts.page_size_bytes & (facts.page_size_bytes - 1)) != 0) {
        reader.fail(place.path + ".page_size_bytes", "must be a power of two");
    }
    read_nodes(reader, reader.required(place, "numa_nodes"), facts.numa_nodes);
    read_params(reader, reader.required(place, "nvidia_params"), facts.nvidia_params);
    reader.read(reader.required(place, "imex_channels_major"), facts.imex_channels_major, -1, int_max);
    reader.read(reader.required(place, "imex_channel_files"), facts.imex_channel_files, 0, int_max);
    reader.read(reader.required(place, "addressing_mode"), facts.addressing_mode);
    reader.read(Reader::optional(place, "memory_limit_bytes"), facts.memory_limit_bytes, 0, u64_max);
    const Place memlock = Reader::optional(place, "memlock_limit_bytes");
    if (memlock && memlock.value->is_string() && memlock.value->get_ref<const std::string&>() == "unlimited") {
        facts.memlock_limit_bytes = u64_max;
    } else {
        reader.read(memlock, facts.memlock_limit_bytes, 0, u64_max);
    }
    read_evidence(reader, reader.required(place, "evidence"), machine_fields, record.evidence);
    if ((record.init_code == -1) != (facts.driver_version == 0)) {
        reader.fail(place.path + ".driver_version", "must be 0 exactly where init_code is -1 (no driver)");
    }
}

void read_attributes(Reader& reader, const Place& place, std::vector<AttributeFact>& out) {
    if (!place) return;
    if (!place.value->is_object()) return reader.fail(place.path, "must be an object");
    for (const auto& item : place.value->items()) {
        const Place here{&item.value(), place.path + "." + item.key()};
        AttributeFact fact;
        fact.id = attribute_id(item.key());
        if (fact.id < 0) reader.fail(here.path, "is neither an attribute's name nor ATTRIBUTE_<number>");
        if (here.value->is_object()) {
            if (reader.object(here, refusal_fields)) {
                reader.read(reader.required(here, "refused"), fact.refused_code, 1, 999);
            }
        } else {
            reader.read(here, fact.value, int_min, int_max);
        }
        out.push_back(fact);
    }
    std::sort(out.begin(), out.end(), [](const AttributeFact& a, const AttributeFact& b) { return a.id < b.id; });
    for (std::size_t i = 1; i < out.size(); ++i) {
        if (out[i].id == out[i - 1].id) {
            reader.fail(place.path, "answers attribute " + std::to_string(out[i].id) + " under two names");
        }
    }
}

void read_host_atomics(Reader& reader, const Place& place, std::optional<HostAtomics>& out) {
    if (!place) return;
    if (!place.value->is_array() || place.value->size() != atomic_operation_count) {
        return reader.fail(place.path, "must have one entry for each of the 13 operations");
    }
    HostAtomics bits{};
    std::size_t index = 0;
    reader.array(place, [&](const Place& item) { reader.read(item, bits[index++], 0, 0x7f); });
    out = bits;
}

void read_uuid(Reader& reader, const Place& place, std::array<std::uint8_t, 16>& out) {
    std::string text;
    reader.read(place, text);
    if (!place) return;
    const auto digit = [](char c) { return std::string_view("0123456789abcdef").find(c); };
    for (std::size_t i = 0; i < 32; ++i) {
        if (text.size() != 32 || digit(text[i]) == std::string_view::npos) {
            return reader.fail(place.path, "must be 32 lower-case hexadecimal digits");
        }
        out[i / 2] = static_cast<std::uint8_t>((out[i / 2] << 4) | digit(text[i]));
    }
}

// Every field is required: with a field missing, a finding might refuse too little.
void read_litmus(Reader& reader, const Place& place, DeviceRecord& device) {
    if (!place || !reader.object(place, litmus_fields)) return;
    LitmusFinding& finding = device.litmus.emplace();
    finding.device = device.facts.uuid;
    if (!finding.device) reader.fail(place.path, "needs the device's uuid");
    reader.read(reader.required(place, "driver_version"), finding.driver_version, 0, 1000000);
    reader.read(reader.required(place, "simulated"), finding.simulated);
    reader.array(reader.required(place, "results"), [&](const Place& item) {
        if (!reader.object(item, litmus_result_fields)) return;
        LitmusResult& result = finding.results.emplace_back();
        std::string text;
        reader.read(reader.required(item, "kind"), text);
        const std::optional<MemoryKind> kind = kind_from(text);
        if (!kind) reader.fail(item.path + ".kind", "is no kind of memory");
        result.kind = kind.value_or(MemoryKind::unknown);
        reader.read(reader.required(item, "shape"), text);
        const std::optional<LitmusShape> shape = shape_from(text);
        if (!shape) reader.fail(item.path + ".shape", "is no shape of trials");
        result.shape = shape.value_or(LitmusShape::message_to_device);
        reader.read(reader.required(item, "instances"), result.instances, 0, u64_max);
        reader.read(reader.required(item, "forbidden"), result.forbidden, 0, result.instances);
        reader.read(reader.required(item, "control_instances"), result.control_instances, 0, u64_max);
        reader.read(reader.required(item, "control_weak"), result.control_weak, 0, result.control_instances);
    });
}

void read_device(Reader& reader, const Place& place, std::size_t index, DeviceRecord& device) {
    if (!reader.object(place, device_fields)) return;
    DeviceFacts& facts = device.facts;
    reader.read(reader.required(place, "ordinal"), facts.ordinal, 0, 63);
    if (facts.ordinal != static_cast<int>(index)) reader.fail(place.path + ".ordinal", "must count from 0");
    reader.read(reader.required(place, "name"), facts.name);
    read_uuid(reader, Reader::optional(place, "uuid"), facts.uuid.bytes);
    reader.read(reader.required(place, "total_memory_bytes"), facts.total_memory_bytes, 1, u64_max);
    const Place row = Reader::optional(place, "row");
    std::string row_name;
    reader.read(row, row_name);
    if (row) device.row = model_from(row_name);
    if (row && !device.row) reader.fail(row.path, "must be discrete, hmm, integrated, ats or c2c");
    reader.read(Reader::optional(place, "fabric_usable"), device.fabric_usable);
    reader.read(Reader::optional(place, "legacy_ipc_usable"), device.legacy_ipc_usable);
    reader.read(Reader::optional(place, "prefetch_code"), device.prefetch_code, 0, 999);
    reader.read(Reader::optional(place, "host_reads_device_memory"), device.host_reads_device_memory);
    if (const Place cached = Reader::optional(place, "pinned_gpu_cached")) {
        reader.read(cached, device.pinned_gpu_cached.emplace());
    }
    reader.read(Reader::optional(place, "large_cluster_multiprocessors"), device.large_cluster_multiprocessors, 0,
                65535);
    reader.read(Reader::optional(place, "imports_dma_bufs"), device.imports_dma_bufs);
    reader.array(Reader::optional(place, "peers"), [&](const Place& item) {
        if (!reader.object(item, peer_fields)) return;
        PeerRecord& peer = device.peers.emplace_back();
        reader.read(reader.required(item, "ordinal"), peer.ordinal, 0, 63);
        reader.read(reader.required(item, "access"), peer.access);
        reader.read(Reader::optional(item, "native_atomics"), peer.native_atomics);
        reader.read(Reader::optional(item, "performance_rank"), peer.performance_rank, 0, int_max);
    });
    read_host_atomics(reader, Reader::optional(place, "host_atomic_capabilities"), facts.host_atomics);
    read_pci(reader, Reader::optional(place, "pci"), facts.pci);
    read_litmus(reader, Reader::optional(place, "litmus"), device);
    read_attributes(reader, reader.required(place, "attributes"), facts.attributes);
    read_evidence(reader, reader.required(place, "evidence"), device_fields, device.evidence);
}

void check_peers(Reader& reader, const MachineRecord& record) {
    for (std::size_t i = 0; i < record.devices.size(); ++i) {
        for (const PeerRecord& peer : record.devices[i].peers) {
            const auto other = static_cast<std::size_t>(peer.ordinal);
            if (other == i || other >= record.devices.size()) {
                reader.fail("devices[" + std::to_string(i) + "].peers", "names a device that is not another one");
            }
        }
    }
}

}  // namespace

Result<MachineRecord> read_record(std::string_view text) {
    Reader reader;
    if (const auto fault = syntax_fault(text)) reader.fail("", "is malformed: " + *fault);
    if (reader.fault) return *std::move(reader.fault);
    const Json json = Json::parse(text.begin(), text.end(), nullptr, false);

    MachineRecord record;
    const Place top{&json, ""};
    if (reader.object(top, record_fields)) {
        int format = 0;
        reader.read(reader.required(top, "format"), format, 1, 1);
        reader.read(reader.required(top, "name"), record.name);
        reader.read(reader.required(top, "title"), record.title);
        read_machine(reader, reader.required(top, "machine"), record);
        reader.array(reader.required(top, "devices"), [&](const Place& item) {
            DeviceRecord& device = record.devices.emplace_back();
            read_device(reader, item, record.devices.size() - 1, device);
        });
        check_peers(reader, record);
        if (record.init_code != 0 && !record.devices.empty()) {
            reader.fail("devices", "must be empty where init_code is not 0");
        }
    }
    if (reader.fault) return *std::move(reader.fault);
    return record;
}

}  // namespace isthmus::platform::machines
