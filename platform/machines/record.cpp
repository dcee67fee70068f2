// SPDX-License-Identifier: Apache-2.0
// Finds records, makes a record from current facts, and looks up the source of a value.
#include <machines/record.hpp>

#include "known_records.hpp"
#include "platform_errors.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace isthmus::platform::machines {

namespace {

constexpr std::size_t largest_record_bytes = 16u << 20;

Result<std::string> read_file(const std::string& path) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
    if (!file) {
        const int code = errno;
        return make_error<errors::record_not_opened>(path, std::strerror(code)).from_call("fopen", code);
    }
    std::string text;
    char chunk[65536];
    for (;;) {
        const std::size_t got = std::fread(chunk, 1, sizeof chunk, file.get());
        text.append(chunk, got);
        if (text.size() > largest_record_bytes) {
            return make_error<errors::record_too_large>(path);
        }
        if (got < sizeof chunk) break;
    }
    if (std::ferror(file.get()) != 0) {
        return make_error<errors::record_not_read>(path).from_call("fread", errno);
    }
    return text;
}

bool is_path(const std::string& text) {
    const bool json = text.size() > 5 && text.compare(text.size() - 5, 5, ".json") == 0;
    return json || text.find('/') != std::string::npos;
}

}  // namespace

MachineRecord record_of(std::string name, const MachineFacts& machine, const std::vector<DeviceFacts>& devices) {
    MachineRecord record;
    record.name = std::move(name);
    record.title = devices.empty() ? "no CUDA device" : devices.front().name;
    record.facts = machine;
    record.init_code = machine.driver_version == 0 ? -1 : 0;
    record.evidence = {{Evidence::observed, "read on this machine: /proc, /sys, cuDriverGetVersion", {}}};
    for (const DeviceFacts& facts : devices) {
        if (facts.is_cpu()) continue;
        DeviceRecord& device = record.devices.emplace_back();
        device.facts = facts;
        device.evidence = {
            {Evidence::observed, "read on this machine: cuDeviceGetAttribute, /sys/bus/pci", {}},
            {Evidence::assumed,
             "not asked when the record was made",
             {"fabric_usable", "legacy_ipc_usable", "prefetch_code", "host_reads_device_memory", "peers"}}};
    }
    return record;
}

std::vector<LitmusFinding> litmus_findings(const MachineRecord& record) {
    std::vector<LitmusFinding> findings;
    for (const DeviceRecord& device : record.devices) {
        if (device.litmus) findings.push_back(*device.litmus);
    }
    return findings;
}

const Source* source_of(const std::vector<Source>& evidence, std::string_view field) noexcept {
    const Source* rest = nullptr;
    for (const Source& source : evidence) {
        if (source.of.empty()) rest = &source;
        if (std::find(source.of.begin(), source.of.end(), field) != source.of.end()) return &source;
    }
    return rest;
}

std::vector<std::string_view> known_machines() {
    std::vector<std::string_view> names;
    for (const KnownRecord& record : known_records()) names.push_back(record.name);
    return names;
}

std::string_view known_record(std::string_view name) noexcept {
    for (const KnownRecord& record : known_records()) {
        if (record.name == name) return record.text;
    }
    return {};
}

Result<MachineRecord> find_record(const std::string& name_or_path) {
    if (const std::string_view text = known_record(name_or_path); !text.empty()) return read_record(text);
    if (is_path(name_or_path)) {
        Result<std::string> text = read_file(name_or_path);
        if (!text) return std::move(text).error();
        return read_record(*text);
    }
    std::string known;
    for (const std::string_view each : known_machines()) known.append(known.empty() ? "" : ", ").append(each);
    return make_error<errors::no_such_machine>(name_or_path, known);
}

}  // namespace isthmus::platform::machines
