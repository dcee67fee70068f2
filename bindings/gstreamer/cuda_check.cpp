// SPDX-License-Identifier: Apache-2.0
// Compares what foreign.hpp says of CUDA memory with GStreamer's header. Compiled only where that is installed;
// produces no code.
#define GST_USE_UNSTABLE_API
#include <gst/cuda/gstcudamemory.h>

#include "foreign.hpp"

#include <string_view>

namespace isthmus::gst {
static_assert(std::string_view(cuda_memory_type) == GST_CUDA_MEMORY_TYPE_NAME);
static_assert(std::string_view(cuda_caps_feature) == GST_CAPS_FEATURE_MEMORY_CUDA_MEMORY);
static_assert(map_cuda == static_cast<guint>(GST_MAP_CUDA));
static_assert(cuda_needs_upload == static_cast<guint>(GST_CUDA_MEMORY_TRANSFER_NEED_UPLOAD));
}  // namespace isthmus::gst
