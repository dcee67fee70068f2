// SPDX-License-Identifier: Apache-2.0
// The test in C compiled as C++: the header is both.
#include "ucx_test.c"  // NOLINT(bugprone-suspicious-include)
