// SPDX-License-Identifier: Apache-2.0
// Loaded images and the functions in them. A library (context-independent) is a module, a kernel a function.
#pragma once

#include "twins.hpp"
#include "types.hpp"

#include <joining.hpp>
#include <module_image.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace isthmus::sim {

class Driver;

// CUfunction_attribute
namespace function_attribute {
inline constexpr int most_threads = 0, static_shared = 1, dynamic_shared = 8, carveout = 9, cluster_required = 10,
                     cluster_width = 11, cluster_height = 12, cluster_depth = 13, any_cluster = 14,
                     cluster_scheduling = 15;
}  // namespace function_attribute

// What the launch functions before CUDA 4 take from the function.
struct OldLaunch {
    unsigned block[3] = {1, 1, 1};
    unsigned shared_bytes = 0;
    std::size_t parameter_bytes = 0;
    std::vector<std::byte> parameters;
};

struct Function {
    const Twin* twin = nullptr;
    std::shared_ptr<const Twin> own_twin;  // of an entry of a ready-made image; replaced when it gets a stand-in
    Module* module = nullptr;
    std::map<int, int> set_attributes;
    std::shared_ptr<OldLaunch> old_launch;  // made when something of it is set
};

struct Module {
    ImageName image;
    std::map<std::string, Function*> functions;
    Context* context = nullptr;                             // nullptr: a library
    std::shared_ptr<const images::ImageContents> contents;  // of a ready-made image; nullptr: registered twins
    std::map<std::string, std::uint64_t> variables;         // ids of their regions
    std::shared_ptr<const ptx::Program> program;            // of a ready-made image with PTX
    std::uint32_t most_registers = 0;                       // of a thread, by CU_JIT_MAX_REGISTERS; 0: not stated
    Result code = 0;  // of a library's image that cannot be loaded: the answer to its first use
};

// Where the options of cuModuleLoadDataEx or cuLinkCreate want what the compiler says. As a driver 580 does it, the
// sizes become the lengths of the texts, without their NUL.
struct CompilerLogs {
    struct Log {
        char* buffer = nullptr;
        std::size_t bytes = 0;
        void** length = nullptr;  // where the size was given
    };
    Log error, information;
    std::uint32_t most_registers = 0;  // of a thread, by CU_JIT_MAX_REGISTERS; 0: not stated

    // 1: arrays are missing, or an option is none of cuda.h's.
    Result read(unsigned count, const int* options, void** values);
    void write(const std::string& errors, const std::string& informations = {}) const;
};

// What cuLinkCreate makes. The simulator's machine code is the text that was added.
struct LinkState {
    std::vector<ptx::NamedText> texts;
    bool has_device_runtime = false;  // libraries may be added several times
    std::string result;               // of cuLinkComplete
    CompilerLogs logs;
    bool failed = false;         // cuLinkComplete did; observed (580, H200): 1 for what is added then
    bool defines_twice = false;  // an input that was refused for a name that another one has
};

// The driver's answer to a ready-made image on a device of this compute capability × 10 (0: any): 0, 200, 209, 218 or
// 222. `log`: what its compiler says.
Result judge_image(const images::ImageContents& contents, int driver_version, std::uint32_t capability,
                   std::string& log);
// The content of a file; nothing: it does not exist or cannot be read. c_str() ends with 0, as PTX has to.
std::optional<std::string> read_file(const char* path);
// How many bytes an image has, by what it says itself; 0: it is none.
std::size_t image_bytes(const void* image) noexcept;
// Threads of a block, by the device and by .maxntid or .reqntid.
int max_threads(const Driver& d, int device, const Function& function);
int static_shared_bytes(const Function& function);
// Of all constant variables, which lie in one bank.
std::uint64_t constant_bytes(const ptx::Program& program);
// That cuFuncSetAttribute set; 0: it set none.
int attribute_of(const Function& function, int id);
// What a linked text says to its loader about registers (CU_JIT_MAX_REGISTERS of cuLinkCreate); 0: nothing.
std::string register_limit_pragma(std::uint32_t most_registers);
std::uint32_t stated_register_limit(std::string_view text);
// Of a thread: what is estimated for PTX (ptx::Entry::registers), within CU_JIT_MAX_REGISTERS; 32 for others.
int registers_of(const Function& function);
// Blocks of this many threads that a multiprocessor holds at a time, by their threads alone.
int blocks_per_multiprocessor(const Driver& d, int device, int block);
// The same by their shared memory; 0: the function may not have so much.
int blocks_by_shared_memory(const Driver& d, int device, const Function& function, std::size_t dynamic_bytes);
// As cuOccupancyMaxActiveBlocksPerMultiprocessor answers: by threads, blocks, registers and shared memory.
int resident_blocks(const Driver& d, int device, const Function& function, int block, std::size_t dynamic_bytes);
// The function of this name. `module` may be a library.
Result find_function(Driver& d, Module* module, const char* name, Function** function);
Result find_variable(Driver& d, Address* address, std::size_t* bytes, const Module* module, const char* name);
// The name that a function or kernel has. Documented: 1 for a null handle, which other queries answer by 400.
Result give_name(Driver& d, const Function* function, const char** name);
// The entry as a function without a stand-in.
std::shared_ptr<Twin> twin_of_entry(const images::ImageEntry& entry, std::shared_ptr<const ptx::Program> program);

}  // namespace isthmus::sim
