// SPDX-License-Identifier: Apache-2.0
// Entries of ready-made images that run from their PTX (platform/ptx).
#pragma once

#include "launch.hpp"
#include "module.hpp"

#include <execution.hpp>
#include <program.hpp>

#include <memory>
#include <span>
#include <string>

namespace isthmus::sim {

// ISTHMUS_SIM_PTX=always: kernels run from their PTX although they have a registered twin.
bool ptx_always();
bool has_program(const void* image);
// nullptr: the image has no PTX, or none that is uncompressed (unpacked_image()). Says what of it is refused.
// `error`: what an assembler refuses of it, in its words; empty: nothing.
std::shared_ptr<ptx::Program> read_program(std::span<const std::byte> image, std::uint32_t capability,
                                           std::string& error);
// The same of a program, without variables that nothing defines.
std::string fault_of(const ptx::Program& program);
bool has_managed_variables(const ptx::Program* program);  // false for nullptr
// Gives each variable memory with its first content; those of a library (no context) lie on the first device. false:
// there is no memory. Requires the driver's mutex.
bool place_program(Driver& d, Context* context, Module& module, ptx::Program& program);

// false, and says why: the entry has no PTX, or the PTX is refused.
bool can_run_ptx(const Twin& twin);
Result run_ptx(Driver& d, const KernelLaunch& launch);

// The memory that a kernel of this agent reaches, by the machine's rules.
class PtxMemory final : public ptx::Memory {
public:
    PtxMemory(Driver& d, const GpuAgent& agent) : d_(d), agent_(agent) {}
    ptx::MemoryWindow window(std::uint64_t address, std::uint32_t bytes, bool writes) override;
    ptx::SurfaceBytes surface(std::uint64_t handle) override;
    ptx::TextureBytes texture(std::uint64_t handle) override;
    std::uint64_t allocate(std::uint64_t bytes) override;
    std::string release(std::uint64_t address) override;
    std::uint64_t update(void* word, std::uint32_t bytes, ptx::Update& update) override;
    void print(std::string_view text) override;
    void uninitialised(std::string_view text, std::uint64_t address) override;
    void pause() override;
    bool set_condition(std::uint64_t handle, std::uint32_t value) override;

private:
    ptx::MemoryWindow heap_window(std::uint64_t address, std::uint32_t bytes);

    Driver& d_;
    GpuAgent agent_;
};

}  // namespace isthmus::sim
