// SPDX-License-Identifier: Apache-2.0
// Machine records: what one machine's driver and system say, as data, each value with where it comes from. Read by
// the simulator, the tools and the tests; the library never reads one.
#pragma once

#include <isthmus/capability.hpp>
#include <isthmus/facts.hpp>
#include <isthmus/litmus.hpp>
#include <isthmus/result.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::platform::machines {

enum class Evidence : std::uint8_t { observed, documented, assumed };
std::string_view name(Evidence evidence) noexcept;

// Where values come from. `of` lists fields and attribute names; empty: every value that no other source lists.
struct Source {
    Evidence is = Evidence::assumed;
    std::string from;
    std::vector<std::string> of;
};

// What cuDeviceCanAccessPeer and cuDeviceGetP2PAttribute say of the way to another device.
struct PeerRecord {
    int ordinal = -1;
    bool access = false;
    bool native_atomics = false;
    int performance_rank = 0;
};

struct DeviceRecord {
    DeviceFacts facts;
    std::optional<Model> row;  // the name that the machine is known to classify to
    // For the simulator: what no attribute states.
    bool fabric_usable = false;             // cuMemCreate with a fabric handle works; else it answers 800
    bool legacy_ipc_usable = true;          // cuIpcGetMemHandle works on device memory; else it answers 801
    int prefetch_code = 0;                  // what cuMemPrefetchAsync and cuMemAdvise answer for managed memory
    bool host_reads_device_memory = false;  // a CPU load from cuMemAlloc memory works; else it faults
    std::optional<bool> pinned_gpu_cached;  // the GPU caches pinned memory; nothing: unproven
    std::vector<PeerRecord> peers;
    std::optional<LitmusFinding> litmus;  // of trials that ran on this very device; its uuid is the record's
    std::vector<Source> evidence;
};

struct MachineRecord {
    std::string name;   // "orin"
    std::string title;  // for people, one line
    int init_code = 0;  // what cuInit answers; -1: there is no libcuda.so.1
    MachineFacts facts;
    std::vector<DeviceRecord> devices;  // ascending by ordinal, from 0
    std::vector<Source> evidence;       // of `init_code` and the machine's facts
};

// Malformed input is Code::invalid_argument, with the place as a JSON path ("devices[0].attributes.INTEGRATED").
Result<MachineRecord> read_record(std::string_view text);
// The canonical text: what read_record() reads back, and what the files in this room contain byte for byte.
std::string write_record(const MachineRecord& record);

// The record of a machine as it was just found: everything observed.
MachineRecord record_of(std::string name, const MachineFacts& machine, const std::vector<DeviceFacts>& devices);
// What trials found on the devices of a record: for RuntimeOptions::litmus_findings.
std::vector<LitmusFinding> litmus_findings(const MachineRecord& record);
// The source that speaks for a field or attribute; nothing where there is none.
const Source* source_of(const std::vector<Source>& evidence, std::string_view field) noexcept;

// The records of this room, built in. find_record() takes one of their names, or a path (with a '/' or ".json").
std::vector<std::string_view> known_machines();
std::string_view known_record(std::string_view name) noexcept;  // its text; empty: unknown
Result<MachineRecord> find_record(const std::string& name_or_path);

}  // namespace isthmus::platform::machines
