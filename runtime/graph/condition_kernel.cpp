// SPDX-License-Identifier: Apache-2.0
// The kernel that sets a condition, as PTX: the library needs no GPU compiler, and drivers compile it for any GPU.
#include "condition_kernel.hpp"

#include <platform/captures.hpp>

#include <cstddef>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// The driver's compiler resolves cudaGraphSetConditional by name, so no device library is linked. PTX ISA 8.3 is that
// of CUDA 12.3, the first with conditional nodes. Extent and pack are passed as for every kernel.
constexpr char ptx[] = R"(
.version 8.3
.target sm_70
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 condition, .param .b32 value);
.visible .entry isthmus_set_condition(.param .align 8 .b8 extent[24], .param .align 8 .b8 pack[24])
{
    .reg .b32 %value;
    .reg .pred %holds;
    .reg .b64 %condition, %word;
    ld.param.u64 %condition, [pack];
    ld.param.u64 %word, [pack+8];
    ld.u32 %value, [%word];
    setp.ne.u32 %holds, %value, 0;
    selp.u32 %value, 1, 0, %holds;
    {
    .param .b64 first;
    st.param.b64 [first], %condition;
    .param .b32 second;
    st.param.b32 [second], %value;
    call.uni cudaGraphSetConditional, (first, second);
    }
    ret;
}
)";

const KernelImage image = {reinterpret_cast<const unsigned char*>(ptx), sizeof ptx, "set_condition_1", "set_condition",
                           true};

constexpr ParameterInfo parameters[] = {
    {offsetof(platform::SetCondition, condition), 8, 0, ArgumentUse::value},
    {offsetof(platform::SetCondition, word), 16, 4, ArgumentUse::read},
};

void nothing(const Extent& /*extent*/, std::uint64_t /*first*/, std::uint64_t /*last*/, const void* /*pack*/) {}

}  // namespace

const KernelInfo set_condition = {"set_condition",
                                  "isthmus_set_condition",
                                  "std::uint64_t condition, View<const std::int32_t> word",
                                  parameters,
                                  2,
                                  sizeof(platform::SetCondition),
                                  1,
                                  0,
                                  &image,
                                  &nothing};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
