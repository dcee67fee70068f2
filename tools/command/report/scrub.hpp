// SPDX-License-Identifier: Apache-2.0
// scrub(): removes from a document what identifies a computer or a person. Pure. What describes the machine stays:
// names of devices and processors, values of attributes, versions of driver and kernel.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools::report {

// What is known of this computer and its user. own_identity() reads it from the system.
struct Identity {
    std::vector<std::string> hosts;    // with and without domain
    std::vector<std::string> users;    // login names
    std::vector<std::string> homes;    // absolute paths
    std::vector<std::string> serials;  // of the board, and others that the system states
};

// Replaces in every key and every string:
// * UUIDs of every form ("GPU-…", "MIG-…", five groups alone, 32 hexadecimal digits alone) by numbered ones of the same
//   form, "GPU-00000000-0000-0000-0000-000000000001"; equal UUIDs get equal numbers everywhere in the document;
// * the identity's home folders by "<home>", and the user's part of any /home/NAME by "<user>";
// * names of hosts and users by "<host>" and "<user>": as words, and from six characters on also inside of words.
//   Names that many computers have (is_common_name()) stay, as do the strings of fields that describe hardware and
//   versions (a device's name, the kernel's release), and keys that are identifiers: a user's name may equal them;
// * MAC addresses by "<mac>", PCIe device serial numbers (eight pairs of digits), what follows the word "serial", and
//   the values of fields with "serial" in their name, by "<serial>".
nlohmann::ordered_json scrub(const nlohmann::ordered_json& document, const Identity& identity);

// "root", "ubuntu", "nvidia", "localhost": such a name identifies nobody, and is a word of ordinary text.
bool is_common_name(std::string_view name);

}  // namespace isthmus::tools::report
