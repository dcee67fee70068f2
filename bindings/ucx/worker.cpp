// SPDX-License-Identifier: Apache-2.0
// The calls of UCX.
#include "worker.hpp"

#include <poll.h>
#include <ucs/config/global_opts.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace isthmus::ucx_wire {
namespace {

Error failed(const char* call, ucs_status_t status, Code code, const char* what) {
    return Error(status == UCS_ERR_NO_MEMORY ? Code::out_of_memory : code,
                 std::string(what) + ": " + ucs_status_string(status))
        .from_call(call, status);
}
Error lost_by(const char* call, ucs_status_t status) {
    return failed(call, status, Code::peer_lost, "the other machine was lost");
}

// With error handling UCX sends frames over TCP in fragments, and copies each where it arrives; to a device it waits
// for each copy. Its own are of 64 KiB (1.13, by the receiver) or 8 KiB (1.22, by the sender).
void enlarge_tcp_fragments(ucp_config_t* config) {
    unsigned major = 0, minor = 0, release = 0;
    ucp_get_version(&major, &minor, &release);
    // 1.13 takes them from the environment alone, and warns. Versions between the two were not tried.
    if (std::pair(major, minor) < std::pair(1u, 22u)) return;
    for (const auto& [variable, name] :
         {std::pair("UCX_TCP_RX_SEG_SIZE", "TCP_RX_SEG_SIZE"), std::pair("UCX_TCP_TX_SEG_SIZE", "TCP_TX_SEG_SIZE")}) {
        if (std::getenv(variable) == nullptr) (void)ucp_config_modify(config, name, "256k");
    }
}

// A request of UCX has no memory of ours: its state is asked for.
Result<void*> as_request(const char* call, ucs_status_ptr_t answer) {
    if (UCS_PTR_IS_ERR(answer)) return lost_by(call, UCS_PTR_STATUS(answer));
    return answer;
}

}  // namespace

Result<std::unique_ptr<Worker>> Worker::create(bool loopback, bool for_device) {
    // UCX's cache of kinds of memory learns of allocations from hooks that ucp_init() installs. Memory that is older
    // would count as host memory, to which the CPU copies (seen with 1.22).
    if (for_device && std::getenv("UCX_MEMTYPE_CACHE") == nullptr) ucs_global_opts_set_value("MEMTYPE_CACHE", "n");
    std::unique_ptr<Worker> made(new Worker());
    const auto cannot = [](const char* call, ucs_status_t status) {
        return failed(call, status, Code::unsupported, "UCX does not work here");
    };
    ucp_config_t* config = nullptr;
    ucs_status_t status = ucp_config_read(nullptr, nullptr, &config);
    if (status != UCS_OK) return cannot("ucp_config_read", status);
    if (loopback && std::getenv("UCX_NET_DEVICES") == nullptr) ucp_config_modify(config, "NET_DEVICES", "lo");
    if (!loopback && std::getenv("UCX_TLS") == nullptr) status = ucp_config_modify(config, "TLS", "^sm");
    if (status != UCS_OK) {
        ucp_config_release(config);
        return cannot("ucp_config_modify", status);
    }
    enlarge_tcp_fragments(config);
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
    params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    params.estimated_num_eps = 1;
    status = ucp_init(&params, config, &made->context_);
    ucp_config_release(config);
    if (status != UCS_OK) return cannot("ucp_init", status);
    ucp_worker_params_t own{};
    own.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    own.thread_mode = UCS_THREAD_MODE_SINGLE;
    status = ucp_worker_create(made->context_, &own, &made->worker_);
    if (status != UCS_OK) return cannot("ucp_worker_create", status);
    status = ucp_worker_get_efd(made->worker_, &made->event_);
    if (status != UCS_OK) return cannot("ucp_worker_get_efd", status);
    return made;
}

Worker::~Worker() {
    if (endpoint_ != nullptr) {
        ucp_request_param_t force{};
        force.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        force.flags = UCP_EP_CLOSE_FLAG_FORCE;
        ucs_status_ptr_t closing = ucp_ep_close_nbx(endpoint_, &force);
        if (UCS_PTR_IS_PTR(closing)) {
            while (ucp_request_check_status(closing) == UCS_INPROGRESS) ucp_worker_progress(worker_);
            ucp_request_free(closing);
        }
    }
    for (const Told& each : told_) ucp_request_free(each.request);
    if (worker_ != nullptr) ucp_worker_destroy(worker_);
    for (ucp_mem_h each : mapped_) ucp_mem_unmap(context_, each);
    if (context_ != nullptr) ucp_cleanup(context_);
}

Result<std::vector<std::byte>> Worker::address() const {
    ucp_address_t* address = nullptr;
    std::size_t bytes = 0;
    const ucs_status_t status = ucp_worker_get_address(worker_, &address, &bytes);
    if (status != UCS_OK) return failed("ucp_worker_get_address", status, Code::unsupported, "UCX has no address here");
    std::vector<std::byte> copy(bytes);
    std::memcpy(copy.data(), address, bytes);
    ucp_worker_release_address(worker_, address);
    return copy;
}

Result<void> Worker::connect(std::span<const std::byte> address) {
    ucp_ep_params_t params{};
    params.field_mask =
        UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t*>(address.data());
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler = {&Worker::lost, this};
    const ucs_status_t status = ucp_ep_create(worker_, &params, &endpoint_);
    if (status != UCS_OK) return lost_by("ucp_ep_create", status);
    return {};
}

void Worker::lost(void* self, ucp_ep_h, ucs_status_t status) {
    static_cast<Worker*>(self)->failed_ = status;
}
Result<void> Worker::state() const {
    if (failed_ == UCS_OK) return {};
    return lost_by("the endpoint", failed_);
}

void Worker::on(Am message, ucp_am_recv_callback_t called, void* with) {
    ucp_am_handler_param_t param{};
    param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    param.id = static_cast<unsigned>(message);
    param.flags = UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA;
    param.cb = called;
    param.arg = with;
    ucp_worker_set_am_recv_handler(worker_, &param);
}

void Worker::map(void* memory, std::size_t bytes) {
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address = memory;
    params.length = bytes;
    ucp_mem_h mapped = nullptr;
    if (ucp_mem_map(context_, &params, &mapped) == UCS_OK) mapped_.push_back(mapped);
}

void* Worker::map_device(void* memory, std::size_t bytes) {
#if UCP_API_VERSION >= UCP_VERSION(1, 13)
    ucp_mem_map_params_t params{};
    params.field_mask =
        UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
    params.address = memory;
    params.length = bytes;
    params.memory_type = UCS_MEMORY_TYPE_CUDA;
    ucp_mem_h mapped = nullptr;
    if (ucp_mem_map(context_, &params, &mapped) != UCS_OK) return nullptr;
    mapped_.push_back(mapped);
    return mapped;
#else
    (void)memory, (void)bytes;
    return nullptr;
#endif
}

Result<void*> Worker::send(Am message, const void* header, std::size_t header_bytes, std::span<const std::uint8_t> data,
                           bool eager) {
    ucp_request_param_t param{};
    // Host memory, also where a device uses it: UCX need not ask the driver.
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    param.flags = eager ? UCP_AM_SEND_FLAG_EAGER : UCP_AM_SEND_FLAG_RNDV;
    param.memory_type = UCS_MEMORY_TYPE_HOST;
    return as_request("ucp_am_send_nbx", ucp_am_send_nbx(endpoint_, static_cast<unsigned>(message), header,
                                                         header_bytes, data.data(), data.size(), &param));
}

bool Worker::has_cuda() const {
    ucp_context_attr_t facts{};
    facts.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
    return ucp_context_query(context_, &facts) == UCS_OK && (facts.memory_types & UCS_BIT(UCS_MEMORY_TYPE_CUDA)) != 0;
}

Result<void*> Worker::receive(void* descriptor, std::span<std::uint8_t> data, void* device) {
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    param.memory_type = device != nullptr ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST;
#if UCP_API_VERSION >= UCP_VERSION(1, 13)
    if (device != nullptr) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
        param.memh = static_cast<ucp_mem_h>(device);
    }
#endif
    return as_request("ucp_am_recv_data_nbx",
                      ucp_am_recv_data_nbx(worker_, descriptor, data.data(), data.size(), &param));
}

Result<bool> Worker::complete(void* request) {
    if (request == nullptr) return true;
    const ucs_status_t status = ucp_request_check_status(request);
    if (status == UCS_INPROGRESS) return false;
    ucp_request_free(request);
    if (status != UCS_OK) return lost_by("the request", status);
    return true;
}

Result<void> Worker::tell(Am message, const void* header, std::size_t bytes) {
    const auto done = [](const Told& each) {
        if (ucp_request_check_status(each.request) == UCS_INPROGRESS) return false;
        ucp_request_free(each.request);
        return true;
    };
    told_.erase(std::remove_if(told_.begin(), told_.end(), done), told_.end());
    Told next{nullptr, std::vector<std::byte>(bytes)};
    std::memcpy(next.header.data(), header, bytes);
    Result<void*> sent = send(message, next.header.data(), bytes, {}, true);
    if (!sent) return std::move(sent).error();
    next.request = *sent;
    if (next.request != nullptr) told_.push_back(std::move(next));
    return {};
}

void Worker::sleep(int socket, std::chrono::nanoseconds at_most) {
    // Busy: something arrived since the last look.
    if (ucp_worker_arm(worker_) != UCS_OK) return;
    pollfd waits[2] = {{event_, POLLIN, 0}, {socket, POLLIN, 0}};
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at_most);
    const timespec time{static_cast<time_t>(seconds.count()), static_cast<long>((at_most - seconds).count())};
    (void)ppoll(waits, 2, &time, nullptr);
}

}  // namespace isthmus::ucx_wire
