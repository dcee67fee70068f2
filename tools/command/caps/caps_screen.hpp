// SPDX-License-Identifier: Apache-2.0
// The first view of `isthmus caps`: one machine on one screen, several as one matrix, and the topology of devices.
// Every statement comes from capabilities, the rules and the policy. Pure: facts in, text out.
#pragma once

#include "caps_render.hpp"
#include "text/table_text.hpp"

#include <string>
#include <vector>

namespace isthmus::tools {

std::string machine_screen(const MachineView& view, const CapsStyle& style);
// A matrix with one row per device of each machine; equal devices of one machine share a row.
std::string machines_matrix(const std::vector<MachineView>& views, const CapsStyle& style);
// PCI bus id, link, NUMA node and near CPUs of each GPU; then the nodes, with those that are GPU memory marked.
std::vector<Section> topology_sections(const MachineView& view);

}  // namespace isthmus::tools
