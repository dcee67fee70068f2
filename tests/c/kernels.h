// SPDX-License-Identifier: Apache-2.0
/* Kernels that kernels.cpp registers. */
#ifndef ISTHMUS_TESTS_C_KERNELS_H
#define ISTHMUS_TESTS_C_KERNELS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weights {
    float factor;
    int32_t offset;
};
/* Registers "scale" and "cells.add_position"; may be called again. Answers an isthmus_code. */
int register_kernels(void);
/* Registers another kernel as "scale". */
int register_second_scale(void);
/* Registers a kernel of another version's headers, and one without a name. */
int register_foreign_kernel(void);
int register_nameless_kernel(void);

#ifdef __cplusplus
}
#endif
#endif
