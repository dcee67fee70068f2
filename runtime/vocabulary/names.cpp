// SPDX-License-Identifier: Apache-2.0
// The names of all enumerators of the vocabulary, spelled as in the source; "unknown" for a value outside its
// enumeration. An enumerator without a name is a compiler warning here.
#include <isthmus/access.hpp>
#include <isthmus/capability.hpp>
#include <isthmus/export_finding.hpp>
#include <isthmus/facts.hpp>
#include <isthmus/litmus.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/placement.hpp>
#include <isthmus/profile.hpp>
#include <isthmus/sharing_use.hpp>

namespace isthmus {
inline namespace v0 {

std::string_view name(Feature feature) noexcept {
    switch (feature) {
        case Feature::pageable_access: return "pageable_access";
        case Feature::host_page_tables: return "host_page_tables";
        case Feature::managed: return "managed";
        case Feature::concurrent_managed: return "concurrent_managed";
        case Feature::direct_managed: return "direct_managed";
        case Feature::unified_addressing: return "unified_addressing";
        case Feature::integrated: return "integrated";
        case Feature::native_atomics: return "native_atomics";
        case Feature::partial_atomics: return "partial_atomics";
        case Feature::host_register: return "host_register";
        case Feature::host_register_read_only: return "host_register_read_only";
        case Feature::registered_same_pointer: return "registered_same_pointer";
        case Feature::pools: return "pools";
        case Feature::host_pools: return "host_pools";
        case Feature::host_numa_pools: return "host_numa_pools";
        case Feature::virtual_memory: return "virtual_memory";
        case Feature::host_virtual_memory: return "host_virtual_memory";
        case Feature::host_numa_virtual_memory: return "host_numa_virtual_memory";
        case Feature::export_posix_fd: return "export_posix_fd";
        case Feature::export_fabric: return "export_fabric";
        case Feature::ipc_events: return "ipc_events";
        case Feature::gpudirect_rdma: return "gpudirect_rdma";
        case Feature::dma_buf: return "dma_buf";
        case Feature::host_dma_buf: return "host_dma_buf";
        case Feature::multicast: return "multicast";
        case Feature::concurrent_kernels: return "concurrent_kernels";
        case Feature::kernel_timeout: return "kernel_timeout";
        case Feature::cooperative_launch: return "cooperative_launch";
    }
    return "unknown";
}

std::string_view name(State state) noexcept {
    switch (state) {
        case State::no: return "no";
        case State::yes: return "yes";
        case State::probed: return "probed";
    }
    return "unknown";
}

std::string_view name(Origin origin) noexcept {
    switch (origin) {
        case Origin::attribute: return "attribute";
        case Origin::probe: return "probe";
        case Origin::absent: return "absent";
        case Origin::refused: return "refused";
    }
    return "unknown";
}

std::string_view name(Translation axis) noexcept {
    switch (axis) {
        case Translation::none: return "none";
        case Translation::hmm: return "hmm";
        case Translation::host_page_tables: return "host_page_tables";
    }
    return "unknown";
}

std::string_view name(MemoryModel axis) noexcept {
    switch (axis) {
        case MemoryModel::host: return "host";
        case MemoryModel::separate: return "separate";
        case MemoryModel::shared_dram: return "shared_dram";
        case MemoryModel::coherent_node: return "coherent_node";
        case MemoryModel::coherent_hidden: return "coherent_hidden";
    }
    return "unknown";
}

std::string_view name(ManagedModel axis) noexcept {
    switch (axis) {
        case ManagedModel::none: return "none";
        case ManagedModel::phase_guarded: return "phase_guarded";
        case ManagedModel::concurrent: return "concurrent";
        case ManagedModel::direct: return "direct";
    }
    return "unknown";
}

std::string_view name(LinkAtomics axis) noexcept {
    switch (axis) {
        case LinkAtomics::none: return "none";
        case LinkAtomics::partial: return "partial";
        case LinkAtomics::native: return "native";
    }
    return "unknown";
}

std::string_view name(Model model) noexcept {
    switch (model) {
        case Model::cpu: return "cpu";
        case Model::discrete: return "discrete";
        case Model::hmm: return "hmm";
        case Model::integrated: return "integrated";
        case Model::ats: return "ats";
        case Model::c2c: return "c2c";
    }
    return "unknown";
}

std::string_view name(AtomicOperation operation) noexcept {
    switch (operation) {
        case AtomicOperation::add: return "add";
        case AtomicOperation::min: return "min";
        case AtomicOperation::max: return "max";
        case AtomicOperation::increment: return "increment";
        case AtomicOperation::decrement: return "decrement";
        case AtomicOperation::bit_and: return "bit_and";
        case AtomicOperation::bit_or: return "bit_or";
        case AtomicOperation::bit_xor: return "bit_xor";
        case AtomicOperation::exchange: return "exchange";
        case AtomicOperation::compare_exchange: return "compare_exchange";
        case AtomicOperation::float_add: return "float_add";
        case AtomicOperation::float_min: return "float_min";
        case AtomicOperation::float_max: return "float_max";
    }
    return "unknown";
}

std::string_view name(MemoryKind kind) noexcept {
    switch (kind) {
        case MemoryKind::unknown: return "unknown";
        case MemoryKind::host: return "host";
        case MemoryKind::pinned: return "pinned";
        case MemoryKind::registered: return "registered";
        case MemoryKind::write_combined: return "write_combined";
        case MemoryKind::device: return "device";
        case MemoryKind::pool: return "pool";
        case MemoryKind::managed: return "managed";
        case MemoryKind::managed_pool: return "managed_pool";
        case MemoryKind::graph: return "graph";
        case MemoryKind::vmm: return "vmm";
        case MemoryKind::host_numa: return "host_numa";
        case MemoryKind::imported: return "imported";
    }
    return "unknown";
}

std::string_view name(LitmusShape shape) noexcept {
    switch (shape) {
        case LitmusShape::message_to_device: return "message_to_device";
        case LitmusShape::message_to_host: return "message_to_host";
        case LitmusShape::store_buffering: return "store_buffering";
        case LitmusShape::load_buffering: return "load_buffering";
        case LitmusShape::coherence_to_device: return "coherence_to_device";
        case LitmusShape::coherence_to_host: return "coherence_to_host";
        case LitmusShape::tearing_to_device: return "tearing_to_device";
        case LitmusShape::tearing_to_host: return "tearing_to_host";
        case LitmusShape::lost_updates: return "lost_updates";
    }
    return "unknown";
}

std::string_view name(Verdict verdict) noexcept {
    switch (verdict) {
        case Verdict::no: return "no";
        case Verdict::yes: return "yes";
        case Verdict::not_verified: return "not_verified";
    }
    return "unknown";
}

std::string_view name(ExportStep step) noexcept {
    switch (step) {
        case ExportStep::create: return "create";
        case ExportStep::export_handle: return "export";
        case ExportStep::import_handle: return "import";
        case ExportStep::compare: return "compare";
        case ExportStep::survive: return "survive";
    }
    return "unknown";
}

std::string_view name(LaunchMode mode) noexcept {
    switch (mode) {
        case LaunchMode::relaxed: return "relaxed";
        case LaunchMode::checked: return "checked";
        case LaunchMode::strict: return "strict";
        case LaunchMode::staged: return "staged";
        case LaunchMode::verify: return "verify";
    }
    return "unknown";
}

std::string_view name(Locality locality) noexcept {
    switch (locality) {
        case Locality::anywhere: return "anywhere";
        case Locality::local: return "local";
        case Locality::near_device: return "near_device";
        case Locality::node: return "node";
        case Locality::interleaved: return "interleaved";
        case Locality::unbound: return "unbound";
    }
    return "unknown";
}

std::string_view name(Placed placed) noexcept {
    switch (placed) {
        case Placed::unasked: return "unasked";
        case Placed::verified: return "verified";
        case Placed::fallback: return "fallback";
        case Placed::unverifiable: return "unverifiable";
    }
    return "unknown";
}

std::string_view name(Use use) noexcept {
    switch (use) {
        case Use::never: return "never";
        case Use::reads_once: return "reads_once";
        case Use::reads_often: return "reads_often";
        case Use::writes_once: return "writes_once";
        case Use::writes_often: return "writes_often";
        case Use::reads_and_writes: return "reads_and_writes";
    }
    return "unknown";
}

std::string_view name(LaunchPath path) noexcept {
    switch (path) {
        case LaunchPath::pass: return "pass";
        case LaunchPath::attach: return "attach";
        case LaunchPath::stage: return "stage";
        case LaunchPath::refuse: return "refuse";
        case LaunchPath::prefetch: return "prefetch";
    }
    return "unknown";
}

std::string_view name(Prefer prefer) noexcept {
    switch (prefer) {
        case Prefer::throughput: return "throughput";
        case Prefer::latency: return "latency";
    }
    return "unknown";
}

std::string_view name(Role role) noexcept {
    switch (role) {
        case Role::reads: return "reads";
        case Role::writes: return "writes";
        case Role::reads_and_writes: return "reads_and_writes";
    }
    return "unknown";
}

}  // namespace v0
}  // namespace isthmus
