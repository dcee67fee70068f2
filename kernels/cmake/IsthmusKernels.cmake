# SPDX-License-Identifier: Apache-2.0
# isthmus_add_kernels(target sources... [ARCHITECTURES 87 110 ptx] [NO_GPU | REQUIRE_GPU])
#
# Adds kernel sources to a target: each is compiled by the C++ compiler for the CPU and by nvcc for the GPU, and the
# GPU's code is embedded. Without nvcc, which is said once, and with NO_GPU the kernels run on CPU devices and simulated
# machines; REQUIRE_GPU, or ISTHMUS_REQUIRE_GPU for all calls, makes a missing nvcc an error.
# Each source is an object library of its own, compiled with the target's include directories, definitions and options:
# so several targets can have the same source, sources of one name can lie in several folders, and kernels can be added
# in another folder than the target's.
# Set ISTHMUS_NVCC to name another nvcc, ISTHMUS_GPU_ARCHITECTURES for a default other than all that nvcc knows.
cmake_minimum_required(VERSION 3.20)  # DEPFILE with every generator
enable_language(ASM)

find_program(ISTHMUS_KERNEL_IMAGE_TOOL NAMES isthmus-kernel-image kernel_image.py
  HINTS "${CMAKE_CURRENT_LIST_DIR}/.." "${CMAKE_CURRENT_LIST_DIR}/../../../bin" "${CMAKE_CURRENT_LIST_DIR}/../../../../bin"
  NO_CMAKE_FIND_ROOT_PATH REQUIRED)
find_program(ISTHMUS_NVCC NAMES nvcc HINTS /usr/local/cuda/bin NO_CMAKE_FIND_ROOT_PATH)

function(isthmus_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NO_GPU;REQUIRE_GPU" "" "ARCHITECTURES")
  if(NOT TARGET ${target})
    message(FATAL_ERROR "isthmus_add_kernels: there is no target ${target} yet")
  endif()
  if(arg_NO_GPU AND arg_REQUIRE_GPU)
    message(FATAL_ERROR "isthmus_add_kernels(${target}): NO_GPU and REQUIRE_GPU exclude each other")
  endif()
  if(NOT arg_ARCHITECTURES)
    set(arg_ARCHITECTURES ${ISTHMUS_GPU_ARCHITECTURES})
  endif()
  set(includes "$<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>")
  set(defines "$<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>")
  set(gpu_options)
  if(ISTHMUS_NVCC AND NOT arg_NO_GPU)
    set(gpu_options --nvcc "${ISTHMUS_NVCC}")
    foreach(arch IN LISTS arg_ARCHITECTURES)
      list(APPEND gpu_options --arch ${arch})
    endforeach()
  elseif(NOT arg_NO_GPU)
    if(arg_REQUIRE_GPU OR ISTHMUS_REQUIRE_GPU)
      message(FATAL_ERROR "isthmus_add_kernels(${target}): GPU code is required, and no nvcc was found; install CUDA, "
        "or name nvcc with -DISTHMUS_NVCC=...")
    endif()
    get_property(said GLOBAL PROPERTY ISTHMUS_SAID_NO_NVCC)
    if(NOT said)
      set_property(GLOBAL PROPERTY ISTHMUS_SAID_NO_NVCC TRUE)
      message(WARNING "isthmus_add_kernels: no nvcc was found, so kernels run on CPU devices and simulated machines "
        "only. Name nvcc with -DISTHMUS_NVCC=..., or say NO_GPU if this is intended.")
    endif()
  endif()

  foreach(source IN LISTS arg_UNPARSED_ARGUMENTS)
    get_filename_component(path "${source}" ABSOLUTE)
    get_filename_component(stem "${source}" NAME_WE)
    # Unique within a program for each source of each target, and the same in every build folder.
    file(RELATIVE_PATH place "${CMAKE_SOURCE_DIR}" "${path}")
    string(MD5 which "${target} ${place}")
    string(SUBSTRING "${which}" 0 8 which)
    string(MAKE_C_IDENTIFIER "isthmus_image_${target}_${stem}_${which}" symbol)
    if(TARGET ${symbol})
      message(FATAL_ERROR "isthmus_add_kernels: ${target} already has the kernels of ${path}")
    endif()
    set(base "${CMAKE_CURRENT_BINARY_DIR}/${symbol}")
    add_custom_command(OUTPUT "${base}.fatbin" "${base}.S" "${base}.cpp"
      COMMAND "${ISTHMUS_KERNEL_IMAGE_TOOL}" "${path}" --symbol ${symbol} --image "${base}.fatbin"
        --assembly "${base}.S" --definition "${base}.cpp" --depfile "${base}.d" ${gpu_options}
        "$<$<BOOL:${includes}>:-I$<JOIN:${includes},;-I>>" "$<$<BOOL:${defines}>:-D$<JOIN:${defines},;-D>>"
      DEPENDS "${path}" "${ISTHMUS_KERNEL_IMAGE_TOOL}" DEPFILE "${base}.d"
      COMMENT "Compiling the kernels of ${source} for the GPU" COMMAND_EXPAND_LISTS VERBATIM)
    add_library(${symbol} OBJECT "${path}" "${base}.S" "${base}.cpp")
    # Any target may end in a shared library.
    set_target_properties(${symbol} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_include_directories(${symbol} PRIVATE "${includes}")
    set(visibility "$<TARGET_PROPERTY:${target},CXX_VISIBILITY_PRESET>")
    # No fused multiply-add, as in the GPU code, so that both give the same bits.
    target_compile_options(${symbol} PRIVATE "$<TARGET_PROPERTY:${target},COMPILE_OPTIONS>"
      "$<$<BOOL:${visibility}>:$<$<COMPILE_LANGUAGE:CXX>:-fvisibility=${visibility}>>" -ffp-contract=off)
    target_compile_definitions(${symbol} PRIVATE "${defines}" ISTHMUS_KERNEL_IMAGE=${symbol})
    target_compile_features(${symbol} PRIVATE cxx_std_20 "$<TARGET_PROPERTY:${target},COMPILE_FEATURES>")
    # For what the target's libraries bring, and so that headers that they generate are there.
    target_link_libraries(${symbol} PRIVATE "$<TARGET_PROPERTY:${target},LINK_LIBRARIES>")
    target_sources(${target} PRIVATE "$<TARGET_OBJECTS:${symbol}>")
  endforeach()
  target_compile_features(${target} PRIVATE cxx_std_20)
endfunction()
