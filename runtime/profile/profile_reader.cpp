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

struct Way {
    MemoryKind kind = MemoryKind::unknown;
    Locality locality = Locality::anywhere;
};

Way read_way(JsonCursor& cursor) {
    constexpr std::array<std::string_view, 2> members = {"kind", "locality"};
    Way way;
    Needed needed(members.size());
    cursor.object([&](std::string_view key) {
        const std::optional<std::size_t> member = place_of(members, key);
        if (!member) return cursor.skip();
        if (!needed.see(*member)) return cursor.refuse("a member occurs twice");
        if (*member == 0) way.kind = named<MemoryKind>(cursor, memory_kind_count);
        if (*member == 1) way.locality = named<Locality>(cursor, locality_count);
    });
    if (!needed.complete()) cursor.refuse("a way lacks a member");
    return way;
}

// [passes, from_bytes, way, from_bytes, way, ...]; a way is an index.
void read_row(JsonCursor& cursor, const std::vector<Way>& ways, std::vector<ProfileChoice>& choices) {
    ProfileChoice choice;
    std::size_t at = 0;
    cursor.array([&] {
        if (at == 0) {
            choice.passes = number(cursor);
        } else if (at % 2 == 1) {
            choice.from_bytes = static_cast<std::size_t>(cursor.whole_number());
        } else {
            const std::uint64_t way = cursor.whole_number();
            if (way >= ways.size()) return cursor.refuse("a choice names no way");
            choice.kind = ways[way].kind;
            choice.locality = ways[way].locality;
            choices.push_back(choice);
        }
        ++at;
    });
    if (at < 3 || at % 2 == 0) cursor.refuse("a row is incomplete");
}

// The choices of one use, appended.
void read_use(JsonCursor& cursor, const std::vector<Way>& ways, std::vector<ProfileChoice>& choices) {
    constexpr std::array<std::string_view, 5> members = {"device", "host", "host_often", "prefer", "rows"};
    ProfileChoice use;
    const std::size_t first = choices.size();
    Needed needed(members.size());
    cursor.object([&](std::string_view key) {
        const std::optional<std::size_t> member = place_of(members, key);
        if (!member) return cursor.skip();
        if (!needed.see(*member)) return cursor.refuse("a member occurs twice");
        switch (*member) {
            case 0: use.device = named<Role>(cursor, role_count); break;
            case 1: use.host = named<Role>(cursor, role_count); break;
            case 2: use.host_often = cursor.boolean(); break;
            case 3: use.prefer = named<Prefer>(cursor, prefer_count); break;
            default: cursor.array([&] { read_row(cursor, ways, choices); });
        }
    });
    if (!needed.complete()) cursor.refuse("a use lacks a member");
    for (std::size_t i = first; i < choices.size(); ++i) {
        choices[i].device = use.device;
        choices[i].host = use.host;
        choices[i].host_often = use.host_often;
        choices[i].prefer = use.prefer;
    }
}

DeviceProfile read_device(JsonCursor& cursor) {
    constexpr std::array<std::string_view, 9> members = {"uuid",        "driver_version", "kernel_release",
                                                         "simulated",   "memory",         "translation",
                                                         "measured_on", "ways",           "choices"};
    DeviceProfile profile;
    std::vector<Way> ways;  // before the choices, which name them
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
            case 7: cursor.array([&] { ways.push_back(read_way(cursor)); }); break;
            default: cursor.array([&] { read_use(cursor, ways, profile.choices); });
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
