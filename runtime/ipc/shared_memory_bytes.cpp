// Sizes follow from three numbers; a descriptor says all of them, and has to say the same.
#include "shared_memory_bytes.hpp"

#include "composed.hpp"
#include "little_endian.hpp"

#include <algorithm>
#include <string>

namespace isthmus::rules {
namespace {

constexpr std::uint64_t magic = 0x6d656d6d68747369u;  // "isthmmem"
constexpr std::uint32_t version = 1;
constexpr std::uint64_t most_granularity = std::uint64_t{1} << 40;

Error damaged(const std::string& field) {
    return {Code::invalid_argument,
            composed("the descriptor of shared memory is not one that export_memory() makes: {}", field),
            "take it unchanged from export_memory() of the same version of this library"};
}
Error refused(Code code, const std::string& why, const char* remedy) {
    return {code, composed("importing memory was refused: {}", why), remedy};
}

bool power_of_two(std::uint64_t number) noexcept {
    return number != 0 && (number & (number - 1)) == 0;
}

}  // namespace

Result<SharedMemoryFacts> make_shared_memory(SharingRung rung, std::uint64_t bytes, std::uint32_t element_bytes,
                                             std::uint64_t granularity_bytes, const Uuid& device) {
    if (bytes == 0 || element_bytes == 0 || bytes % element_bytes != 0 || bytes > most_shared_bytes) {
        return Error(Code::invalid_argument,
                     composed("{} bytes of elements of {} bytes are nothing to be shared", bytes, element_bytes),
                     "one element or more, and no more bytes than a machine has");
    }
    if (!power_of_two(granularity_bytes) || granularity_bytes > most_granularity) {
        return Error(Code::invalid_argument,
                     composed("a granularity of {} bytes is none that memory has", granularity_bytes),
                     "as the driver tells it: a power of two");
    }
    SharedMemoryFacts facts;
    facts.rung = rung;
    facts.bytes = bytes;
    facts.mapped_bytes = (bytes + granularity_bytes - 1) / granularity_bytes * granularity_bytes;
    facts.granularity_bytes = granularity_bytes;
    facts.element_bytes = element_bytes;
    facts.device = device;
    return facts;
}

bool has_file(SharingRung rung) noexcept {
    return rung == SharingRung::host_memory || rung == SharingRung::posix_fd;
}

SharedMemoryDescriptor::Bytes encode_shared_memory(const SharedMemoryFacts& facts, const HandleBytes& handle) {
    SharedMemoryDescriptor::Bytes bytes{};
    LittleEndianWriter to(bytes.data());
    to.number(magic, 8);
    to.number(version, 4);
    to.number(static_cast<std::uint64_t>(facts.rung), 4);
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
        return damaged(composed("it has {} bytes instead of {}", bytes.size(), SharedMemoryDescriptor::size_bytes));
    }
    LittleEndianReader from(bytes.data());
    if (from.number(8) != magic) return damaged("its magic is another one");
    if (const std::uint64_t told = from.number(4); told != version) {
        return damaged(composed("its version is {}, and this library speaks {}", told, version));
    }
    const std::uint64_t rung = from.number(4);
    if (rung == static_cast<std::uint64_t>(SharingRung::none) || rung >= sharing_rung_count) {
        return damaged("there is no such rung for memory that is exported");
    }
    const std::uint64_t size = from.number(8), mapped = from.number(8), granularity = from.number(8);
    const auto element_bytes = static_cast<std::uint32_t>(from.number(4));
    Uuid device;
    device.mig = from.number(4) == 1;
    for (std::uint8_t& byte : device.bytes) byte = static_cast<std::uint8_t>(from.number(1));
    Result<SharedMemoryFacts> facts =
        make_shared_memory(static_cast<SharingRung>(rung), size, element_bytes, granularity, device);
    if (!facts) return damaged("its sizes are out of range");
    if (facts->mapped_bytes != mapped) return damaged("its sizes contradict each other");
    DecodedMemory decoded{*facts, {}};
    for (unsigned char& byte : decoded.handle) byte = static_cast<unsigned char>(from.number(1));
    const bool has_handle = decoded.handle != HandleBytes{};
    if (has_handle == has_file(facts->rung)) {
        return damaged(has_handle ? "it has a handle, which its rung does not need" : "it has no handle");
    }
    // What no field says is zero: said again, it is the same bytes.
    const SharedMemoryDescriptor::Bytes again = encode_shared_memory(decoded.facts, decoded.handle);
    if (!std::equal(again.begin(), again.end(), bytes.begin())) return damaged("what has to be zero is not");
    return decoded;
}

namespace {

Result<void> elements_fit(const SharedMemoryFacts& facts, const ImportingEnd& end) {
    if (end.element_bytes == facts.element_bytes) return {};
    return refused(Code::invalid_argument,
                   composed("it holds elements of {} bytes, and elements of {} were asked for", facts.element_bytes,
                            end.element_bytes),
                   "import it as the type that it was exported as");
}

// Any device will do. Its pages are this process's to pay for, too.
Result<void> may_import_host(const SharedMemoryFacts& facts, const ImportingEnd& end) {
    if (facts.mapped_bytes > end.most_host_bytes) {
        return refused(Code::out_of_memory,
                       composed("it takes {} bytes of the host, and {} are allowed at most", facts.mapped_bytes,
                                end.most_host_bytes),
                       "a greater ImportOptions::most_bytes, where its exporter is trusted with that");
    }
    return elements_fit(facts, end);
}

const char* not_imported(SharingRung rung) noexcept {
    switch (rung) {
        case SharingRung::fabric: return "fabric handles (attribute 128)";
        case SharingRung::legacy_ipc: return "older handles (it is integrated, or has no unified addressing)";
        default: return "file descriptors (attributes 102, 103)";
    }
}

}  // namespace

Result<void> may_import(const SharedMemoryFacts& facts, const ImportingEnd& end) {
    if (facts.rung == SharingRung::host_memory) return may_import_host(facts, end);
    if (end.is_cpu) {
        return refused(
            Code::unsupported, "it is memory of a GPU, and the CPU device cannot use it",
            "import it with the GPU that it names, or export it as memory that CPUs see (SeenBy::cpus_and_gpus)");
    }
    if (!end.imports) {
        return refused(Code::unsupported,
                       std::string("this device or its driver imports no ") + not_imported(facts.rung),
                       "export it as memory that CPUs see (SeenBy::cpus_and_gpus)");
    }
    // Across a fabric it is another machine's device.
    if (facts.rung != SharingRung::fabric && !(facts.device == end.device)) {
        return refused(Code::wrong_device,
                       composed("it is memory of {}, and this device is {}", facts.device.text(), end.device.text()),
                       "import it with Runtime::device(descriptor.facts().device)");
    }
    if (Result<void> fits = elements_fit(facts, end); !fits) return fits;
    if (!power_of_two(end.granularity_bytes) || facts.mapped_bytes % end.granularity_bytes != 0) {
        return refused(Code::unsupported,
                       composed("{} bytes are no multiple of this device's granularity of {}", facts.mapped_bytes,
                                end.granularity_bytes),
                       "import it with a device of the exporter's kind");
    }
    return {};
}

}  // namespace isthmus::rules
