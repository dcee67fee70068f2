// SPDX-License-Identifier: Apache-2.0
// Three numbers determine all sizes; the descriptor states every size and must agree.
#include "shared_memory_bytes.hpp"

#include "ipc_errors.hpp"
#include "little_endian.hpp"

#include <algorithm>

namespace isthmus::rules {
namespace {

constexpr std::uint64_t magic = 0x6d656d6d68747369u;  // "isthmmem"
constexpr std::uint32_t version = 1;
constexpr std::uint64_t max_granularity = std::uint64_t{1} << 40;

Error damaged(const char* reason) {
    return make_error<errors::memory_descriptor_damaged>(reason);
}

bool power_of_two(std::uint64_t number) noexcept {
    return number != 0 && (number & (number - 1)) == 0;
}

}  // namespace

Result<SharedMemoryFacts> make_shared_memory(ShareMethod method, std::uint64_t bytes, std::uint32_t element_bytes,
                                             std::uint64_t granularity_bytes, const Uuid& device) {
    if (bytes == 0 || element_bytes == 0 || bytes % element_bytes != 0 || bytes > max_shared_bytes) {
        return make_error<errors::nothing_to_share>(bytes, element_bytes);
    }
    if (!power_of_two(granularity_bytes) || granularity_bytes > max_granularity) {
        return make_error<errors::impossible_granularity>(granularity_bytes);
    }
    SharedMemoryFacts facts;
    facts.method = method;
    facts.bytes = bytes;
    facts.mapped_bytes = (bytes + granularity_bytes - 1) / granularity_bytes * granularity_bytes;
    facts.granularity_bytes = granularity_bytes;
    facts.element_bytes = element_bytes;
    facts.device = device;
    return facts;
}

bool has_file(ShareMethod method) noexcept {
    return method == ShareMethod::host_memory || method == ShareMethod::posix_fd;
}

SharedMemoryDescriptor::Bytes encode_shared_memory(const SharedMemoryFacts& facts, const HandleBytes& handle) {
    SharedMemoryDescriptor::Bytes bytes{};
    LittleEndianWriter to(bytes.data());
    to.number(magic, 8);
    to.number(version, 4);
    to.number(static_cast<std::uint64_t>(facts.method), 4);
    to.number(facts.bytes, 8);
    to.number(facts.mapped_bytes, 8);
    to.number(facts.granularity_bytes, 8);
    to.number(facts.element_bytes, 4);
    to.number(facts.device.mig ? 1 : 0, 4);
    for (const std::uint8_t byte : facts.device.bytes) to.number(byte, 1);
    for (const unsigned char byte : handle) to.number(byte, 1);
    return bytes;
}
static_assert(8 + 2 * 4 + 3 * 8 + 2 * 4 + 16 + 64 == SharedMemoryDescriptor::size_bytes);

Result<DecodedMemory> decode_shared_memory(std::span<const std::byte> bytes) {
    if (bytes.size() != SharedMemoryDescriptor::size_bytes) {
        return make_error<errors::memory_descriptor_of_another_length>(bytes.size(),
                                                                       SharedMemoryDescriptor::size_bytes);
    }
    LittleEndianReader from(bytes.data());
    if (from.number(8) != magic) return damaged("its magic is another one");
    if (const std::uint64_t told = from.number(4); told != version) {
        return make_error<errors::memory_descriptor_of_another_version>(told, version);
    }
    const std::uint64_t method = from.number(4);
    if (method == static_cast<std::uint64_t>(ShareMethod::none) || method >= share_method_count) {
        return damaged("there is no such share method for memory that is exported");
    }
    const std::uint64_t size = from.number(8), mapped = from.number(8), granularity = from.number(8);
    const auto element_bytes = static_cast<std::uint32_t>(from.number(4));
    Uuid device;
    device.mig = from.number(4) == 1;
    for (std::uint8_t& byte : device.bytes) byte = static_cast<std::uint8_t>(from.number(1));
    Result<SharedMemoryFacts> facts =
        make_shared_memory(static_cast<ShareMethod>(method), size, element_bytes, granularity, device);
    if (!facts) return damaged("its sizes are out of range");
    if (facts->mapped_bytes != mapped) return damaged("its sizes contradict each other");
    DecodedMemory decoded{*facts, {}};
    for (unsigned char& byte : decoded.handle) byte = static_cast<unsigned char>(from.number(1));
    const bool has_handle = decoded.handle != HandleBytes{};
    if (has_handle == has_file(facts->method)) {
        return damaged(has_handle ? "it has a handle, which its share method does not need" : "it has no handle");
    }
    // Undefined bytes are zero: encoding again must give the same bytes.
    const SharedMemoryDescriptor::Bytes again = encode_shared_memory(decoded.facts, decoded.handle);
    if (!std::equal(again.begin(), again.end(), bytes.begin())) return damaged("what has to be zero is not");
    return decoded;
}

namespace {

Result<void> elements_fit(const SharedMemoryFacts& facts, const ImportingEnd& end) {
    if (end.element_bytes == facts.element_bytes) return {};
    return make_error<errors::import_of_other_elements>(facts.element_bytes, end.element_bytes);
}

// Any device may import it. The pages count against this process too.
Result<void> may_import_host(const SharedMemoryFacts& facts, const ImportingEnd& end) {
    if (facts.mapped_bytes > end.max_host_bytes) {
        return make_error<errors::import_of_too_much_host_memory>(facts.mapped_bytes, end.max_host_bytes);
    }
    return elements_fit(facts, end);
}

const char* not_imported(ShareMethod method) noexcept {
    switch (method) {
        case ShareMethod::fabric: return "fabric handles (attribute 128)";
        case ShareMethod::legacy_ipc: return "older handles (it is integrated, or has no unified addressing)";
        default: return "file descriptors (attributes 102, 103)";
    }
}

}  // namespace

Result<void> may_import(const SharedMemoryFacts& facts, const ImportingEnd& end) {
    if (facts.method == ShareMethod::host_memory) return may_import_host(facts, end);
    if (end.is_cpu) return make_error<errors::import_of_gpu_memory_on_cpu>();
    if (!end.imports) return make_error<errors::import_unsupported>(not_imported(facts.method));
    // Over a fabric, the device is one of another machine.
    if (facts.method != ShareMethod::fabric && !(facts.device == end.device)) {
        return make_error<errors::import_of_another_devices_memory>(facts.device.text(), end.device.text());
    }
    if (Result<void> fits = elements_fit(facts, end); !fits) return fits;
    if (!power_of_two(end.granularity_bytes) || facts.mapped_bytes % end.granularity_bytes != 0) {
        return make_error<errors::import_of_another_granularity>(facts.mapped_bytes, end.granularity_bytes);
    }
    return {};
}

}  // namespace isthmus::rules
