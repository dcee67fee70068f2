// SPDX-License-Identifier: Apache-2.0
// ISTHMUS_SANITIZED: built with AddressSanitizer or ThreadSanitizer, of g++ or of clang.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ISTHMUS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ISTHMUS_SANITIZED 1
#endif
#endif

// ISTHMUS_ADDRESS_SANITIZED: built with AddressSanitizer.
#if defined(__SANITIZE_ADDRESS__)
#define ISTHMUS_ADDRESS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ISTHMUS_ADDRESS_SANITIZED 1
#endif
#endif

#if defined(ISTHMUS_SANITIZED)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif
