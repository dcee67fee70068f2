// SPDX-License-Identifier: Apache-2.0
// One machine on one screen, several as one matrix, and where devices are attached: what `isthmus caps` shows first.
// Every statement comes from capabilities, the rules and the policy. Pure: facts in, text out.
#pragma once

#include "caps_render.hpp"
#include "text/table_text.hpp"

#include <string>
#include <vector>

namespace isthmus::tools {

std::string machine_screen(const MachineView& view, const CapsStyle& style);
// One row per device of each machine; equal devices of one machine share a row.
std::string machines_matrix(const std::vector<MachineView>& views, const CapsStyle& style);
// PCI bus id, link, NUMA node and near CPUs of each GPU; the nodes, and which of them are the memory of a GPU.
std::vector<Section> topology_sections(const MachineView& view);

}  // namespace isthmus::tools
