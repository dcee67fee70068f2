// SPDX-License-Identifier: Apache-2.0
// A libnvidia-ml.so.1 without GPUs, which UCX's transports for CUDA need to be loaded beside the simulated driver.
int nvmlInit_v2(void) {
    return 12;  // NVML_ERROR_LIBRARY_NOT_FOUND
}
const char* nvmlErrorString(int code) {
    (void)code;
    return "no NVML";
}
