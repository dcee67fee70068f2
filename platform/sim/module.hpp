// SPDX-License-Identifier: Apache-2.0
// Loaded images and the functions in them. A library (context-independent) is a module, a kernel a function.
#pragma once

#include "twins.hpp"
#include "types.hpp"

#include <module_image.hpp>

#include <map>
#include <memory>
#include <string>

namespace isthmus::sim {

class Driver;

struct Function {
    const Twin* twin = nullptr;
    std::shared_ptr<const Twin> own_twin;  // of an entry of a ready-made image; replaced when it gets a stand-in
    Module* module = nullptr;
    std::map<int, int> set_attributes;
};

struct Module {
    ImageName image;
    std::map<std::string, Function*> functions;
    Context* context = nullptr;                             // nullptr: a library
    std::shared_ptr<const images::ImageContents> contents;  // of a ready-made image; nullptr: registered twins
    std::map<std::string, std::uint64_t> variables;         // ids of their regions
    std::shared_ptr<const ptx::Program> program;            // of a ready-made image with PTX
    Result code = 0;  // of a library's image that cannot be loaded: the answer to its first use
};

// What cuLinkCreate makes. The simulator's machine code is the text that was added.
struct LinkState {
    std::string text;
    char* log = nullptr;  // the buffer of the option of cuLinkCreate
    std::size_t log_bytes = 0;
};

// Where the options of cuModuleLoadDataEx or cuLinkCreate want the errors of the compiler.
void find_log(unsigned count, const int* options, void** values, char*& buffer, std::size_t& bytes);
void write_log(const std::string& log, char* buffer, std::size_t bytes);

// The driver's answer to a ready-made image on a device of this compute capability × 10 (0: any): 0, 200, 209, 218 or
// 222. `log`: what its compiler says.
Result judge_image(const images::ImageContents& contents, int driver_version, std::uint32_t capability,
                   std::string& log);
// How many bytes an image has, by what it says itself; 0: it is none.
std::size_t image_bytes(const void* image) noexcept;
// Blocks of this many threads that a multiprocessor holds at a time.
int blocks_per_multiprocessor(const Driver& d, int device, int block);
// The function of this name. `module` may be a library.
Result find_function(Driver& d, Module* module, const char* name, Function** function);
Result find_variable(Driver& d, Address* address, std::size_t* bytes, const Module* module, const char* name);
// The entry as a function without a stand-in.
std::shared_ptr<Twin> twin_of_entry(const images::ImageEntry& entry, std::shared_ptr<const ptx::Program> program);

}  // namespace isthmus::sim
