// SPDX-License-Identifier: Apache-2.0
// Reads traces of allocations.
#include "allocation_trace.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <unordered_map>

namespace traces {
namespace {

constexpr std::string_view columns_of_log = "time_ns,thread,action,id,address,bytes,stream";

std::vector<std::string_view> fields_of(std::string_view line, char separator) {
    std::vector<std::string_view> fields;
    for (std::size_t at = 0; at <= line.size();) {
        const std::size_t end = std::min(line.find(separator, at), line.size());
        fields.push_back(line.substr(at, end - at));
        at = end + 1;
    }
    return fields;
}

bool is_number(std::string_view field, std::uint64_t& number) {
    const char* const end = field.data() + field.size();
    const auto [rest, error] = std::from_chars(field.data(), end, number);
    return error == std::errc() && rest == end;
}

class Reader {
public:
    Trace read(std::string_view text) {
        std::size_t line_number = 0;
        bool is_log = false;
        while (!text.empty() && trace_.error.empty()) {
            const std::size_t end = text.find('\n');
            ++line_number;
            if (end == std::string_view::npos) {
                trace_.error = "ends within line " + std::to_string(line_number);
                break;
            }
            const std::string_view line = text.substr(0, end);
            text.remove_prefix(end + 1);
            if (line_number == 1 && line == columns_of_log) {
                is_log = true;
                trace_.origin = "a log of allocations";
                continue;
            }
            if (line_number == 1 && line.substr(0, 2) == "# ") trace_.origin = line.substr(2);
            if (line.empty() || line[0] == '#') continue;
            const char* const why = is_log ? log_line(fields_of(line, ',')) : trace_line(fields_of(line, ' '));
            if (why != nullptr) trace_.error = "line " + std::to_string(line_number) + " " + why;
        }
        release_the_rest();
        return std::move(trace_);
    }

private:
    struct Living {
        std::uint32_t block = 0;
        std::uint32_t stream = 0;
        std::size_t bytes = 0;
    };

    const char* trace_line(const std::vector<std::string_view>& fields) {
        std::uint64_t id = 0, bytes = 0, stream = 0;
        const bool known = fields[0] == "a" ? fields.size() == 4 && is_number(fields[2], bytes)
                                            : fields[0] == "f" && fields.size() == 3;
        if (!known || !is_number(fields[1], id) || !is_number(fields.back(), stream)) {
            return "is neither `a ID BYTES STREAM` nor `f ID STREAM`";
        }
        return fields[0] == "a" ? allocate(id, bytes, stream) : release(id, stream);
    }

    const char* log_line(const std::vector<std::string_view>& fields) {
        std::uint64_t id = 0, bytes = 0, stream = 0;
        if (fields.size() != 7 || !is_number(fields[3], id) || !is_number(fields[5], bytes) ||
            !is_number(fields[6], stream)) {
            return "has not the columns of a log of allocations";
        }
        if (fields[2] == "allocate") return allocate(id, bytes, stream);
        return fields[2] == "release" ? release(id, stream) : nullptr;  // others failed and changed nothing
    }

    const char* allocate(std::uint64_t id, std::uint64_t bytes, std::uint64_t stream) {
        if (bytes == 0) return "allocates nothing";
        const Living made{trace_.blocks, number_of(stream), static_cast<std::size_t>(bytes)};
        if (!living_.emplace(id, made).second) return "allocates a block that lives";
        ++trace_.blocks;
        trace_.events.push_back({made.block, made.stream, made.bytes});
        live_bytes_ += bytes;
        trace_.peak_bytes = std::max(trace_.peak_bytes, live_bytes_);
        return nullptr;
    }

    const char* release(std::uint64_t id, std::uint64_t stream) {
        const auto found = living_.find(id);
        if (found == living_.end()) return "releases a block that does not live";
        trace_.events.push_back({found->second.block, number_of(stream), 0});
        live_bytes_ -= found->second.bytes;
        living_.erase(found);
        return nullptr;
    }

    std::uint32_t number_of(std::uint64_t stream) {
        const auto [at, fresh] = streams_.emplace(stream, trace_.streams);
        if (fresh) ++trace_.streams;
        return at->second;
    }

    void release_the_rest() {
        std::vector<Living> rest;
        for (const auto& [id, living] : living_) rest.push_back(living);
        std::sort(rest.begin(), rest.end(), [](const Living& one, const Living& two) { return one.block < two.block; });
        for (const Living& living : rest) trace_.events.push_back({living.block, living.stream, 0});
    }

    Trace trace_;
    std::unordered_map<std::uint64_t, Living> living_;
    std::unordered_map<std::uint64_t, std::uint32_t> streams_;
    std::uint64_t live_bytes_ = 0;
};

std::string contents(std::FILE* file) {
    std::string text;
    char part[1 << 16];
    for (std::size_t got; (got = std::fread(part, 1, sizeof part, file)) > 0;) text.append(part, got);
    return text;
}

}  // namespace

Trace parse(std::string_view text) {
    return Reader().read(text);
}

Trace read(const std::string& path) {
    Trace none;
    const bool packed = path.size() > 3 && path.compare(path.size() - 3, 3, ".gz") == 0;
    if (packed && path.find('\'') != std::string::npos) {
        none.error = "the path of a packed trace may have no '";
        return none;
    }
    std::FILE* const file = !exists(path) ? nullptr
                            : packed      ? ::popen(("gzip -dc '" + path + "'").c_str(), "r")
                                          : std::fopen(path.c_str(), "r");
    if (file == nullptr) {
        none.error = path + " does not open";
        return none;
    }
    const std::string text = contents(file);
    const int closed = packed ? ::pclose(file) : std::fclose(file);
    if (closed != 0) {
        none.error = path + " cannot be read";
        return none;
    }
    Trace trace = parse(text);
    if (trace.error.empty() && trace.events.empty()) trace.error = "has no events";
    if (!trace.error.empty()) trace.error.insert(0, path + ": ");
    return trace;
}

bool exists(const std::string& path) {
    return ::access(path.c_str(), R_OK) == 0;
}

}  // namespace traces
