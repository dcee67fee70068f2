// SPDX-License-Identifier: Apache-2.0
// Reads the PTX of ready-made images, places its variables, and runs its entries.
#include "ptx_kernels.hpp"

#include "allocate.hpp"
#include "packed_images.hpp"
#include "statistics.hpp"
#include "written_bytes.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>

namespace isthmus::sim {
namespace {

constexpr unsigned most_threads = 8;

Result code_of(ptx::FaultKind kind) {
    switch (kind) {
        case ptx::FaultKind::none: return result::ok;
        case ptx::FaultKind::illegal_address: return result::illegal_address;
        case ptx::FaultKind::assertion: return result::assertion;
        case ptx::FaultKind::illegal_instruction: return result::illegal_instruction;
        case ptx::FaultKind::misaligned: return result::misaligned_address;
        case ptx::FaultKind::invalid_pc: return result::invalid_pc;
        case ptx::FaultKind::launch_failed:
        case ptx::FaultKind::out_of_memory: return result::launch_failed;
    }
    return result::unknown;
}
const char* name_of(Result code) {
    switch (code) {
        case result::illegal_address: return "CUDA_ERROR_ILLEGAL_ADDRESS";
        case result::assertion: return "CUDA_ERROR_ASSERT";
        case result::illegal_instruction: return "CUDA_ERROR_ILLEGAL_INSTRUCTION";
        case result::misaligned_address: return "CUDA_ERROR_MISALIGNED_ADDRESS";
        case result::invalid_pc: return "CUDA_ERROR_INVALID_PC";
        default: return "CUDA_ERROR_LAUNCH_FAILED";
    }
}

// Blocks on the calling thread and on helpers, which inherit its access to the device's memory.
void run_blocks(ptx::Execution& execution, unsigned threads) {
    const auto work = [&execution] {
        std::uintptr_t fault = 0;
        if (Protection::run_guarded([&execution] { execution.run(); }, fault)) return;
        char why[96];
        std::snprintf(why, sizeof why, "an access at %#zx: nothing is there that the device can reach",
                      static_cast<std::size_t>(fault));
        execution.fail_here(why);
    };
    std::vector<std::thread> helpers;
    try {
        helpers.reserve(threads);
        for (unsigned one = 1; one < threads; ++one) helpers.emplace_back(work);
    } catch (const std::exception&) {
        // No memory or no thread: with those that there are.
    }
    work();
    for (std::thread& helper : helpers) helper.join();
}

}  // namespace

bool ptx_always() {
    const char* const wanted = ::secure_getenv("ISTHMUS_SIM_PTX");
    return wanted != nullptr && std::strcmp(wanted, "always") == 0;
}

bool has_program(const void* image) {
    const std::size_t bytes = image_bytes(image);
    if (bytes == 0) return false;
    const std::span<const std::byte> whole(static_cast<const std::byte*>(image), bytes);
    const std::vector<std::byte> unpacked = unpacked_image(whole);
    return !images::ptx_text(unpacked.empty() ? whole : unpacked, 0).empty();
}

std::string fault_of(const ptx::Program& program) {
    const ptx::Refusal& fault = program.fault();
    return fault.refused() ? "line " + std::to_string(fault.line) + "; error   : " + fault.what : "";
}

std::shared_ptr<ptx::Program> read_program(std::span<const std::byte> image, std::uint32_t capability,
                                           std::string& error) {
    const std::string_view text = images::ptx_text(image, capability);
    if (text.empty()) return nullptr;
    auto program = std::make_shared<ptx::Program>(text);
    error = fault_of(*program);
    // Observed (580, H100) and said by ptxas 13.0: one that has a size is a variable of the module's own.
    for (const ptx::GlobalVariable& variable : program->variables()) {
        const bool missing = variable.is_extern && variable.size_bytes == 0;
        if (error.empty() && missing) error = "fatal   : Unresolved extern variable '" + variable.name + "'";
    }
    if (!error.empty()) return nullptr;
    if (program->refusal().refused()) {
        say("the PTX cannot run here: line %u: %s", program->refusal().line, program->refusal().what.c_str());
        return nullptr;
    }
    for (const ptx::Entry& entry : program->entries()) {
        if (!entry.refusal.refused()) continue;
        say("the entry %s cannot run from its PTX: line %u: %s", entry.name.c_str(), entry.refusal.line,
            entry.refusal.what.c_str());
    }
    return program;
}

bool place_program(Driver& d, Context* context, Module& module, ptx::Program& program) {
    const int device = context ? context->device : 0;
    if (!d.valid(device)) return true;
    std::vector<Region*> regions;
    std::vector<std::uint64_t> addresses;
    for (const ptx::GlobalVariable& variable : program.variables()) {
        const std::size_t bytes = std::max<std::size_t>(static_cast<std::size_t>(variable.size_bytes), 1);
        constexpr unsigned attach_global = 1;
        Region* const region = variable.is_managed ? allocate_managed(d, device, context, bytes, attach_global)
                                                   : allocate_device_memory(d, device, context, bytes);
        if (!region) return false;
        regions.push_back(region);
        addresses.push_back(region->base);
        module.variables[variable.name] = region->id;
    }
    program.place(addresses);
    if (regions.empty()) return true;
    d.protection.gpu_work_begins(~std::uint64_t{0});  // opens device memory to this thread
    for (std::size_t at = 0; at < regions.size(); ++at) {
        const std::vector<std::byte> content = program.content(at);
        std::memset(regions[at]->host, 0, regions[at]->bytes);
        if (!content.empty()) std::memcpy(regions[at]->host, content.data(), content.size());
    }
    d.protection.gpu_work_ends();
    return true;
}

bool has_managed_variables(const ptx::Program* program) {
    const auto managed = [](const ptx::GlobalVariable& variable) { return variable.is_managed; };
    return program != nullptr && std::any_of(program->variables().begin(), program->variables().end(), managed);
}

bool can_run_ptx(const Twin& twin) {
    if (twin.entry == nullptr) {
        say("no function stands in for the entry %s of a ready-made image (isthmus_sim_set_stand_in), and the image "
            "has no PTX for it that can be read",
            twin.symbol.c_str());
        return false;
    }
    if (!twin.entry->refusal.refused()) return true;
    say("the entry %s cannot run from its PTX: line %u: %s; no function stands in for it (isthmus_sim_set_stand_in)",
        twin.symbol.c_str(), twin.entry->refusal.line, twin.entry->refusal.what.c_str());
    return false;
}

Result run_ptx(Driver& d, const KernelLaunch& launch) {
    count_kernel_from_ptx();
    GpuAgent agent = launch.agent;
    agent.stream = engine::Engine::running_stream();
    PtxMemory memory(d, agent);
    const LaunchShape& shape = launch.shape;
    ptx::ExecutionShape execution_shape;
    execution_shape.grid = {shape.grid[0], shape.grid[1], shape.grid[2]};
    execution_shape.block = {shape.block[0], shape.block[1], shape.block[2]};
    const ClusterSize cluster = cluster_of(launch);
    if (cluster.x != 0) execution_shape.cluster = {cluster.x, cluster.y, cluster.z};
    execution_shape.explicit_cluster = cluster.x != 0;
    execution_shape.dynamic_shared_bytes = shape.shared_bytes;
    execution_shape.cooperative = launch.settings.cooperative;
    execution_shape.finds_uninitialised = written_bytes::wanted();
    execution_shape.multiprocessors =
        static_cast<std::uint32_t>(std::max(1, d.fact(agent.device, attribute::multiprocessors)));
    ptx::Execution execution(*launch.twin->program, *launch.twin->entry, execution_shape, launch.pack, memory);
    // The blocks of a cluster run on one thread.
    const std::uint64_t blocks =
        std::uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2] /
        (std::uint64_t{execution_shape.cluster.x} * execution_shape.cluster.y * execution_shape.cluster.z);
    const unsigned processors = std::min(most_threads, std::max(1u, std::thread::hardware_concurrency()));
    run_blocks(execution, d.seeded ? 1 : static_cast<unsigned>(std::min<std::uint64_t>(blocks, processors)));
    const ptx::Fault& fault = execution.fault();
    const Result code = code_of(fault.kind);
    if (code != result::ok) say("%s; this becomes %s (%d)", fault.message.c_str(), name_of(code), code);
    return code;
}

}  // namespace isthmus::sim
