// SPDX-License-Identifier: Apache-2.0
// The descriptor of shared memory, any byte of which may be false, and what an importer accepts.
#include "shared_memory_bytes.hpp"

#include "shared_event_bytes.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace isthmus::rules {
namespace {

constexpr std::uint64_t granule = 2 << 20;
constexpr ShareMethod methods[] = {ShareMethod::host_memory, ShareMethod::posix_fd, ShareMethod::fabric,
                                   ShareMethod::legacy_ipc};

Uuid uuid_of(std::uint8_t first) {
    Uuid uuid;
    for (std::size_t at = 0; at < uuid.bytes.size(); ++at) uuid.bytes[at] = static_cast<std::uint8_t>(first + at);
    return uuid;
}
SharedMemoryFacts facts_of(ShareMethod method = ShareMethod::posix_fd) {
    return make_shared_memory(method, 4000, 4, granule, uuid_of(7)).value();
}
HandleBytes fabric_of(ShareMethod method) {
    HandleBytes bytes{};
    if (!has_file(method)) bytes.fill(0x77);
    return bytes;
}
SharedMemoryDescriptor::Bytes bytes_of(ShareMethod method = ShareMethod::posix_fd) {
    return encode_shared_memory(facts_of(method), fabric_of(method));
}

// Accepts what make_shared_memory() would make; everything else is refused, and the refusal explains.
void judge(const SharedMemoryDescriptor::Bytes& bytes) {
    const Result<DecodedMemory> decoded = decode_shared_memory(bytes);
    if (!decoded) {
        EXPECT_EQ(decoded.code(), Code::invalid_argument);
        EXPECT_FALSE(decoded.error().message().empty());
        EXPECT_FALSE(decoded.error().remedy().empty());
        return;
    }
    const SharedMemoryFacts& facts = decoded->facts;
    EXPECT_EQ(encode_shared_memory(facts, decoded->handle), bytes);
    EXPECT_EQ(facts.bytes % facts.element_bytes, 0u);
    EXPECT_GE(facts.mapped_bytes, facts.bytes);
    EXPECT_LT(facts.mapped_bytes - facts.bytes, facts.granularity_bytes);
    EXPECT_EQ(facts.mapped_bytes % facts.granularity_bytes, 0u);
}

// keeps I1
TEST(SharedMemoryBytes, ComeBackAsTheyWent) {
    for (const ShareMethod method : methods) {
        const SharedMemoryDescriptor::Bytes bytes = bytes_of(method);
        const DecodedMemory decoded = decode_shared_memory(bytes).value();
        EXPECT_EQ(decoded.facts, facts_of(method));
        EXPECT_EQ(decoded.handle, fabric_of(method));
        EXPECT_EQ(decoded.facts.mapped_bytes, granule);
        EXPECT_EQ(std::memcmp(bytes.data(), "isthmmem", 8), 0) << "who finds it in a log knows what it is";
    }
}

// keeps I1
TEST(SharedMemoryBytes, SizesThatNoMemoryHasAreNotMade) {
    const auto refused = [](std::uint64_t bytes, std::uint32_t element_bytes, std::uint64_t granularity) {
        const auto made = make_shared_memory(ShareMethod::posix_fd, bytes, element_bytes, granularity, {});
        return !made && made.code() == Code::invalid_argument && !made.error().remedy().empty();
    };
    EXPECT_TRUE(refused(0, 4, granule));
    EXPECT_TRUE(refused(4, 0, granule));
    EXPECT_TRUE(refused(5, 4, granule));
    EXPECT_TRUE(refused(max_shared_bytes + 4, 4, granule));
    EXPECT_TRUE(refused(~std::uint64_t{0}, 1, granule));
    EXPECT_TRUE(refused(4, 4, 0));
    EXPECT_TRUE(refused(4, 4, granule + 1));
    EXPECT_TRUE(refused(4, 4, std::uint64_t{1} << 63));
    EXPECT_FALSE(refused(max_shared_bytes, 4, granule));
}

// keeps I6: every length, and every byte changed to every value
TEST(SharedMemoryBytes, AnyChangeIsAnotherTruthOrRefused) {
    for (const ShareMethod method : methods) {
        const SharedMemoryDescriptor::Bytes good = bytes_of(method);
        for (std::size_t length = 0; length < good.size(); ++length) {
            EXPECT_EQ(decode_shared_memory(std::span(good).first(length)).code(), Code::invalid_argument);
        }
        std::vector<std::byte> longer(good.begin(), good.end());
        longer.push_back(std::byte{0});
        EXPECT_EQ(decode_shared_memory(longer).code(), Code::invalid_argument);
        for (std::size_t at = 0; at < good.size(); ++at) {
            for (int value = 0; value < 256; ++value) {
                SharedMemoryDescriptor::Bytes bytes = good;
                bytes[at] = static_cast<std::byte>(value);
                judge(bytes);
            }
        }
    }
}

// keeps I6
TEST(SharedMemoryBytes, FieldsInContradictionAreRefusedByName) {
    const auto says = [](std::size_t at, std::uint64_t value, std::size_t width, const char* word,
                         ShareMethod method = ShareMethod::posix_fd) {
        SharedMemoryDescriptor::Bytes bytes = bytes_of(method);
        for (std::size_t byte = 0; byte < width; ++byte) bytes[at + byte] = static_cast<std::byte>(value >> (8 * byte));
        const Result<DecodedMemory> decoded = decode_shared_memory(bytes);
        EXPECT_FALSE(decoded.ok()) << word;
        return !decoded && decoded.error().message().find(word) != std::string::npos;
    };
    EXPECT_TRUE(says(0, 1, 8, "magic"));
    EXPECT_TRUE(says(8, 2, 4, "version is 2"));
    for (const std::uint64_t method : {0u, 5u, 77u}) EXPECT_TRUE(says(12, method, 4, "method")) << method;
    EXPECT_TRUE(says(12, 3, 4, "no handle"));
    EXPECT_TRUE(says(12, 4, 4, "no handle"));
    EXPECT_TRUE(says(12, 2, 4, "has a handle", ShareMethod::fabric));
    EXPECT_TRUE(says(16, 0, 8, "out of range"));
    EXPECT_TRUE(says(16, ~std::uint64_t{0}, 8, "out of range"));
    EXPECT_TRUE(says(16, granule + 4, 8, "contradict"));
    EXPECT_TRUE(says(24, 2 * granule, 8, "contradict")) << "more than what was made";
    EXPECT_TRUE(says(24, 0, 8, "contradict"));
    EXPECT_TRUE(says(32, 3, 8, "out of range"));
    EXPECT_TRUE(says(40, 0, 4, "out of range"));
    EXPECT_TRUE(says(44, 2, 4, "zero"));
}

// keeps I6
TEST(SharedMemoryBytes, NoiseIsRefusedOrTrue) {
    std::mt19937_64 random(0x15713);
    for (int round = 0; round < 20000; ++round) {
        SharedMemoryDescriptor::Bytes bytes = bytes_of(methods[round % std::size(methods)]);
        const std::size_t changes = 1 + random() % 6;
        for (std::size_t change = 0; change < changes; ++change) {
            bytes[random() % bytes.size()] = static_cast<std::byte>(random());
        }
        judge(bytes);
    }
}

// keeps I1: every fact that refuses, one at a time and together with all others
TEST(SharedMemoryImport, EveryFactThatRefusesDoesSoInItsTurn) {
    for (const ShareMethod method : {ShareMethod::posix_fd, ShareMethod::fabric, ShareMethod::legacy_ipc}) {
        for (int bits = 0; bits < 64; ++bits) {
            ImportingEnd end{false, true, uuid_of(7), granule, 4, 0};
            end.is_cpu = (bits & 1) != 0;
            end.imports = (bits & 2) == 0;
            if ((bits & 4) != 0) end.device = uuid_of(8);
            if ((bits & 8) != 0) end.element_bytes = 8;
            if ((bits & 16) != 0) end.granularity_bytes = 2 * granule;
            if ((bits & 32) != 0) end.granularity_bytes = 0;
            Code wanted = Code::ok;
            if ((bits & 48) != 0) wanted = Code::unsupported;
            if ((bits & 8) != 0) wanted = Code::invalid_argument;
            if ((bits & 4) != 0 && method != ShareMethod::fabric) wanted = Code::wrong_device;
            if ((bits & 3) != 0) wanted = Code::unsupported;
            const Result<void> answer = may_import(facts_of(method), end);
            EXPECT_EQ(answer ? Code::ok : answer.code(), wanted) << bits;
            if (!answer) {
                EXPECT_FALSE(answer.error().message().empty());
                EXPECT_FALSE(answer.error().remedy().empty());
            }
        }
    }
}

// keeps I1: any device imports memory of the host, whoever exported it, as much as it was told to
TEST(SharedMemoryImport, MemoryOfTheHostIsForEveryDevice) {
    const SharedMemoryFacts facts = facts_of(ShareMethod::host_memory);
    for (const bool is_cpu : {false, true}) {
        ImportingEnd end{is_cpu, false, uuid_of(8), 0, 4, facts.mapped_bytes};
        EXPECT_TRUE(may_import(facts, end).ok());
        end.element_bytes = 8;
        EXPECT_EQ(may_import(facts, end).code(), Code::invalid_argument);
        end.max_host_bytes = facts.mapped_bytes - 1;
        const Result<void> too_much = may_import(facts, end);
        EXPECT_EQ(too_much.code(), Code::out_of_memory);
        EXPECT_NE(too_much.error().text().find("max_bytes"), std::string::npos);
    }
}

// keeps I4
TEST(SharedMemoryDescriptors, ComeWithAsManyFilesAsTheirMethodNeeds) {
    const auto received = [](ShareMethod method, int files) {
        std::vector<FileDescriptor> fds;
        for (int file = 0; file < files; ++file) fds.emplace_back(::dup(0));
        return SharedMemoryDescriptor::received(bytes_of(method), std::move(fds));
    };
    const Result<SharedMemoryDescriptor> good = received(ShareMethod::posix_fd, 1);
    ASSERT_TRUE(good.ok());
    EXPECT_EQ(good->facts(), facts_of());
    EXPECT_EQ(good->fds().size(), 1u);
    EXPECT_EQ(received(ShareMethod::posix_fd, 0).code(), Code::invalid_argument);
    EXPECT_EQ(received(ShareMethod::posix_fd, 2).code(), Code::invalid_argument);
    EXPECT_EQ(received(ShareMethod::host_memory, 1)->fds().size(), 1u);
    EXPECT_EQ(received(ShareMethod::host_memory, 0).code(), Code::invalid_argument);
    EXPECT_EQ(received(ShareMethod::host_memory, 2).code(), Code::invalid_argument);
    EXPECT_EQ(received(ShareMethod::fabric, 1).code(), Code::invalid_argument);
    EXPECT_EQ(received(ShareMethod::legacy_ipc, 1).code(), Code::invalid_argument);
    for (const ShareMethod method : {ShareMethod::fabric, ShareMethod::legacy_ipc}) {
        const Result<SharedMemoryDescriptor> without = received(method, 0);
        ASSERT_TRUE(without.ok());
        EXPECT_TRUE(without->fds().empty());
    }
    std::vector<FileDescriptor> none;
    none.emplace_back(-1);
    EXPECT_EQ(SharedMemoryDescriptor::received(bytes_of(), std::move(none)).code(), Code::invalid_argument);
}

// keeps I2
TEST(SharedEventBytes, ComeBackAsTheyWentAndAreRefusedWhereTheyDiffer) {
    EventHandleBytes handle{};
    handle.fill(0x55);
    const SharedEventDescriptor::Bytes good = encode_shared_event({uuid_of(7)}, handle);
    const DecodedEvent decoded = decode_shared_event(good).value();
    EXPECT_EQ(decoded.facts.device, uuid_of(7));
    EXPECT_EQ(decoded.handle, handle);
    const auto why = [](std::span<const std::byte> bytes) {
        const Result<DecodedEvent> answer = decode_shared_event(bytes);
        EXPECT_EQ(answer.code(), Code::invalid_argument);
        return answer ? std::string() : std::string(answer.error().message());
    };
    const auto changed = [&](std::size_t at) {
        SharedEventDescriptor::Bytes bytes = good;
        bytes[at] = std::byte{9};
        return why(bytes);
    };
    EXPECT_NE(why(std::span(good).first(20)).find("it has 20 bytes instead of 96"), std::string::npos);
    EXPECT_NE(changed(0).find("magic"), std::string::npos);
    EXPECT_NE(changed(8).find("its version is 9, and this library speaks 1"), std::string::npos);
    EXPECT_NE(changed(12).find("MIG"), std::string::npos);
    EXPECT_NE(why(encode_shared_event({uuid_of(7)}, {})).find("it has no handle"), std::string::npos);
}

}  // namespace
}  // namespace isthmus::rules
