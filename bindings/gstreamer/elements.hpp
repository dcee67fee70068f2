// SPDX-License-Identifier: Apache-2.0
// The elements' types, for the plugin.
#pragma once

#include <gst/gst.h>

namespace isthmus::gst {

GType corners_element_type();
GType sink_element_type();
GType source_element_type();

}  // namespace isthmus::gst
