// SPDX-License-Identifier: Apache-2.0
// Every source is optional; empty and repeated values are left out.
#include "identity.hpp"

#include <pwd.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace isthmus::tools::report {
namespace {

void add(std::vector<std::string>& list, std::string value) {
    const auto is_end = [](char c) { return c == '\0' || std::isspace(static_cast<unsigned char>(c)) != 0; };
    while (!value.empty() && is_end(value.back())) value.pop_back();
    if (value.empty() || std::find(list.begin(), list.end(), value) != list.end()) return;
    list.push_back(std::move(value));
}

void add_variable(std::vector<std::string>& list, const char* name) {
    if (const char* const value = std::getenv(name)) add(list, value);
}

void add_file(std::vector<std::string>& list, const char* path) {
    std::ifstream file(path, std::ios::binary);
    add(list, std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()));
}

void add_account(Identity& identity, const passwd* account) {
    if (account == nullptr) return;
    if (account->pw_name != nullptr) add(identity.users, account->pw_name);
    if (account->pw_dir != nullptr) add(identity.homes, account->pw_dir);
}

}  // namespace

Identity own_identity() {
    Identity identity;
    utsname system{};
    if (::uname(&system) == 0) add(identity.hosts, system.nodename);
    add_file(identity.hosts, "/etc/hostname");
    add_variable(identity.hosts, "HOSTNAME");
    for (std::size_t at = 0, count = identity.hosts.size(); at < count; ++at) {
        const std::string full = identity.hosts[at];
        add(identity.hosts, full.substr(0, full.find('.')));
    }
    for (const char* const name : {"USER", "LOGNAME", "SUDO_USER"}) add_variable(identity.users, name);
    add_variable(identity.homes, "HOME");
    add_account(identity, ::getpwuid(::getuid()));
    for (const std::string& user : std::vector<std::string>(identity.users)) {
        add_account(identity, ::getpwnam(user.c_str()));
    }
    for (std::string& home : identity.homes) {
        while (home.size() > 1 && home.back() == '/') home.pop_back();
    }
    for (const char* const path : {"/proc/device-tree/serial-number", "/sys/class/dmi/id/product_serial",
                                   "/sys/class/dmi/id/board_serial", "/sys/class/dmi/id/chassis_serial"}) {
        add_file(identity.serials, path);
    }
    return identity;
}

}  // namespace isthmus::tools::report
