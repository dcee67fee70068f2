// SPDX-License-Identifier: Apache-2.0
// A tool as NVTX loads it (NVTX_INJECTION64_PATH): counts ranges and marks of all domains, and keeps their texts.
#include <nvtx3/nvToolsExt.h>

#include <cstdint>
#include <string>

struct CUstream_st;  // of cuda.h, which is not needed here

namespace {

// Found by the test with dlsym() in this module.
extern "C" {
[[gnu::visibility("default")]] std::string* nvtx_counter_lines() {
    static std::string lines;
    return &lines;
}
}

void add(const std::string& line) {
    *nvtx_counter_lines() += line + "\n";
}

nvtxDomainHandle_t NVTX_API create(const char* name) {
    add(std::string("domain ") + name);
    static int domain = 0;
    return reinterpret_cast<nvtxDomainHandle_t>(&domain);
}
int NVTX_API push(nvtxDomainHandle_t, const nvtxEventAttributes_t* event) {
    add(std::string("push ") + event->message.ascii + " " + std::to_string(event->category) + " " +
        std::to_string(event->payload.ullValue));
    return 0;
}
int NVTX_API pop(nvtxDomainHandle_t) {
    add("pop");
    return 0;
}
void NVTX_API mark(nvtxDomainHandle_t, const nvtxEventAttributes_t* event) {
    add(std::string("mark ") + event->message.ascii + " " + std::to_string(event->category));
}
void NVTX_API name_category(nvtxDomainHandle_t, std::uint32_t category, const char* name) {
    add("category " + std::to_string(category) + " " + name);
}
void NVTX_API name_stream(CUstream_st* stream, const char* name) {
    add((stream != nullptr ? "stream " : "no stream ") + std::string(name));
}

}  // namespace

extern "C" [[gnu::visibility("default")]] int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
    const auto* const callbacks = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
    if (callbacks == nullptr) return 0;
    NvtxFunctionTable table = nullptr;
    unsigned int size = 0;
    if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) return 0;
    const auto set = [&](unsigned id, auto* function) {
        if (id < size) *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
    };
    set(NVTX_CBID_CORE2_DomainCreateA, &create);
    set(NVTX_CBID_CORE2_DomainRangePushEx, &push);
    set(NVTX_CBID_CORE2_DomainRangePop, &pop);
    set(NVTX_CBID_CORE2_DomainMarkEx, &mark);
    set(NVTX_CBID_CORE2_DomainNameCategoryA, &name_category);
    if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CUDA, &table, &size) == 0) return 0;
    set(NVTX_CBID_CUDA_NameCuStreamA, &name_stream);
    return 1;
}
