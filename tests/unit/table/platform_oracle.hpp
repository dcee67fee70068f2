// SPDX-License-Identifier: Apache-2.0
// The platform facts for a combination of attributes, written from the documentation and not from the code: plain
// strings and bools, decided by a list of cases instead of by features.
#pragma once

#include <map>
#include <string>

namespace oracle {

// The driver's answers: -1 it does not know the attribute, -2 it refused it, else the value.
using Said = std::map<int, int>;

inline bool says_yes(const Said& said, int attribute) {
    const auto found = said.find(attribute);
    return found != said.end() && found->second == 1;
}

// "none; HMM (88=1, 100=0); host page tables (88=1, 100=1)"
inline std::string translation(const Said& said) {
    const bool p = says_yes(said, 88);
    const bool h = says_yes(said, 100);
    if (p && h) return "host_page_tables";
    if (p && !h) return "hmm";
    return "none";
}

// "separate; shared DRAM (18=1); separate but coherent, as a NUMA node (130/131) or hidden from the OS (CDMM: 100=1,
// 18=0 and no GPU node)". The mode that the driver's parameters state decides nothing.
inline std::string memory(const Said& said, bool gpu_is_node) {
    if (says_yes(said, 18)) return "shared_dram";
    if (gpu_is_node) return "coherent_node";
    if (translation(said) == "host_page_tables") return "coherent_hidden";
    return "separate";
}

// "none (83=0); phase-guarded (89=0); concurrent (89=1); direct from host (101=1)"; 89=0 forbids the CPU's access while
// kernels run, so direct needs both.
inline std::string managed(const Said& said) {
    const std::string by_83_89_101 = std::string(says_yes(said, 83) ? "1" : "0") + (says_yes(said, 89) ? "1" : "0") +
                                     (says_yes(said, 101) ? "1" : "0");
    static const std::map<std::string, std::string> cases = {
        {"000", "none"},          {"001", "none"},          {"010", "none"},       {"011", "none"},
        {"100", "phase_guarded"}, {"101", "phase_guarded"}, {"110", "concurrent"}, {"111", "direct"}};
    return cases.at(by_83_89_101);
}

// "none; partial (147=1, queried per operation); native (86=1)"; with both the weaker one.
inline std::string link(const Said& said) {
    if (says_yes(said, 147)) return "partial";
    if (says_yes(said, 86)) return "native";
    return "none";
}

// "ats (100=1 and 18=1), c2c (100=1 and 18=0)", integrated is Orin's class, hmm and discrete have memory of their own.
inline std::string row(const Said& said) {
    const std::string t = translation(said);
    const bool shared = says_yes(said, 18);
    if (t == "host_page_tables" && shared) return "ats";
    if (t == "host_page_tables") return "c2c";
    if (shared) return "integrated";
    if (t == "hmm") return "hmm";
    return "discrete";
}

}  // namespace oracle
