/* SPDX-License-Identifier: Apache-2.0
 * A libnvrtc for the tests of isthmus.nvrtc: the source is PTX already and becomes the image; what a source contains
 * makes it fail. FAKE_NVRTC_ARCHITECTURES names what it compiles for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
enum { success, out_of_memory, internal_error = 11, invalid_option = 5, compilation = 6, no_builtins = 7 };
enum { most_architectures = 16 };

typedef struct program {
    char* source;
    char log[512];
    char lowered[128];
    int cubin;
} program;

API int nvrtcVersion(int* major, int* minor) {
    *major = 12;
    *minor = 34;
    return success;
}
static int architectures(int* found) {
    const char* text = getenv("FAKE_NVRTC_ARCHITECTURES");
    if (text == NULL) text = "75 80 86 87 89 90 100 103 110 120 121";
    int count = 0;
    for (char* end; count < most_architectures; text = end) {
        const long number = strtol(text, &end, 10);
        if (end == text) break;
        if (found != NULL) found[count] = (int)number;
        ++count;
    }
    return count;
}
API int nvrtcGetNumSupportedArchs(int* count) {
    *count = architectures(NULL);
    return success;
}
API int nvrtcGetSupportedArchs(int* found) {
    architectures(found);
    return success;
}
API int nvrtcCreateProgram(program** made, const char* source, const char* name, int count, const char* const* texts,
                           const char* const* names) {
    if (strstr(source, "no memory") != NULL) return out_of_memory;
    program* const one = calloc(1, sizeof *one);
    one->source = strdup(source);
    for (int at = 0; at < count; ++at) {
        snprintf(one->log, sizeof one->log, "%s includes %s with %zu bytes\n", name, names[at], strlen(texts[at]));
    }
    *made = one;
    return success;
}
API int nvrtcAddNameExpression(program* of, const char* name) {
    snprintf(of->lowered, sizeof of->lowered, "lowered_%s", name);
    return success;
}
API int nvrtcCompileProgram(program* of, int count, const char* const* options) {
    for (int at = 0; at < count; ++at) {
        if (strncmp(options[at], "--gpu-architecture=", 19) == 0) {
            of->cubin = options[at][19] == 's';
            snprintf(of->log + strlen(of->log), sizeof of->log - strlen(of->log), "for %s\n", options[at] + 19);
        } else if (strcmp(options[at], "--wrong") == 0) {
            snprintf(of->log, sizeof of->log, "unknown option --wrong\n");
            return invalid_option;
        }
    }
    if (strstr(of->source, "#error") == NULL) return strstr(of->source, "no builtins") != NULL ? no_builtins : success;
    snprintf(of->log, sizeof of->log, "kernels.cu(1): error: #error\n");
    return compilation;
}
API int nvrtcGetProgramLogSize(program* of, size_t* bytes) {
    *bytes = strlen(of->log) + 1;
    return success;
}
API int nvrtcGetProgramLog(program* of, char* log) {
    strcpy(log, of->log);
    return success;
}
API int nvrtcGetCUBINSize(program* of, size_t* bytes) {
    *bytes = of->cubin ? strlen(of->source) : 0;
    return success;
}
API int nvrtcGetCUBIN(program* of, char* image) {
    memcpy(image, of->source, strlen(of->source));
    return success;
}
API int nvrtcGetPTXSize(program* of, size_t* bytes) {
    *bytes = strlen(of->source) + 1;
    return success;
}
API int nvrtcGetPTX(program* of, char* image) {
    strcpy(image, of->source);
    return success;
}
API int nvrtcGetLoweredName(program* of, const char* name, const char** lowered) {
    (void)name;
    *lowered = of->lowered;
    return strstr(of->source, "no names") != NULL ? internal_error : success;
}
API int nvrtcDestroyProgram(program** of) {
    free((*of)->source);
    free(*of);
    *of = NULL;
    return success;
}
API const char* nvrtcGetErrorString(int answer) {
    static const char* const names[] = {"NVRTC_SUCCESS",
                                        "NVRTC_ERROR_OUT_OF_MEMORY",
                                        "",
                                        "",
                                        "",
                                        "NVRTC_ERROR_INVALID_OPTION",
                                        "NVRTC_ERROR_COMPILATION",
                                        "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE"};
    return answer < 8 ? names[answer] : "NVRTC_ERROR_INTERNAL_ERROR";
}
