// SPDX-License-Identifier: Apache-2.0
/* Two processes and one memory of the device: a descriptor of it goes through a socket, and the other process adds to
 * it. shared_by_descriptor samples.ptx */
#include "sample.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { count = 1024 };

static void send_descriptor(int socket, int descriptor) {
    char byte = 0, control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec data = {&byte, 1};
    struct msghdr message = {0};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    CMSG_FIRSTHDR(&message)->cmsg_level = SOL_SOCKET;
    CMSG_FIRSTHDR(&message)->cmsg_type = SCM_RIGHTS;
    CMSG_FIRSTHDR(&message)->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &descriptor, sizeof(int));
    REQUIRE(sendmsg(socket, &message, 0) == 1);
}

/* -1: the other process has nothing to share. */
static int receive_descriptor(int socket) {
    char byte, control[CMSG_SPACE(sizeof(int))];
    struct iovec data = {&byte, 1};
    struct msghdr message = {0};
    int descriptor = -1;
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    if (recvmsg(socket, &message, 0) != 1) return -1;
    REQUIRE(CMSG_FIRSTHDR(&message) != NULL);
    memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
    return descriptor;
}

static size_t granularity(CUmemAllocationProp* properties) {
    size_t bytes = 0;
    memset(properties, 0, sizeof(*properties));
    properties->type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties->requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CHECK(cuMemGetAllocationGranularity(&bytes, properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    return bytes;
}

static CUdeviceptr map(CUmemGenericAllocationHandle handle, size_t bytes) {
    CUdeviceptr address;
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CHECK(cuMemAddressReserve(&address, bytes, 0, 0, 0));
    CHECK(cuMemMap(address, bytes, 0, handle, 0));
    CHECK(cuMemSetAccess(address, bytes, &access, 1));
    return address;
}

static void unmap(CUdeviceptr address, size_t bytes, CUmemGenericAllocationHandle handle) {
    CHECK(cuMemUnmap(address, bytes));
    CHECK(cuMemAddressFree(address, bytes));
    CHECK(cuMemRelease(handle));
}

/* The process that did not make the memory: c = c + c. */
static int other_process(int socket, const char* kernels) {
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp properties;
    CUdeviceptr address;
    int number = count;
    size_t bytes;
    void* parameters[] = {&address, &address, &address, &number};
    int descriptor = receive_descriptor(socket);
    if (descriptor < 0) return 0;
    open_device();
    bytes = granularity(&properties);
    CHECK(cuMemImportFromShareableHandle(&handle, (void*)(size_t)descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(descriptor);
    address = map(handle, bytes);
    CHECK(cuLaunchKernel(load_kernel(kernels, "add_vectors"), count / 256, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL));
    CHECK(cuCtxSynchronize());
    unmap(address, bytes, handle);
    return 0;
}

static int this_process(int socket, pid_t other) {
    static float values[count];
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp properties;
    CUdeviceptr address;
    size_t bytes;
    int descriptor = -1, status = 0;
    CUdevice device = open_device();
    if (attribute_of(device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 0 ||
        attribute_of(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) == 0) {
        puts("this device shares no memory by descriptors");
        return sample_is_skipped;
    }
    bytes = granularity(&properties);
    CHECK(cuMemCreate(&handle, bytes, &properties, 0));
    address = map(handle, bytes);
    for (int i = 0; i < count; ++i) values[i] = (float)i;
    CHECK(cuMemcpyHtoD(address, values, sizeof(values)));
    CHECK(cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    send_descriptor(socket, descriptor);
    close(descriptor);
    REQUIRE(waitpid(other, &status, 0) == other && status == 0);
    CHECK(cuMemcpyDtoH(values, address, sizeof(values)));
    for (int i = 0; i < count; ++i) REQUIRE(values[i] == (float)(2 * i));
    unmap(address, bytes, handle);
    puts("shared");
    return 0;
}

int main(int words, char** word) {
    int sockets[2];
    pid_t other;
    REQUIRE(words == 2 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    other = fork(); /* before the driver starts: it does not survive fork() */
    REQUIRE(other >= 0);
    close(sockets[other == 0 ? 0 : 1]);
    return other == 0 ? other_process(sockets[1], word[1]) : this_process(sockets[0], other);
}
