// probe_export(): does a device's memory really go to other processes? The attributes say that handles exist; whether
// they work is also a matter of channel files, permissions and daemons, and only a try tells.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/export_finding.hpp>
#include <isthmus/memory_place.hpp>
#include <isthmus/result.hpp>

namespace isthmus::inline v0 {

class Device;

// Creates the smallest memory of the device (2 MiB mostly) that can be exported as `kind`, exports it, imports it in
// this process, looks whose it is, and releases all of it: eight driver calls, nothing is mapped, nothing is waited
// for. A device that was not used before gets its context first, which costs far more. Never done unasked.
//
// A driver that refuses a step is an answer: works is false. Hand findings to RuntimeOptions::export_findings, and the
// devices' capabilities say `probed`, or no and why. A handle that works within one process does so for others of the
// same user on this machine; across machines both ends need the same IMEX channel, which no single end can try.
//
// Errors, with which nothing is known: invalid_argument (not exactly one kind), unsupported (the attributes, or an
// earlier finding, say no: the message says which), capture_error (a capture is open on this thread), out_of_memory,
// system_limit, device_lost, forked. Thread-safe.
ISTHMUS_API Result<ExportFinding> probe_export(const Device& device, ExportKinds kind);

}  // namespace isthmus::inline v0
