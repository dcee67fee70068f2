// SPDX-License-Identifier: Apache-2.0
// The backend of rosidl::Buffer: messages between real processes. The interface is a stand-in with the virtual
// functions of rosidl_buffer and rosidl_buffer_backend 5.2; a pipe takes the place of ROS, which carries the
// descriptors.
#include <isthmus/read_back.hpp>
#include <isthmus/ros2_buffer.hpp>
#include <isthmus/runtime.hpp>
#include <isthmus/stream.hpp>

#include <gtest/gtest.h>
#include <isthmus_msgs/msg/shared_bytes.hpp>

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>

static const rosidl_message_type_support_t made_up_type_support{};
template <>
const rosidl_message_type_support_t*
rosidl_typesupport_cpp::get_message_type_support_handle<isthmus_msgs::msg::SharedBytes>() {
    return &made_up_type_support;
}

namespace isthmus {
namespace {

using Descriptor = isthmus_msgs::msg::SharedBytes;
using Backend = ros2::SharedBytesBackend<Descriptor>;
using Field = rosidl::Buffer<std::uint8_t>;
const rmw_topic_endpoint_info_t endpoint{};

// What travels, field by field, as ROS serializes a message.
struct Wire {
    std::uint64_t bytes;
    std::int32_t pid;
    std::int32_t fd;
    std::uint64_t file;
    std::uint8_t memory[128];
};
static_assert(sizeof(Wire) < rosidl::kMaxBufferDescriptorSize);
Wire packed(const Descriptor& from) {
    Wire to{from.bytes, from.pid, from.fd, from.file, {}};
    std::copy(from.memory.begin(), from.memory.end(), to.memory);
    return to;
}
std::shared_ptr<void> unpacked(const Backend& backend, const Wire& from) {
    std::shared_ptr<void> to = backend.create_empty_descriptor();
    auto& descriptor = *static_cast<Descriptor*>(to.get());
    descriptor.bytes = from.bytes;
    descriptor.pid = from.pid;
    descriptor.fd = from.fd;
    descriptor.file = from.file;
    std::copy(std::begin(from.memory), std::end(from.memory), descriptor.memory.begin());
    return to;
}

// As ROS puts it into a message.
Field received(const Backend& backend, const Wire& wire) {
    const std::shared_ptr<void> descriptor = unpacked(backend, wire);
    auto made = backend.from_descriptor_with_endpoint(descriptor.get(), endpoint);
    return Field(std::unique_ptr<rosidl::BufferImplBase<std::uint8_t>>(
        static_cast<rosidl::BufferImplBase<std::uint8_t>*>(made.release())));
}

// What a subscriber saw.
struct Seen {
    std::uint64_t bytes;
    int on_host;    // the value of each byte; -1: they differ, -2: there are none
    int on_device;  // the same, read by the device
    Code failure;
};
int value_of(const std::vector<std::uint8_t>& all) {
    if (all.empty()) return -2;
    return std::all_of(all.begin(), all.end(), [&](auto each) { return each == all[0]; }) ? all[0] : -1;
}
Seen look(Device& device, Field& field) {
    Seen seen{field.size(), value_of(field.to_vector()), -2, Code{}};
    ros2::SharedBytes* const bytes = ros2::shared_bytes(field);
    if (bytes == nullptr || bytes->buffer() == nullptr) {
        seen.failure = bytes != nullptr ? bytes->failure()->code() : Code::unsupported;
        return seen;
    }
    Stream stream = device.create_stream().value();
    auto own = device.allocate_shared<std::uint8_t>(field.size()).value();
    stream.copy(own, *bytes->buffer()).value();
    seen.on_device = value_of(read_back(own).value());
    return seen;
}

// Another process that subscribes. It has a runtime of its own.
class Subscriber {
public:
    Subscriber() {
        int there[2], back[2];
        EXPECT_EQ(::pipe(there), 0);
        EXPECT_EQ(::pipe(back), 0);
        child_ = ::fork();
        if (child_ == 0) {
            ::close(there[1]);
            ::close(back[0]);
            Runtime runtime = Runtime::open().value();
            ros2::adapter_device = &runtime.default_device();
            const Backend backend;
            for (Wire wire{}; ::read(there[0], &wire, sizeof wire) == sizeof wire;) {
                Field field = received(backend, wire);
                const Seen seen = look(runtime.default_device(), field);
                if (::write(back[1], &seen, sizeof seen) != sizeof seen) break;
            }
            ::_exit(0);
        }
        ::close(there[0]);
        ::close(back[1]);
        to_ = FileDescriptor(there[1]);
        from_ = FileDescriptor(back[0]);
    }
    ~Subscriber() {
        to_ = FileDescriptor();
        int status = -1;
        EXPECT_EQ(::waitpid(child_, &status, 0), child_);
        EXPECT_EQ(status, 0);
    }
    Seen take(const Wire& wire) {
        Seen seen{};
        EXPECT_EQ(::write(to_.get(), &wire, sizeof wire), static_cast<ssize_t>(sizeof wire));
        EXPECT_EQ(::read(from_.get(), &seen, sizeof seen), static_cast<ssize_t>(sizeof seen));
        return seen;
    }

private:
    pid_t child_ = -1;
    FileDescriptor to_{}, from_{};
};

class Ros2Buffer : public ::testing::Test {
protected:
    void SetUp() override {
        runtime.emplace(Runtime::open().value());  // behind the fork of `subscriber`
        device = &runtime->default_device();
        ASSERT_EQ(device->is_cpu(), std::getenv("ISTHMUS_SIM") == nullptr);
        ros2::adapter_device = device;
    }
    void TearDown() override { ros2::adapter_device = nullptr; }
    // Filled by the device.
    Field field(std::size_t bytes, std::uint8_t value) {
        std::unique_ptr<ros2::SharedBytes> made = ros2::SharedBytes::create(*device, bytes).value();
        Stream stream = device->create_stream().value();
        stream.fill(*made->buffer(), value).value();
        return Field(std::move(made));
    }
    std::optional<Wire> published(const Field& message) {
        const std::shared_ptr<void> made = backend.create_descriptor_with_endpoint(message.get_impl(), endpoint);
        if (made == nullptr) return std::nullopt;
        return packed(*static_cast<const Descriptor*>(made.get()));
    }
    Subscriber subscriber{};
    std::optional<Runtime> runtime{};
    Device* device = nullptr;
    Backend backend{};
};

TEST_F(Ros2Buffer, AMessageIsInAnotherProcessAlsoWhenThePublisherHasDestroyedIt) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{5000}, std::size_t{1} << 20}) {
        std::optional<Wire> wire;
        {
            const Field message = field(bytes, 77);
            EXPECT_EQ(message.get_backend_type(), "isthmus");
            wire = published(message);
        }
        ASSERT_TRUE(wire);
        const Seen seen = subscriber.take(*wire);
        EXPECT_EQ(seen.bytes, bytes);
        EXPECT_EQ(seen.on_host, 77);
        EXPECT_EQ(seen.on_device, 77);
    }
}

TEST_F(Ros2Buffer, SubscribersOfOneProcessAndOfAnotherGetTheSameMessage) {
    const Field message = field(5000, 3);
    const Wire wire = published(message).value();
    EXPECT_EQ(published(message)->file, wire.file) << "one file for all subscribers";
    Field here = received(backend, wire);
    EXPECT_EQ(look(*device, here).on_device, 3);
    EXPECT_EQ(subscriber.take(wire).on_host, 3);
    EXPECT_FALSE(published(here)) << "another process's memory travels in the message";
}

// A message is whole, or is not there.
TEST_F(Ros2Buffer, AMessageThatIsTakenTooLateHasNoBytes) {
    const Wire first = published(field(5000, 1)).value();
    Field taken = received(backend, first);
    std::vector<Wire> later;
    for (std::size_t number = 0; number < Backend::kept_messages; ++number) {
        later.push_back(published(field(5000, static_cast<std::uint8_t>(10 + number))).value());
    }
    const Seen late = subscriber.take(first);
    EXPECT_EQ(late.bytes, 0u);
    EXPECT_EQ(late.on_host, -2);
    EXPECT_EQ(late.failure, Code::peer_lost);
    EXPECT_EQ(subscriber.take(later.front()).on_host, 10);
    EXPECT_EQ(look(*device, taken).on_host, 1) << "who has a message keeps it";
}

TEST_F(Ros2Buffer, ADescriptorOfSomethingElseHasNoBytes) {
    const Wire right = published(field(5000, 1)).value();
    for (const std::function<void(Wire&)>& change : std::initializer_list<std::function<void(Wire&)>>{
             [](Wire& wire) { wire.pid = 0; }, [](Wire& wire) { wire.pid = -1; }, [](Wire& wire) { wire.fd = -1; },
             [](Wire& wire) { wire.fd = 0; }, [](Wire& wire) { wire.file += 1; }}) {
        Wire wrong = right;
        change(wrong);
        EXPECT_EQ(subscriber.take(wrong).failure, Code::peer_lost);
    }
    Wire wrong = right;
    wrong.bytes += 1;
    EXPECT_EQ(subscriber.take(wrong).failure, Code::invalid_argument);
    wrong = right;
    wrong.memory[0] ^= 1;
    EXPECT_EQ(subscriber.take(wrong).failure, Code::invalid_argument);
    EXPECT_EQ(subscriber.take(right).on_host, 1);
}

TEST_F(Ros2Buffer, CopiesHaveMemoryOfTheirOwn) {
    const Field message = field(5000, 4);
    Field copy(message);
    EXPECT_NE(published(copy)->file, published(message)->file);
    std::vector<std::uint8_t> changed(5000, 9);
    {
        auto view = ros2::shared_bytes(copy)->buffer()->write_on_host().value();
        std::copy(changed.begin(), changed.end(), view.begin());
    }
    EXPECT_EQ(subscriber.take(*published(copy)).on_device, 9);
    EXPECT_EQ(value_of(message.to_vector()), 4);
    const Field none(received(backend, Wire{}));
    const Field also_none(none);
    EXPECT_EQ(also_none.size(), 0u);
    EXPECT_EQ(ros2::shared_bytes(also_none)->failure()->code(), Code::peer_lost);
}

TEST_F(Ros2Buffer, BytesOfTheCpuBackendTravelInTheMessage) {
    const Field plain;
    EXPECT_FALSE(published(plain));
    EXPECT_EQ(ros2::shared_bytes(plain), nullptr);
}

TEST_F(Ros2Buffer, OnlyNeighboursGetDescriptors) {
    const std::string here = backend.get_backend_metadata();
    EXPECT_FALSE(here.empty());
    EXPECT_TRUE(backend.on_discovering_endpoint(endpoint, {}, {{"cpu", ""}, {"isthmus", here}}).first);
    EXPECT_FALSE(backend.on_discovering_endpoint(endpoint, {}, {{"isthmus", here + "1"}}).first) << "another user";
    EXPECT_FALSE(backend.on_discovering_endpoint(endpoint, {}, {{"isthmus", ""}}).first);
    EXPECT_FALSE(backend.on_discovering_endpoint(endpoint, {}, {{"cpu", here}}).first);
    EXPECT_EQ(backend.get_backend_type(), "isthmus");
    EXPECT_EQ(backend.get_descriptor_type_support(), &made_up_type_support);
}

TEST_F(Ros2Buffer, AProcessWithoutADeviceSaysSo) {
    const Wire wire = published(field(5000, 1)).value();
    ros2::adapter_device = nullptr;
    const Field none = received(backend, wire);
    EXPECT_EQ(ros2::shared_bytes(none)->failure()->code(), Code::no_device);
}

}  // namespace
}  // namespace isthmus
