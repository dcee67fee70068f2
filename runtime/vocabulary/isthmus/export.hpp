// SPDX-License-Identifier: Apache-2.0
// Symbol visibility of the public API: everything else in the library is hidden.
#pragma once

#if defined(ISTHMUS_STATIC)
#define ISTHMUS_API
#else
#define ISTHMUS_API [[gnu::visibility("default")]]
#endif
