#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the first directory that has a toolkit's cuda.h: of CUDA_HOME, CUDA_PATH, the usual directory, and nvcc's own.
nvcc=$(command -v nvcc) && nvcc=$(readlink -f "$nvcc")
for root in "$CUDA_HOME" "$CUDA_PATH" /usr/local/cuda "${nvcc%/bin/*}"; do
    if [ -n "$root" ] && [ -f "$root/include/cuda.h" ]; then
        echo "$root/include"
        exit 0
    fi
done
