// SPDX-License-Identifier: Apache-2.0
// The plugin "isthmus": registers its elements.
#include "elements.hpp"
#include "session.hpp"

#include <isthmus/version.hpp>

namespace isthmus::gst {

namespace {

gboolean register_elements(GstPlugin* plugin) {
    debug_category();
    const bool all = gst_element_register(plugin, "isthmuscorners", GST_RANK_NONE, corners_element_type()) != FALSE &&
                     gst_element_register(plugin, "isthmussink", GST_RANK_NONE, sink_element_type()) != FALSE &&
                     gst_element_register(plugin, "isthmussrc", GST_RANK_NONE, source_element_type()) != FALSE;
    return all ? TRUE : FALSE;
}

}  // namespace
}  // namespace isthmus::gst

#define PACKAGE "isthmus"
GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, isthmus,
                  "Frames in memory that CPU and GPU use in place, also in several processes",
                  isthmus::gst::register_elements, ISTHMUS_VERSION_STRING, "Apache 2.0", "isthmus",
                  "Unknown package origin")
