// SPDX-License-Identifier: Apache-2.0
// The kernel of the control loop: compiled by nvcc for the GPU and by the C++ compiler for the CPU.
#include "control.hpp"

ISTHMUS_KERNEL(control, isthmus::Index joint, isthmus::Out<float> commands, isthmus::View<const float> positions,
               isthmus::View<const float> velocities, float target, float stiffness, float damping) {
    commands[joint] = stiffness * (target - positions[joint]) - damping * velocities[joint];
}
