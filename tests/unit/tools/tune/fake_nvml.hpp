// SPDX-License-Identifier: Apache-2.0
// A libnvidia-ml.so.1 with one GPU whose answers a test sets. The program is linked with it, so that dlopen() finds it
// under this name.
#pragma once

struct FakeNvml {
    const char* uuid = "";
    unsigned clock_mhz = 0;
    unsigned most_clock_mhz = 0;
    unsigned power_limit_mw = 0;
    unsigned long long throttle = 0;
    int answer = 0;  // of every question; 0: NVML_SUCCESS
};

extern "C" FakeNvml* fake_nvml();
