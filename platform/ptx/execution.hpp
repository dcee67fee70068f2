// SPDX-License-Identifier: Apache-2.0
// Runs an entry of a program. Every access to memory beyond a block's own goes through an interface that judges it.
#pragma once

#include "program.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace isthmus::ptx {

// A run of addresses with the same answer.
struct MemoryWindow {
    std::uint64_t begin = 0;       // as the program names it
    std::uint64_t size_bytes = 0;  // 0: the access is refused
    std::byte* host = nullptr;     // where `begin` lies in this process
    // Whether atomic updates are atomic for everything that accesses this memory. Otherwise update() does them.
    bool whole_updates = true;
    std::string refusal;  // the fact that forbids the access, and the nearest allocation
    // For executions that find uninitialised reads: one byte for each byte from `begin` on, 0 until it is written.
    // nullptr: all of it counts as written.
    std::byte* written = nullptr;
};

struct TexelFormat {
    enum class Kind : std::uint8_t { unsigned_, signed_, floating } kind = Kind::unsigned_;
    std::uint32_t channel_bytes = 1, channels = 1;
};

// The bytes behind a surface: layers of rows without gaps.
struct SurfaceBytes {
    std::byte* host = nullptr;     // nullptr: the access is refused
    std::byte* written = nullptr;  // as MemoryWindow::written
    std::uint64_t row_bytes = 0, rows = 0, layers = 0;
    TexelFormat format;
    std::uint32_t dimensions = 1;  // of the coordinates, layers not counted
    bool layered = false;
    std::string refusal;
    bool is_modelled = true;  // false: refused because this is not known here
};

struct TextureLevel {
    const std::byte* host = nullptr;
    std::uint64_t width = 0, height = 1, depth = 1;  // texels; depth: slices, layers or faces
    std::uint64_t row_bytes = 0, slice_bytes = 0;    // from one row or slice to the next
};

// The texels behind a texture object, and how it reads them (CUDA_TEXTURE_DESC). Of the first level, host is nullptr
// where the access is refused.
struct TextureBytes : TextureLevel {
    enum class Address : std::uint8_t { wrap, clamp, mirror, border };  // CUaddress_mode
    std::vector<TextureLevel> smaller;   // the other levels of a mipmapped array, in the same memory
    const std::byte* written = nullptr;  // as MemoryWindow::written, from the first level on
    TexelFormat format;
    std::uint32_t dimensions = 1;  // of the coordinates, layers and faces not counted
    bool layered = false, is_cube = false;
    bool is_seamless = false;       // a cube whose filters reach other faces
    bool is_linear_memory = false;  // only integer coordinates reach it (tex1Dfetch)
    bool is_array = false;          // only fractional coordinates reach it
    bool normalised = false, linear_filter = false, reads_integers = false;
    bool is_srgb = false;  // of 8 unsigned bits: all but a fourth channel
    std::array<Address, 3> address = {};
    std::array<float, 4> border = {};
    bool blends_levels = false;
    float level_bias = 0, least_level = 0, most_level = 0;
    std::string refusal;
    bool is_modelled = true;  // false: refused because this is not known here
};

// An atomic update of memory whose updates are not whole.
class Update {
public:
    virtual ~Update() = default;
    std::uint32_t operation = 0;  // CUatomicOperation
    bool is_signed = false;
    virtual std::uint64_t changed(std::uint64_t old) = 0;
};

// Calls come from every thread that runs blocks.
class Memory {
public:
    virtual ~Memory() = default;
    // The window around an access. It is asked again after each quantum of a block at the latest.
    virtual MemoryWindow window(std::uint64_t address, std::uint32_t bytes, bool writes) = 0;
    // The bytes of a surface object. Asked for by each instruction; they stay until the launch ends.
    virtual SurfaceBytes surface(std::uint64_t /*handle*/) {
        SurfaceBytes none;
        none.refusal = "it is no surface object";
        return none;
    }
    // The texels of a texture object, in the same way.
    virtual TextureBytes texture(std::uint64_t /*handle*/) {
        TextureBytes none;
        none.refusal = "it is no texture object";
        return none;
    }
    // Loads `bytes` (2, 4 or 8) at `word`, and stores what the update makes of them, as this device does it. Returns
    // what it loaded. Only for windows without whole updates.
    virtual std::uint64_t update(void* word, std::uint32_t bytes, Update& update) = 0;
    // Text of vprintf and of a failed assertion.
    virtual void print(std::string_view text) = 0;
    // An instruction read bytes that nothing wrote: kernel, PTX line, source line, block, thread, address. Once for
    // each instruction of a launch; the kernel goes on. Only with ExecutionShape::finds_uninitialised.
    virtual void uninitialised(std::string_view /*text*/, std::uint64_t /*address*/) {}
    // malloc() of a kernel: an address that is a multiple of 16; 0: the heap has no room.
    virtual std::uint64_t allocate(std::uint64_t /*bytes*/) { return 0; }
    // free() of a kernel, never of 0. Empty: done. Otherwise why not: the heap has nothing there, or no more.
    virtual std::string release(std::uint64_t /*address*/) { return "there is no heap"; }
    // A block waits for something outside of it: lets others run.
    virtual void pause() = 0;
    // cudaGraphSetConditional(); false: no such handle.
    virtual bool set_condition(std::uint64_t handle, std::uint32_t value) = 0;
};

enum class FaultKind : std::uint8_t {
    none,
    illegal_address,      // CUDA_ERROR_ILLEGAL_ADDRESS (700)
    assertion,            // CUDA_ERROR_ASSERT (710)
    illegal_instruction,  // CUDA_ERROR_ILLEGAL_INSTRUCTION (715): what this room does not model, noticed at run time
    misaligned,           // CUDA_ERROR_MISALIGNED_ADDRESS (716)
    invalid_pc,           // CUDA_ERROR_INVALID_PC (718): an indirect call of what is no function
    launch_failed,        // CUDA_ERROR_LAUNCH_FAILED (719): trap, a deadlock
    out_of_memory,        // this process has no memory for the state of the blocks; also 719
};

struct Fault {
    FaultKind kind = FaultKind::none;
    std::string message;  // kernel, PTX line, source line, block, thread, address and the fact
};

struct Dimensions {
    std::uint32_t x = 1, y = 1, z = 1;
};

struct ExecutionShape {
    Dimensions grid, block;
    Dimensions cluster;             // blocks; the grid is a multiple of it
    bool explicit_cluster = false;  // the launch or the entry states it
    std::uint32_t dynamic_shared_bytes = 0;
    bool cooperative = false;          // grid.sync() is lawful
    bool finds_uninitialised = false;  // reads of memory that was not written are reported
    std::uint32_t multiprocessors = 1;
};

// One launch. Several threads may call run(), each returns when no block is left for it; blocks that wait for each
// other are run in turns. Results can be read when all have returned.
class Execution {
public:
    // `parameters`: the parameter block; copied. The program must stay.
    Execution(const Program& program, const Entry& entry, const ExecutionShape& shape,
              std::span<const std::byte> parameters, Memory& memory);
    ~Execution();
    Execution(const Execution&) = delete;
    Execution& operator=(const Execution&) = delete;

    void run();
    // After a signal left run() on this thread in the middle: records the fault at what this thread ran.
    void fail_here(const std::string& why);

    const Fault& fault() const noexcept;
    std::uint64_t thread_instructions() const noexcept;

    struct State;

private:
    void out_of_memory();
    std::unique_ptr<State> state_;
};

}  // namespace isthmus::ptx
