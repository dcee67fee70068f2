// SPDX-License-Identifier: Apache-2.0
#include "profile_reader.hpp"

#include "json_cursor.hpp"
#include "profile_errors.hpp"
#include "profile_rules.hpp"

#include <array>
#include <limits>
#include <optional>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// The members that an object must have, as bits.
class Needed {
public:
    explicit Needed(std::size_t count) : all_((1u << count) - 1) {}
    // Notes that a member is there; false: it was there already.
    bool see(std::size_t member) noexcept {
        const unsigned bit = 1u << member;
        const bool twice = (seen_ & bit) != 0;
        seen_ |= bit;
        return !twice;
    }
    bool complete() const noexcept { return seen_ == all_; }

private:
    unsigned all_;
    unsigned seen_ = 0;
};

template <std::size_t Size>
std::optional<std::size_t> place_of(const std::array<std::string_view, Size>& names, std::string_view name) {
    for (std::size_t i = 0; i < Size; ++i) {
        if (names[i] == name) return i;
    }
    return std::nullopt;
}

// The enumerator with this name, of the `count` first ones.
template <class Enum>
Enum named(JsonCursor& cursor, int count) {
    const std::string text = cursor.string();
    for (int i = 0; i < count; ++i) {
        if (name(static_cast<Enum>(i)) == text) return static_cast<Enum>(i);
    }
    cursor.refuse("a name is unknown");
    return {};
}
int number(JsonCursor& cursor) {
    const std::uint64_t value = cursor.whole_number();
    if (value > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) cursor.refuse("a number is too large");
    return static_cast<int>(value);
}

constexpr int role_count = 3;
constexpr int prefer_count = 2;
constexpr int locality_count = 6;
constexpr int translation_count = 3;
constexpr int memory_model_count = 5;

ProfileChoice read_choice(JsonCursor& cursor) {
    constexpr std::array<std::string_view, 8> members = {"device", "host",       "host_often", "prefer",
                                                         "passes", "from_bytes", "kind",       "locality"};
    ProfileChoice choice;
    Needed needed(members.size());
    cursor.object([&](std::string_view key) {
        const std::optional<std::size_t> member = place_of(members, key);
        if (!member) return cursor.skip();
        if (!needed.see(*member)) return cursor.refuse("a member occurs twice");
        switch (*member) {
            case 0: choice.device = named<Role>(cursor, role_count); break;
            case 1: choice.host = named<Role>(cursor, role_count); break;
            case 2: choice.host_often = cursor.boolean(); break;
            case 3: choice.prefer = named<Prefer>(cursor, prefer_count); break;
            case 4: choice.passes = number(cursor); break;
            case 5: choice.from_bytes = static_cast<std::size_t>(cursor.whole_number()); break;
            case 6: choice.kind = named<MemoryKind>(cursor, memory_kind_count); break;
            default: choice.locality = named<Locality>(cursor, locality_count);
        }
    });
    if (!needed.complete()) cursor.refuse("a choice lacks a member");
    return choice;
}

DeviceProfile read_device(JsonCursor& cursor) {
    constexpr std::array<std::string_view, 8> members = {"uuid",   "driver_version", "kernel_release", "simulated",
                                                         "memory", "translation",    "measured_on",    "choices"};
    DeviceProfile profile;
    Needed needed(members.size());
    cursor.object([&](std::string_view key) {
        const std::optional<std::size_t> member = place_of(members, key);
        if (!member) return cursor.skip();
        if (!needed.see(*member)) return cursor.refuse("a member occurs twice");
        switch (*member) {
            case 0:
                if (const Result<Uuid> uuid = Uuid::parse(cursor.string())) {
                    profile.device = *uuid;
                } else {
                    cursor.refuse("the device's UUID is none");
                }
                break;
            case 1: profile.driver_version = number(cursor); break;
            case 2: profile.kernel_release = cursor.string(); break;
            case 3: profile.simulated = cursor.boolean(); break;
            case 4: profile.memory = named<MemoryModel>(cursor, memory_model_count); break;
            case 5: profile.translation = named<Translation>(cursor, translation_count); break;
            case 6: profile.measured_on = cursor.string(); break;
            default: cursor.array([&] { profile.choices.push_back(read_choice(cursor)); });
        }
    });
    if (!needed.complete()) cursor.refuse("a device lacks a member");
    if (const std::string_view fault = rules::fault_of(profile.choices); !fault.empty()) cursor.refuse(fault);
    return profile;
}

}  // namespace

Result<std::vector<DeviceProfile>> read_profiles(std::string_view text, const std::string& file) {
    std::vector<DeviceProfile> profiles;
    std::optional<std::string> schema;
    bool has_devices = false;
    bool other_schema = false;
    JsonCursor cursor(text);
    cursor.object([&](std::string_view key) {
        if (key == "schema" && !schema) {
            schema = cursor.string();
            other_schema = cursor.good() && *schema != profile_schema;
            if (other_schema) cursor.refuse("it has another schema");  // what follows may mean anything
        } else if (key == "devices" && schema && !has_devices) {
            has_devices = true;
            cursor.array([&] { profiles.push_back(read_device(cursor)); });
        } else if (key == "schema" || key == "devices") {
            cursor.refuse(schema ? "a member occurs twice" : "its schema does not come before its devices");
        } else {
            cursor.skip();
        }
    });
    if (other_schema) return make_error<errors::profile_of_another_schema>(file, *schema, profile_schema);
    cursor.end();
    if (!has_devices) cursor.refuse("it has no devices");
    if (!cursor.good()) return make_error<errors::profile_damaged>(file, cursor.place(), cursor.fault());
    return profiles;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
