// SPDX-License-Identifier: Apache-2.0
// Machine records: the answers of one machine's driver and system, as data, each value with its source. The simulator,
// the tools and the tests read them; the library never does.
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

// observed: on the machine, by who made the record. reported: seen by others, on theirs. documented: by the vendor.
enum class Evidence : std::uint8_t { observed, reported, documented, assumed };
std::string_view name(Evidence evidence) noexcept;

// The source of values. `of` lists fields and attribute names; empty: every value that no other source lists.
struct Source {
    Evidence is = Evidence::assumed;
    std::string from;
    std::vector<std::string> of;
};

// The answers of cuDeviceCanAccessPeer and cuDeviceGetP2PAttribute about another device.
struct PeerRecord {
    int ordinal = -1;
    bool access = false;
    bool native_atomics = false;
    int performance_rank = 0;
};

struct DeviceRecord {
    DeviceFacts facts;
    std::optional<Model> row;  // the model that the machine is classified as
    // For the simulator: behaviour that no attribute states.
    bool fabric_usable = false;             // cuMemCreate with a fabric handle works; otherwise it answers 800
    bool legacy_ipc_usable = true;          // cuIpcGetMemHandle works on device memory; otherwise it answers 801
    int prefetch_code = 0;                  // answer of cuMemPrefetchAsync and cuMemAdvise for managed memory
    bool host_reads_device_memory = false;  // a CPU load from cuMemAlloc memory works; otherwise it faults
    std::optional<bool> pinned_gpu_cached;  // the GPU caches pinned memory; nothing: not proven
    int large_cluster_multiprocessors = 0;  // that clusters of more than 2 blocks can use; 0: all
    bool imports_dma_bufs = false;          // cuImportExternalMemory takes dma-bufs; otherwise it answers 801
    std::vector<PeerRecord> peers;
    std::optional<LitmusFinding> litmus;  // from trials on this device; its uuid is the record's
    std::vector<Source> evidence;
};

struct MachineRecord {
    std::string name;   // "orin"
    std::string title;  // one line of text
    int init_code = 0;  // answer of cuInit; -1: there is no libcuda.so.1
    MachineFacts facts;
    std::vector<DeviceRecord> devices;  // ascending by ordinal, from 0
    std::vector<Source> evidence;       // of `init_code` and the machine's facts
};

// Parses a record. Malformed input is Code::invalid_argument, with the place as a JSON path
// ("devices[0].attributes.INTEGRATED").
Result<MachineRecord> read_record(std::string_view text);
// The canonical text, which read_record() reads; the files in this directory are byte for byte such texts.
std::string write_record(const MachineRecord& record);

// The record of a machine from its current facts; everything is marked as observed.
MachineRecord record_of(std::string name, const MachineFacts& machine, const std::vector<DeviceFacts>& devices);
// The results of trials in a record, for RuntimeOptions::litmus_findings.
std::vector<LitmusFinding> litmus_findings(const MachineRecord& record);
// The source of a field or attribute; null where there is none.
const Source* source_of(const std::vector<Source>& evidence, std::string_view field) noexcept;

// The built-in records. find_record() takes one of their names, or a path (with a '/' or ".json").
std::vector<std::string_view> known_machines();
std::string_view known_record(std::string_view name) noexcept;  // its text; empty: unknown
Result<MachineRecord> find_record(const std::string& name_or_path);

}  // namespace isthmus::platform::machines
