// SPDX-License-Identifier: Apache-2.0
// Declares the kernel for the files that launch it.
#pragma once

#include <isthmus/kernel.hpp>

// One joint: what the motor should do, by how far it is from its target and how fast it moves.
ISTHMUS_DECLARE_KERNEL(control, isthmus::Index joint, isthmus::Out<float> commands,
                       isthmus::View<const float> positions, isthmus::View<const float> velocities, float target,
                       float stiffness, float damping);
