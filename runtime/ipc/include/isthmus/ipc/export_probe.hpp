// SPDX-License-Identifier: Apache-2.0
// probe_export(): tests whether a device's memory can be exported to other processes. The attributes state that handles
// exist. Whether they work also depends on channel files, permissions and daemons, and only a trial shows that.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/export_finding.hpp>
#include <isthmus/memory_place.hpp>
#include <isthmus/result.hpp>

namespace isthmus {
inline namespace v0 {

class Device;

// Creates the smallest device memory (2 MiB in most cases) that can be exported as `kind`, exports it, imports it in
// this process, checks its device, and releases everything: eight driver calls, without mapping or waiting. A device
// that was not used before gets its context first, which costs far more. The runtime never probes on its own.
//
// A step that the driver refuses is a result, not an error: works is false. Pass findings to
// RuntimeOptions::export_findings; the devices' capabilities then say `probed`, or no and why. A handle that works
// within one process also works for other processes of the same user on this machine. Across machines both ends need
// the same IMEX channel, which one end alone cannot test.
//
// Errors, after which nothing is known: invalid_argument (not exactly one kind), unsupported (the attributes, or an
// earlier finding, say no: the message says which), capture_error (a capture is open on this thread), out_of_memory,
// system_limit, device_lost, forked. Thread-safe.
ISTHMUS_API Result<ExportFinding> probe_export(const Device& device, ExportKinds kind);

}  // namespace v0
}  // namespace isthmus
