// SPDX-License-Identifier: Apache-2.0
// Host memory wherever a CPU is among the users: it needs no driver, survives the death of any process, and is sealed.
// For GPUs alone, device memory, preferably by a handle that outlives its exporter.
#include "share_method.hpp"

namespace isthmus {
inline namespace v0 {

std::string_view name(ShareMethod method) noexcept {
    switch (method) {
        case ShareMethod::none: return "none";
        case ShareMethod::host_memory: return "host_memory";
        case ShareMethod::posix_fd: return "posix_fd";
        case ShareMethod::fabric: return "fabric";
        case ShareMethod::legacy_ipc: return "legacy_ipc";
    }
    return "unknown";
}

std::string_view name(SeenBy seen) noexcept {
    switch (seen) {
        case SeenBy::cpus_and_gpus: return "cpus_and_gpus";
        case SeenBy::gpus_only: return "gpus_only";
    }
    return "unknown";
}

}  // namespace v0

namespace rules {

SharingEnd sharing_end(const Capabilities& device) {
    SharingEnd end;
    end.gpu = device.memory != MemoryModel::host;
    end.posix_fd = device.has(Feature::virtual_memory) && device.has(Feature::export_posix_fd);
    end.fabric = device.has(Feature::virtual_memory) && device.feature(Feature::export_fabric).state == State::probed;
    end.legacy_ipc = device.has(Feature::unified_addressing) && !device.has(Feature::integrated);
    return end;
}

ShareMethodAnswer choose_share_method(SeenBy seen, const SharingEnd& exporter, const SharingEnd& importer,
                                      bool same_machine) {
    const bool both_gpus = exporter.gpu && importer.gpu;
    if (seen == SeenBy::cpus_and_gpus || !both_gpus) {
        if (same_machine && seen == SeenBy::cpus_and_gpus) {
            return {ShareMethod::host_memory,
                    "a CPU touches it: sealed shared memory of the host, which each side registers with its device",
                    {}};
        }
        if (same_machine) {
            return {ShareMethod::host_memory,
                    "one end has no GPU, so that a CPU is among its users: sealed shared memory of the host",
                    {}};
        }
        return {ShareMethod::none, "the processes run on two machines, and memory of a host stays on it",
                "send copies over the network, or share device memory over a fabric for GPUs alone"};
    }
    if (same_machine && exporter.posix_fd && importer.posix_fd) {
        return {ShareMethod::posix_fd,
                "only GPUs touch it: device memory by a file descriptor, which is valid on its own and ends with its "
                "last holder",
                {}};
    }
    if (exporter.fabric && importer.fabric) {
        return {ShareMethod::fabric,
                same_machine ? "only GPUs touch it, and not both ends export file descriptors: device memory by a "
                               "fabric handle"
                             : "only GPUs touch it, on two machines: device memory by a fabric handle",
                {}};
    }
    if (!same_machine) {
        return {ShareMethod::none, "between two machines only fabric handles go, and not both ends have them",
                "`isthmus doctor` says which piece of the fabric is missing; copies over the network always work"};
    }
    if (exporter.legacy_ipc && importer.legacy_ipc) {
        return {ShareMethod::legacy_ipc,
                "only GPUs touch it, and not both ends have file descriptors or a fabric: the driver's older handles, "
                "whose exporter has to outlive every importer",
                {}};
    }
    return {ShareMethod::none, "the two ends have no handle for device memory in common",
            "declare that CPUs see it: shared memory of the host works on every machine"};
}

std::string_view host_method_reason(bool is_cpu, MemoryKind kind, LaunchPath path, MemoryKind host_kind) noexcept {
    if (is_cpu) return "shared memory of the host, in a sealed file: the CPU device runs kernels on it in place";
    if (path != LaunchPath::stage && kind == MemoryKind::registered) {
        return "shared memory of the host, in a sealed file: registered, and used in place by the device";
    }
    if (path != LaunchPath::stage) {
        return "shared memory of the host, in a sealed file: the device reaches it as it is, and uses it in place";
    }
    if (host_kind == MemoryKind::registered) {
        return "shared memory of the host, in a sealed file: registered, and copied around each use, because the "
               "device "
               "touches it often";
    }
    return "shared memory of the host, in a sealed file: copied around each use, because the device does not reach it "
           "in place or touches it often";
}

}  // namespace rules
}  // namespace isthmus
