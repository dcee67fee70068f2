# SPDX-License-Identifier: Apache-2.0
# isthmus_add_kernels(target sources... [ARCHITECTURES 87 110 ptx] [NO_GPU])
#
# Adds kernel sources to a target: each is compiled by the C++ compiler for the CPU and by nvcc for the GPU, and the
# GPU's code is embedded. Without nvcc (or with NO_GPU) the kernels run on CPU devices and simulated machines.
# Set ISTHMUS_NVCC to name another nvcc, ISTHMUS_GPU_ARCHITECTURES for a default other than all that nvcc knows.
cmake_minimum_required(VERSION 3.20)  # DEPFILE with every generator
enable_language(ASM)

find_program(ISTHMUS_KERNEL_IMAGE_TOOL NAMES isthmus-kernel-image kernel_image.py
  HINTS "${CMAKE_CURRENT_LIST_DIR}/.." "${CMAKE_CURRENT_LIST_DIR}/../../../bin" "${CMAKE_CURRENT_LIST_DIR}/../../../../bin"
  NO_CMAKE_FIND_ROOT_PATH REQUIRED)
find_program(ISTHMUS_NVCC NAMES nvcc HINTS /usr/local/cuda/bin NO_CMAKE_FIND_ROOT_PATH)

function(isthmus_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NO_GPU" "" "ARCHITECTURES")
  if(NOT arg_ARCHITECTURES)
    set(arg_ARCHITECTURES ${ISTHMUS_GPU_ARCHITECTURES})
  endif()
  set(gpu_options)
  set(includes)
  set(defines)
  if(ISTHMUS_NVCC AND NOT arg_NO_GPU)
    set(includes "$<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>")
    set(defines "$<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>")
    set(gpu_options --nvcc "${ISTHMUS_NVCC}")
    foreach(arch IN LISTS arg_ARCHITECTURES)
      list(APPEND gpu_options --arch ${arch})
    endforeach()
  endif()

  foreach(source IN LISTS arg_UNPARSED_ARGUMENTS)
    get_filename_component(path "${source}" ABSOLUTE)
    get_filename_component(stem "${source}" NAME_WE)
    string(MAKE_C_IDENTIFIER "isthmus_image_${target}_${stem}" symbol)
    set(base "${CMAKE_CURRENT_BINARY_DIR}/${symbol}")
    add_custom_command(OUTPUT "${base}.fatbin" "${base}.S" "${base}.cpp"
      COMMAND "${ISTHMUS_KERNEL_IMAGE_TOOL}" "${path}" --symbol ${symbol} --image "${base}.fatbin"
        --assembly "${base}.S" --definition "${base}.cpp" --depfile "${base}.d" ${gpu_options}
        "$<$<BOOL:${includes}>:-I$<JOIN:${includes},;-I>>" "$<$<BOOL:${defines}>:-D$<JOIN:${defines},;-D>>"
      DEPENDS "${path}" "${ISTHMUS_KERNEL_IMAGE_TOOL}" DEPFILE "${base}.d"
      COMMENT "Compiling the kernels of ${source} for the GPU" COMMAND_EXPAND_LISTS VERBATIM)
    target_sources(${target} PRIVATE "${path}" "${base}.S" "${base}.cpp")
    # No fused multiply-add, as in the GPU code, so that both give the same bits.
    set_property(SOURCE "${path}" APPEND PROPERTY COMPILE_OPTIONS -ffp-contract=off)
    set_property(SOURCE "${path}" APPEND PROPERTY COMPILE_DEFINITIONS ISTHMUS_KERNEL_IMAGE=${symbol})
  endforeach()
  target_compile_features(${target} PRIVATE cxx_std_20)
endfunction()
