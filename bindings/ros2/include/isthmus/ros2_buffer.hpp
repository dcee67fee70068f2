// SPDX-License-Identifier: Apache-2.0
// A backend of rosidl::Buffer whose bytes several processes of one machine map, CPU and GPU alike (docs/ros2.md).
// Written against rosidl_buffer and rosidl_buffer_backend 5.2 (ROS 2 Lyrical). Header only, with libisthmus. Without
// the headers of those packages nothing is declared.
#pragma once

#if __has_include(<rosidl_buffer/buffer.hpp>) && __has_include(<rosidl_buffer_backend/buffer_backend.hpp>)
#define ISTHMUS_ROS2_BUFFER 1

#include <isthmus/file_descriptor.hpp>
#include <isthmus/ipc/shared_memory.hpp>
#include <isthmus/ros2.hpp>

#include <rosidl_buffer/buffer.hpp>
#include <rosidl_buffer/buffer_impl_base.hpp>
#include <rosidl_buffer/cpu_buffer_impl.hpp>
#include <rosidl_buffer_backend/buffer_backend.hpp>
#include <rosidl_typesupport_cpp/message_type_support.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace ros2 {

inline constexpr const char* buffer_backend_name = "isthmus";

// Bytes in memory of their own that other processes map. They are written before the message is published, and not
// afterwards. The device has to outlive them. Any thread may have one; one thread at a time uses it.
class SharedBytes final : public rosidl::BufferImplBase<std::uint8_t> {
public:
    // Zeros, for a message to be published. Errors: those of ExportableBuffer::create() and export_memory().
    static Result<std::unique_ptr<SharedBytes>> create(Device& device, std::size_t bytes) {
        auto made = ExportableBuffer<std::uint8_t>::create(device, bytes, {.seen_by = SeenBy::cpus_and_gpus});
        if (!made) return std::move(made).error();
        Result<SharedMemoryDescriptor> exported = made->export_memory();
        if (!exported) return std::move(exported).error();
        std::unique_ptr<SharedBytes> all(new SharedBytes());
        all->device_ = &device;
        all->own_ = std::make_shared<Own>(std::move(made).value(), std::move(exported).value());
        return all;
    }

    // The bytes of another process's message, in place. A message whose memory is no longer there has none: its
    // publisher keeps it for some messages only. Errors: peer_lost (the publisher, or its memory, is gone),
    // invalid_argument, and those of import_memory().
    template <class Descriptor>
    static Result<std::unique_ptr<SharedBytes>> open(Device& device, const Descriptor& from) {
        Result<FileDescriptor> file = file_of(from.pid, from.fd, from.file);
        if (!file) return std::move(file).error();
        std::vector<FileDescriptor> files;
        files.push_back(std::move(file).value());
        Result<SharedMemoryDescriptor> memory =
            SharedMemoryDescriptor::received(std::as_bytes(std::span(from.memory)), std::move(files));
        if (!memory) return std::move(memory).error();
        if (memory->facts().bytes != from.bytes) {
            return Error(Code::invalid_argument, "the message says another size than its memory has",
                         "the same version at both ends");
        }
        Result<Buffer<std::uint8_t>> imported = import_memory<std::uint8_t>(device, std::move(memory).value());
        if (!imported) return std::move(imported).error();
        std::unique_ptr<SharedBytes> all(new SharedBytes());
        all->device_ = &device;
        all->imported_.emplace(std::move(imported).value());
        return all;
    }
    // No bytes, and why.
    explicit SharedBytes(Error why) : failure_(std::move(why)) {}

    // For kernels and host views; nullptr: there are no bytes. Of a message that was received: for reading only.
    TypedBuffer<std::uint8_t>* buffer() noexcept {
        if (imported_) return &*imported_;
        return own_ ? &own_->buffer : nullptr;
    }
    const TypedBuffer<std::uint8_t>* buffer() const noexcept { return const_cast<SharedBytes*>(this)->buffer(); }
    // Why a message that was received has no bytes.
    const std::optional<Error>& failure() const noexcept { return failure_; }

    std::string get_backend_type() const override { return buffer_backend_name; }
    std::size_t size() const override { return buffer() != nullptr ? buffer()->size() : 0; }
    // Waits for device work that writes the bytes, and copies them. Failures are exceptions (BadResult), also below.
    std::unique_ptr<rosidl::BufferImplBase<std::uint8_t>> to_cpu() const override {
        auto copy = std::make_unique<rosidl::CpuBufferImpl<std::uint8_t>>();
        if (buffer() != nullptr) {
            const HostView<const std::uint8_t> view = buffer()->read_on_host().value();
            copy->get_storage().assign(view.begin(), view.end());
        }
        return copy;
    }
    // In memory of its own, which may be published, too.
    std::unique_ptr<rosidl::BufferImplBase<std::uint8_t>> clone() const override {
        if (buffer() == nullptr) return std::unique_ptr<SharedBytes>(new SharedBytes(failure_));
        std::unique_ptr<SharedBytes> copy = create(*device_, size()).value();
        const HostView<const std::uint8_t> from = buffer()->read_on_host().value();
        HostView<std::uint8_t> to = copy->buffer()->write_on_host().value();
        std::copy(from.begin(), from.end(), to.begin());
        return copy;
    }

    // Memory that was made here, and the file by which others map it.
    struct Own {
        Own(ExportableBuffer<std::uint8_t> made, SharedMemoryDescriptor exported)
            : buffer(std::move(made)), file(std::move(exported)) {}
        ExportableBuffer<std::uint8_t> buffer;
        SharedMemoryDescriptor file;
    };
    // nullptr for the bytes of another process's message.
    const std::shared_ptr<Own>& own() const noexcept { return own_; }
    // Ends the writing of this process, and says where the memory is. Errors: those of flush_shared(), system_error.
    template <class Descriptor>
    static Result<void> describe(const Own& memory, Descriptor& into) {
        if (Result<void> written = flush_shared(memory.buffer); !written) return written;
        struct stat facts {};
        if (memory.file.fds().size() != 1 || ::fstat(memory.file.fds()[0], &facts) != 0) {
            return Error(Code::system_error, "shared memory without a file");
        }
        into.bytes = memory.buffer.size();
        into.pid = static_cast<std::int32_t>(::getpid());
        into.fd = memory.file.fds()[0];
        into.file = facts.st_ino;
        static_assert(sizeof into.memory == SharedMemoryDescriptor::size_bytes);
        std::memcpy(into.memory.data(), memory.file.bytes().data(), sizeof into.memory);
        return {};
    }

private:
    SharedBytes() = default;
    explicit SharedBytes(std::optional<Error> why) : failure_(std::move(why)) {}
    // The publisher's descriptor, if it is still the file that the message means. Needs the publisher's user, and its
    // namespace of process ids: backend_metadata() says both.
    static Result<FileDescriptor> file_of(std::int32_t pid, std::int32_t fd, std::uint64_t inode) {
        const Error gone(Code::peer_lost, "the publisher's memory is gone", "take messages sooner, or keep fewer");
        if (pid <= 0 || fd < 0) return gone;
        const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
        struct stat facts {};
        const auto is_it = [&](int failed) { return failed == 0 && S_ISREG(facts.st_mode) && facts.st_ino == inode; };
        if (!is_it(::stat(path.c_str(), &facts))) return gone;  // before it is opened, which may have effects
        FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
        if (!file || !is_it(::fstat(file.get(), &facts))) return gone;
        return file;
    }
    Device* device_ = nullptr;
    std::shared_ptr<Own> own_{};
    std::optional<Buffer<std::uint8_t>> imported_{};
    std::optional<Error> failure_{};
};

// The bytes of a message field; nullptr: they are another backend's.
inline SharedBytes* shared_bytes(const rosidl::Buffer<std::uint8_t>& field) noexcept {
    // A rosidl::Buffer gives out its implementation for reading only.
    return dynamic_cast<SharedBytes*>(const_cast<rosidl::BufferImplBase<std::uint8_t>*>(field.get_impl()));
}

// What a process must have in common with another one to open its files: the system, the namespace of process ids and
// the user.
inline std::string backend_metadata() {
    std::array<char, 64> boot{}, space{};
    if (FileDescriptor file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)); file) {
        const ssize_t got = ::read(file.get(), boot.data(), 36);
        (void)got;  // without it processes of two systems might be taken for neighbours: see below
    }
    const ssize_t length = ::readlink("/proc/self/ns/pid", space.data(), space.size() - 1);
    if (boot[0] == 0 || length <= 0) return "";  // no backend of another process matches it
    return std::string(boot.data()) + " " + space.data() + " " + std::to_string(::geteuid());
}

// The plugin: PLUGINLIB_EXPORT_CLASS(isthmus::ros2::SharedBytesBackend<…::msg::SharedBytes>, rosidl::BufferBackend).
// `Descriptor` is a message with the fields
//     uint64 bytes
//     int32 pid
//     int32 fd
//     uint64 file
//     uint8[128] memory
// The process sets adapter_device before it spins, and keeps the runtime until it has stopped. Any thread may call it.
template <class Descriptor>
class SharedBytesBackend final : public rosidl::BufferBackend {
public:
    // Memory of so many messages stays for subscribers that have not opened it yet.
    static constexpr std::size_t kept_messages = 16;

    std::string get_backend_type() const override { return buffer_backend_name; }
    std::string get_backend_metadata() const override { return backend_metadata(); }
    const rosidl_message_type_support_t* get_descriptor_type_support() const override {
        return rosidl_typesupport_cpp::get_message_type_support_handle<Descriptor>();
    }
    std::shared_ptr<void> create_empty_descriptor() const override { return std::make_shared<Descriptor>(); }

    // nullptr, upon which the bytes travel in the message: they are another backend's or another process's, or device
    // work on them failed.
    std::shared_ptr<void> create_descriptor_with_endpoint(const void* impl,
                                                          const rmw_topic_endpoint_info_t&) const override {
        const auto* const bytes =
            dynamic_cast<const SharedBytes*>(static_cast<const rosidl::BufferImplBase<std::uint8_t>*>(impl));
        if (bytes == nullptr || bytes->own() == nullptr) return nullptr;
        auto descriptor = std::make_shared<Descriptor>();
        if (!SharedBytes::describe(*bytes->own(), *descriptor)) return nullptr;
        keep(bytes->own());
        return descriptor;
    }
    // Without bytes where they are gone: SharedBytes::failure() says why.
    std::unique_ptr<void, void (*)(void*)> from_descriptor_with_endpoint(
        const void* descriptor, const rmw_topic_endpoint_info_t&) const override {
        const auto deleter = [](void* made) { delete static_cast<rosidl::BufferImplBase<std::uint8_t>*>(made); };
        rosidl::BufferImplBase<std::uint8_t>* const made = open(*static_cast<const Descriptor*>(descriptor)).release();
        return {made, deleter};
    }
    // Others get the bytes in the message.
    std::pair<bool, std::vector<std::set<std::uint32_t>>> on_discovering_endpoint(
        const rmw_topic_endpoint_info_t&, const std::vector<rmw_topic_endpoint_info_t>&,
        const std::unordered_map<std::string, std::string>& backends) override {
        const auto other = backends.find(buffer_backend_name);
        const std::string here = backend_metadata();
        return {other != backends.end() && !here.empty() && other->second == here, {}};
    }

private:
    static std::unique_ptr<SharedBytes> open(const Descriptor& descriptor) {
        Device* const device = adapter_device.load(std::memory_order_acquire);
        if (device == nullptr) {
            return std::make_unique<SharedBytes>(Error(Code::no_device, "the backend has no device",
                                                       "set isthmus::ros2::adapter_device before spinning"));
        }
        Result<std::unique_ptr<SharedBytes>> opened = SharedBytes::open(*device, descriptor);
        if (!opened) return std::make_unique<SharedBytes>(std::move(opened).error());
        return std::move(opened).value();
    }
    // Once, however many subscribers there are.
    void keep(const std::shared_ptr<SharedBytes::Own>& memory) const {
        const std::lock_guard locked(mutex_);
        if (std::find(kept_.begin(), kept_.end(), memory) != kept_.end()) return;
        kept_.push_back(memory);
        if (kept_.size() > kept_messages) kept_.pop_front();
    }
    mutable std::mutex mutex_{};
    mutable std::deque<std::shared_ptr<SharedBytes::Own>> kept_{};
};

}  // namespace ros2
}  // namespace v0
}  // namespace isthmus
#endif
