// SPDX-License-Identifier: Apache-2.0
// Profiles: whatever the text is, reading it stays within it, and what it finds is well-formed.
#include "profile_reader.hpp"
#include "profile_rules.hpp"

#include "require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto read = isthmus::detail::read_profiles(text, "profile");
    if (!read) {
        require(read.error().id() == "T002" || read.error().id() == "T003");
        return 0;
    }
    for (const isthmus::DeviceProfile& profile : *read) require(isthmus::rules::fault_of(profile.choices).empty());
    return 0;
}
