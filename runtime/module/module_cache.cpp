// SPDX-License-Identifier: Apache-2.0
// Records of compiled PTX, and their files.
#include "module_cache.hpp"

#include "composed.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

struct RecordHeader {
    char magic[8];
    std::uint32_t driver_version, capability;
    std::uint64_t ptx_bytes, cubin_bytes;
    std::uint64_t checksum;  // of what follows the header
};
static_assert(sizeof(RecordHeader) == 40);
constexpr char magic[8] = {'i', 's', 't', 'h', 'm', 'o', 'd', '1'};
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 32;

// FNV-1a: finds damage and names files. It decides nothing: texts are compared.
std::uint64_t hash_of(std::span<const std::byte> bytes) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const std::byte one : bytes) hash = (hash ^ static_cast<std::uint64_t>(one)) * 0x100000001b3;
    return hash;
}
std::span<const std::byte> bytes_of(std::string_view text) noexcept {
    return std::as_bytes(std::span(text.data(), text.size()));
}

class File {
public:
    explicit File(int descriptor) noexcept : descriptor_(descriptor) {}
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    bool open() const noexcept { return descriptor_ >= 0; }
    int get() const noexcept { return descriptor_; }

private:
    int descriptor_;
};

bool write_all(int file, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t count = ::write(file, bytes.data(), bytes.size());
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    return true;
}

}  // namespace

std::vector<std::byte> cache_record(std::string_view ptx, int driver_version, std::uint32_t capability,
                                    std::span<const std::byte> cubin) {
    std::vector<std::byte> record(sizeof(RecordHeader));
    const std::span<const std::byte> text = bytes_of(ptx);
    record.insert(record.end(), text.begin(), text.end());
    record.insert(record.end(), cubin.begin(), cubin.end());
    RecordHeader header{};
    std::memcpy(header.magic, magic, sizeof magic);
    header.driver_version = static_cast<std::uint32_t>(driver_version);
    header.capability = capability;
    header.ptx_bytes = ptx.size();
    header.cubin_bytes = cubin.size();
    header.checksum = hash_of(std::span<const std::byte>(record).subspan(sizeof header));
    std::memcpy(record.data(), &header, sizeof header);
    return record;
}

std::optional<std::span<const std::byte>> cubin_of(std::span<const std::byte> record, std::string_view ptx,
                                                   int driver_version, std::uint32_t capability) {
    RecordHeader header;
    if (record.size() < sizeof header) return std::nullopt;
    std::memcpy(&header, record.data(), sizeof header);
    const std::span<const std::byte> rest = record.subspan(sizeof header);
    if (std::memcmp(header.magic, magic, sizeof magic) != 0 ||
        header.driver_version != static_cast<std::uint32_t>(driver_version) || header.capability != capability ||
        header.ptx_bytes != ptx.size() || header.ptx_bytes > rest.size() || header.cubin_bytes == 0 ||
        header.cubin_bytes != rest.size() - header.ptx_bytes || header.checksum != hash_of(rest)) {
        return std::nullopt;
    }
    if (std::memcmp(rest.data(), ptx.data(), ptx.size()) != 0) return std::nullopt;
    return rest.subspan(ptx.size());
}

std::string cache_file_name(std::string_view ptx, int driver_version, std::uint32_t capability) {
    constexpr char digits[] = "0123456789abcdef";
    std::array<char, 16> text{};
    std::uint64_t hash = hash_of(bytes_of(ptx));
    for (std::size_t at = text.size(); at-- > 0; hash >>= 4) text[at] = digits[hash & 15];
    return composed("isthmus-{}-{}-{}.cubin", capability, driver_version, std::string_view(text.data(), text.size()));
}

ModuleCache::ModuleCache(const std::string& folder, std::string_view ptx, int driver_version, std::uint32_t capability)
    : ptx_(ptx),
      driver_version_(driver_version),
      capability_(capability),
      path_(folder + '/' + cache_file_name(ptx, driver_version, capability)) {}

std::optional<std::vector<std::byte>> ModuleCache::read() const {
    const File file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat facts {};
    if (!file.open() || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size < 0 ||
        static_cast<std::uint64_t>(facts.st_size) > most_bytes) {
        return std::nullopt;
    }
    // Code of others is not run: the file must be this user's (or root's), and only that user may write it.
    if ((facts.st_uid != ::geteuid() && facts.st_uid != 0) || (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return std::nullopt;
    }
    std::vector<std::byte> record(static_cast<std::size_t>(facts.st_size));
    for (std::size_t had = 0; had < record.size();) {
        const ssize_t count = ::read(file.get(), record.data() + had, record.size() - had);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return std::nullopt;
        had += static_cast<std::size_t>(count);
    }
    const std::optional<std::span<const std::byte>> cubin = cubin_of(record, ptx_, driver_version_, capability_);
    if (!cubin) return std::nullopt;
    return std::vector<std::byte>(cubin->begin(), cubin->end());
}

void ModuleCache::write(std::span<const std::byte> cubin) const {
    static std::atomic<unsigned> next{0};  // two threads may write one name
    const std::string unfinished = composed("{}.{}.{}", path_, static_cast<std::int64_t>(::getpid()),
                                            next.fetch_add(1, std::memory_order_relaxed));
    bool whole = false;
    {
        const File file(::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (!file.open()) return;
        whole = write_all(file.get(), cache_record(ptx_, driver_version_, capability_, cubin));
    }
    if (!whole || ::rename(unfinished.c_str(), path_.c_str()) != 0) ::unlinkat(AT_FDCWD, unfinished.c_str(), 0);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
