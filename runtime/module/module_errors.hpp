// SPDX-License-Identifier: Apache-2.0
// Error entries: ready-made modules.
#pragma once

#include "error_entry.hpp"

namespace isthmus {
inline namespace v0 {
namespace errors {

// clang-format off
inline constexpr auto module_is_no_image =
    error_entry("Y001", Code::no_gpu_code,
                "{module} is not loaded: {why}",
                "give all bytes of what nvcc -cubin, -fatbin or -ptx wrote (PTX as text: std::as_bytes(std::span(text))); a "
                "string is the name of a file");
inline constexpr auto module_file_not_read =
    error_entry("Y002", Code::system_error,
                "{module} is not loaded: the file cannot be read ({why})",
                "name a regular file of at most 1 GiB that may be read; PTX text is given as bytes, not as a string");
// Code, meaning and remedy are those of the driver's answer.
inline constexpr auto module_refused_by_driver =
    error_entry("Y003", Code::ok,
                "{answer}. {details}",
                "{remedy}");
inline constexpr auto module_entry_missing =
    error_entry("Y004", Code::invalid_argument,
                "{module} has no entry '{name}'; it has {entries}",
                "give the name as it stands in the image: declare the kernel extern \"C\", or name it mangled (nm, "
                "cuobjdump -elf)");
inline constexpr auto module_parameters_differ =
    error_entry("Y005", Code::invalid_argument,
                "kernel '{name}' of {module} was declared with other parameters than {source} says: {difference}",
                "declare what the __global__ function takes: View or Out for each pointer, and values of the same sizes in "
                "the same order; a signature that begins with Index is that of an ISTHMUS_KERNEL");
inline constexpr auto module_needs_stand_in =
    error_entry("Y006", Code::unsupported,
                "kernel '{name}' of {module}: {device} runs no GPU code of this image, and no function stands in for it",
                "on a simulated machine load PTX, which runs there; elsewhere load the module with "
                "isthmus::stand_in<SIGNATURE>(\"{name}\", function) in ModuleOptions::stand_ins, where function takes a "
                "const StandInCall&, a pointer for each View or Out, and the values");
inline constexpr auto module_stand_in_differs =
    error_entry("Y007", Code::invalid_argument,
                "kernel '{name}' of {module}: its stand-in was made for other parameters: {difference}",
                "make the stand-in with the signature that kernel() is given");
inline constexpr auto module_of_other_device =
    error_entry("Y008", Code::wrong_device,
                "kernel '{name}' belongs to {module}, which was loaded on {owner}; the stream is of {device}",
                "load the module on the stream's device too");
inline constexpr auto module_was_released =
    error_entry("Y009", Code::invalid_handle,
                "{module} was released, and with it '{name}'",
                "launch before the release, or load the module again");
inline constexpr auto module_block_too_large =
    error_entry("Y010", Code::invalid_argument,
                "kernel '{name}': a block of {x:number} × {y:number} × {z:number} threads is refused: {why}",
                "use smaller blocks, and more of them");
inline constexpr auto module_grid_too_large =
    error_entry("Y011", Code::invalid_argument,
                "kernel '{name}': a grid of {x:number} × {y:number} × {z:number} blocks is refused: {why}",
                "split the launch, or give the largest dimension to x");
inline constexpr auto module_shared_too_large =
    error_entry("Y012", Code::invalid_argument,
                "kernel '{name}': {asked:number} bytes of dynamic shared memory are refused: the kernel has {own:number} of "
                "its own, and a block of this device may have {most:number} in all",
                "ask for less, or divide the work over more blocks");
inline constexpr auto module_cluster_refused =
    error_entry("Y013", Code::invalid_argument,
                "kernel '{name}': a cluster of {x:number} × {y:number} × {z:number} blocks is refused: {why}",
                "use clusters of at most 8 blocks that divide the grid");
inline constexpr auto module_clusters_unsupported =
    error_entry("Y014", Code::unsupported,
                "kernel '{name}': {device} launches no clusters (attribute CLUSTER_LAUNCH, compute capability 9.0; driver "
                "of CUDA 11.8)",
                "leave LaunchShape::cluster out, if the kernel works without");
inline constexpr auto module_held_by_graph =
    error_entry("Y015", Code::in_use,
                "{module} is not released: a graph or an open capture launches its kernels",
                "end the graph and its instances first");
inline constexpr auto module_is_launching =
    error_entry("Y016", Code::timed_out,
                "{module} is not released: another thread is launching one of its kernels",
                "release it when no thread launches its kernels");
inline constexpr auto module_global_missing =
    error_entry("Y017", Code::invalid_argument,
                "{module} has no variable '{name}'; it has {globals}",
                "give the name as it stands in the image; variables that no kernel uses are removed by the compiler");
inline constexpr auto module_global_of_other_size =
    error_entry("Y018", Code::invalid_argument,
                "variable '{name}' of {module} has {bytes:number} bytes, which are no whole number of elements of "
                "{element:number} bytes",
                "name the type that the variable was defined with");
inline constexpr auto module_release_in_capture =
    error_entry("Y019", Code::capture_error,
                "{module} is not released: a capture is open, and unloading could end it",
                "release it after the capture, or let the Module go: that is put off until then");
inline constexpr auto modules_not_offered =
    error_entry("Y020", Code::unsupported,
                "{module} is not loaded: the driver of {device} lacks cuModuleLoadDataEx or a call of its family",
                "update the driver");
// clang-format on

}  // namespace errors
}  // namespace v0
}  // namespace isthmus
