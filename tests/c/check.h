// SPDX-License-Identifier: Apache-2.0
/* What the programs of tests/c/ check with: the first thing that is not as it should be ends the program with 1. */
#ifndef ISTHMUS_TESTS_C_CHECK_H
#define ISTHMUS_TESTS_C_CHECK_H

#include <isthmus.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                            \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                \
        }                                                                           \
    } while (0)

static isthmus_error* check_error; /* what the calls of the next macros write */

static inline void check_code(const char* file, int line, const char* call, isthmus_code code, isthmus_code wanted) {
    if (code != wanted) {
        fprintf(stderr, "%s:%d: %s\n  is %s, wanted %s\n  %s\n", file, line, call, isthmus_code_name(code),
                isthmus_code_name(wanted), isthmus_error_text(check_error));
        exit(1);
    }
    if (isthmus_error_code(check_error) != code || (code != ISTHMUS_OK) != (check_error != NULL)) {
        fprintf(stderr, "%s:%d: %s\n  answers %d and writes an error of %d\n", file, line, call, (int)code,
                (int)isthmus_error_code(check_error));
        exit(1);
    }
}
/* The last argument of `call` is ERR. */
#define ERR &check_error
#define WORKS(call) check_code(__FILE__, __LINE__, #call, call, ISTHMUS_OK)
/* The message contains `words`. */
#define REFUSED(code, words, call)                                                                                  \
    do {                                                                                                            \
        check_code(__FILE__, __LINE__, #call, call, code);                                                          \
        if (strstr(isthmus_error_message(check_error), words) == NULL) {                                            \
            fprintf(stderr, "%s:%d: no '%s' in: %s\n", __FILE__, __LINE__, words, isthmus_error_text(check_error)); \
            exit(1);                                                                                                \
        }                                                                                                           \
        isthmus_error_free(check_error);                                                                            \
        check_error = NULL;                                                                                         \
    } while (0)

static inline isthmus_runtime* open_runtime(void) {
    isthmus_runtime* runtime = NULL;
    WORKS(isthmus_runtime_open(NULL, &runtime, ERR));
    /* Tests on a machine must not pass on the CPU device alone. */
    const char* machine = getenv("ISTHMUS_SIM");
    if (machine != NULL) CHECK(isthmus_runtime_device_count(runtime) > 1);
    if (getenv("ISTHMUS_TEST_REAL") != NULL && machine == NULL) CHECK(isthmus_runtime_device_count(runtime) > 1);
    return runtime;
}

static inline isthmus_buffer* shared_buffer(isthmus_device* device, uint64_t bytes) {
    isthmus_buffer* buffer = NULL;
    WORKS(isthmus_device_allocate_shared(device, bytes, NULL, &buffer, ERR));
    return buffer;
}

static inline void write_bytes(isthmus_buffer* buffer, int value) {
    isthmus_host_view* view = NULL;
    void* data = NULL;
    WORKS(isthmus_buffer_open_on_host(buffer, 0, ISTHMUS_REST, ISTHMUS_WRITE, ISTHMUS_WAIT_DEFAULT, &view, &data, ERR));
    memset(data, value, isthmus_host_view_bytes(view));
    isthmus_host_view_free(view);
}

/* All bytes of [first, last) are `value`. */
static inline void check_bytes(isthmus_buffer* buffer, uint64_t first, uint64_t last, int value) {
    isthmus_host_view* view = NULL;
    void* data = NULL;
    WORKS(isthmus_buffer_open_on_host(buffer, 0, ISTHMUS_REST, ISTHMUS_READ, ISTHMUS_WAIT_DEFAULT, &view, &data, ERR));
    CHECK(last <= isthmus_host_view_bytes(view));
    for (uint64_t at = first; at < last; ++at) {
        if (((const unsigned char*)data)[at] != value) {
            fprintf(stderr, "byte %llu is %d, wanted %d\n", (unsigned long long)at, ((const unsigned char*)data)[at],
                    value);
            exit(1);
        }
    }
    isthmus_host_view_free(view);
}

#endif
