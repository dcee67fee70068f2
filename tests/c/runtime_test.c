// SPDX-License-Identifier: Apache-2.0
/* Opening the runtime, what it and its devices say, and errors as objects. */
#include "check.h"

/* keeps Y1 */
static void versions_are_told(void) {
    CHECK(isthmus_c_version() == ISTHMUS_C_VERSION);
    CHECK(isthmus_version() > 0);
    CHECK(strchr(isthmus_version_text(), '.') != NULL);
}

static void enumerators_have_names(void) {
    CHECK(strcmp(isthmus_code_name(ISTHMUS_OUT_OF_MEMORY), "out_of_memory") == 0);
    CHECK(strcmp(isthmus_kind_name(ISTHMUS_KIND_WRITE_COMBINED), "write_combined") == 0);
    CHECK(strcmp(isthmus_use_name(ISTHMUS_USE_READS_ONCE), "reads_once") == 0);
    CHECK(strcmp(isthmus_path_name(ISTHMUS_PATH_PREFETCH), "prefetch") == 0);
    CHECK(strcmp(isthmus_model_name(ISTHMUS_MODEL_C2C), "c2c") == 0);
    CHECK(strcmp(isthmus_state_name(ISTHMUS_STATE_PROBED), "probed") == 0);
    CHECK(strcmp(isthmus_origin_name(ISTHMUS_ORIGIN_ATTRIBUTE), "attribute") == 0);
    CHECK(strcmp(isthmus_feature_name(ISTHMUS_FEATURE_HOST_DMA_BUF), "host_dma_buf") == 0);
    CHECK(isthmus_feature_count() == ISTHMUS_FEATURE_HOST_DMA_BUF + 1);
    const int32_t strange[] = {-1, 10000, INT32_MAX, INT32_MIN};
    for (size_t at = 0; at < sizeof strange / sizeof *strange; ++at) {
        CHECK(strcmp(isthmus_code_name(strange[at]), "unknown") == 0);
        CHECK(strcmp(isthmus_feature_name(strange[at]), "unknown") == 0);
        CHECK(strcmp(isthmus_kind_name(strange[at]), "unknown") == 0);
    }
    CHECK(strcmp(isthmus_code_name(200), "unknown") == 0);
}

static void devices_answer(isthmus_runtime* runtime) {
    const size_t count = isthmus_runtime_device_count(runtime);
    CHECK(count >= 1);
    CHECK(isthmus_runtime_device(runtime, count) == NULL);
    isthmus_device* const cpu = isthmus_runtime_cpu(runtime);
    CHECK(cpu == isthmus_runtime_device(runtime, count - 1));
    CHECK(isthmus_device_is_cpu(cpu) == 1);
    CHECK(isthmus_device_ordinal(cpu) == -1);
    CHECK(isthmus_device_model(cpu) == ISTHMUS_MODEL_CPU);
    isthmus_device* const chosen = isthmus_runtime_default_device(runtime);
    CHECK(isthmus_device_is_cpu(chosen) == (count == 1));
    for (size_t at = 0; at < count; ++at) {
        isthmus_device* const device = isthmus_runtime_device(runtime, at);
        CHECK(isthmus_device_index(device) == at);
        CHECK(isthmus_device_name(device)[0] != '\0');
        CHECK(isthmus_device_healthy(device) == 1);
        CHECK(isthmus_device_profile_date(device) == NULL);
        for (int32_t feature = 0; feature < isthmus_feature_count(); ++feature) {
            CHECK(isthmus_device_has(device, feature) ==
                  (isthmus_device_feature_state(device, feature) != ISTHMUS_STATE_NO));
            CHECK(isthmus_device_why(device, feature)[0] != '\0');
        }
        CHECK(isthmus_device_has(device, isthmus_feature_count()) == 0);
        CHECK(isthmus_device_has(device, -1) == 0);
        CHECK(isthmus_device_why(device, 999)[0] != '\0');
        WORKS(isthmus_device_synchronize(device, ISTHMUS_WAIT_DEFAULT, ERR));
    }
    if (count > 1) {
        CHECK(isthmus_device_has(chosen, ISTHMUS_FEATURE_UNIFIED_ADDRESSING) == 1);
        CHECK(isthmus_device_feature_origin(chosen, ISTHMUS_FEATURE_UNIFIED_ADDRESSING) == ISTHMUS_ORIGIN_ATTRIBUTE);
        CHECK(isthmus_runtime_driver_version(runtime) >= 12000);
    }
    WORKS(isthmus_runtime_synchronize(runtime, 1000000000, ERR));
}

static void capabilities_are_json(isthmus_runtime* runtime) {
    char* json = NULL;
    WORKS(isthmus_runtime_capabilities_json(runtime, &json, ERR));
    CHECK(json[0] == '{');
    CHECK(json[strlen(json) - 1] == '}');
    CHECK(strstr(json, "\"pageable_access\": {\"state\": ") != NULL);
    CHECK(strstr(json, "\"devices\": [{\"ordinal\": ") != NULL);
    int depth = 0;
    int in_text = 0;
    for (const char* at = json; *at != '\0'; ++at) {
        if (in_text) {
            if (*at == '\\') {
                ++at;
            } else if (*at == '"') {
                in_text = 0;
            }
        } else if (*at == '"') {
            in_text = 1;
        } else if (*at == '{' || *at == '[') {
            ++depth;
        } else if (*at == '}' || *at == ']') {
            --depth;
        }
    }
    CHECK(depth == 0 && in_text == 0);
    free(json);
}

static void errors_tell_what_was_asked(isthmus_runtime* runtime) {
    isthmus_device* const device = isthmus_runtime_default_device(runtime);
    isthmus_stream* stream = isthmus_device_stream(device);
    isthmus_buffer* buffer = shared_buffer(device, 64);
    isthmus_error* error = NULL;
    CHECK(isthmus_stream_copy(stream, buffer, 0, buffer, 1, 8, &error) == ISTHMUS_INVALID_ARGUMENT);
    CHECK(isthmus_error_code(error) == ISTHMUS_INVALID_ARGUMENT);
    CHECK(isthmus_error_message(error)[0] != '\0');
    CHECK(isthmus_error_id(error)[0] != '\0');
    CHECK(strstr(isthmus_error_text(error), isthmus_error_message(error)) != NULL);
    CHECK(isthmus_error_driver_code(error) == 0);
    CHECK(isthmus_error_call(error)[0] == '\0');
    isthmus_error_free(error);
    CHECK(isthmus_stream_copy(stream, buffer, 0, buffer, 1, 8, NULL) == ISTHMUS_INVALID_ARGUMENT);
    isthmus_buffer_free(buffer);
    isthmus_stream_free(stream);
    buffer = NULL;
    /* A success clears the caller's error. */
    isthmus_error* old = (isthmus_error*)(void*)&old;
    CHECK(isthmus_device_synchronize(device, ISTHMUS_WAIT_DEFAULT, &old) == ISTHMUS_OK);
    CHECK(old == NULL);
    /* This interface's own errors have no id. */
    CHECK(isthmus_device_allocate(device, 64, 99, &buffer, &error) == ISTHMUS_INVALID_ARGUMENT);
    CHECK(isthmus_error_id(error)[0] == '\0');
    CHECK(strstr(isthmus_error_message(error), "isthmus_device_allocate: argument `kind` is 99") != NULL);
    CHECK(isthmus_error_remedy(error)[0] != '\0');
    isthmus_error_free(error);
    CHECK(isthmus_error_code(NULL) == ISTHMUS_OK);
    CHECK(isthmus_error_message(NULL)[0] == '\0');
    isthmus_error_free(NULL);
}

/* A profile of a GPU that is not there: ignored, and the log says so. */
static const char foreign_profile[] =
    "{\"schema\": \"isthmus-profile-1\", \"devices\": [{\"uuid\": \"GPU-00000000-0000-0000-0000-00000000c0de\", "
    "\"driver_version\": 13000, \"kernel_release\": \"1\", \"simulated\": true, \"translation\": \"none\", "
    "\"memory\": \"separate\", \"measured_on\": \"2026-11-24\", \"ways\": [{\"kind\": \"device\", "
    "\"locality\": \"anywhere\"}], \"choices\": [{\"device\": \"reads\", \"host\": \"reads\", \"host_often\": false, "
    "\"prefer\": \"throughput\", \"rows\": [[1, 0, 0]]}]}]}";

struct log {
    int lines;
};
static void count_line(void* context, int32_t severity, const char* line) {
    CHECK(severity >= ISTHMUS_SEVERITY_INFO && severity <= ISTHMUS_SEVERITY_ERROR);
    CHECK(line[0] != '\0');
    ++((struct log*)context)->lines;
}

static void the_log_tells_of_an_ignored_profile(void) {
    char path[] = "/tmp/isthmus-c-profile-XXXXXX";
    const int file = mkstemp(path);
    CHECK(file >= 0);
    FILE* const stream = fdopen(file, "w");
    CHECK(stream != NULL && fputs(foreign_profile, stream) >= 0 && fclose(stream) == 0);
    struct log log = {0};
    isthmus_runtime_options options = ISTHMUS_RUNTIME_OPTIONS_INIT;
    options.log = count_line;
    options.log_context = &log;
    options.profile = path;
    isthmus_runtime* runtime = NULL;
    WORKS(isthmus_runtime_open(&options, &runtime, ERR));
    CHECK(log.lines > 0);
    CHECK(isthmus_device_profile_date(isthmus_runtime_default_device(runtime)) == NULL);
    isthmus_runtime_free(runtime);
    CHECK(remove(path) == 0);
}

static void options_are_taken(void) {
    struct log log = {0};
    isthmus_runtime* runtime = NULL;
    isthmus_runtime_options options = ISTHMUS_RUNTIME_OPTIONS_INIT;
    options.use_cuda = 0;
    options.log = count_line;
    options.log_context = &log;
    options.cpu_threads = 2;
    options.cache_bytes = UINT64_MAX;
    options.profile = "none";
    WORKS(isthmus_runtime_open(&options, &runtime, ERR));
    CHECK(isthmus_runtime_device_count(runtime) == 1);
    isthmus_runtime_free(runtime);

    options.launch_mode = 5;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "options.launch_mode", isthmus_runtime_open(&options, &runtime, ERR));
    options.launch_mode = ISTHMUS_MODE_CHECKED;
    options.cpu_threads = 100000;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "1024", isthmus_runtime_open(&options, &runtime, ERR));
    options.cpu_threads = 0;
    options.profile = "/nonexistent/profile.json";
    CHECK(isthmus_runtime_open(&options, &runtime, NULL) != ISTHMUS_OK);
}

int main(void) {
    versions_are_told();
    enumerators_have_names();
    isthmus_runtime* runtime = open_runtime();
    if (isthmus_runtime_device_count(runtime) == 1) CHECK(isthmus_runtime_cuda_absence(runtime) != NULL);
    CHECK(isthmus_runtime_is_simulated(runtime) == (getenv("ISTHMUS_SIM") != NULL));
    devices_answer(runtime);
    capabilities_are_json(runtime);
    errors_tell_what_was_asked(runtime);
    isthmus_runtime_free(runtime);
    options_are_taken();
    the_log_tells_of_an_ignored_profile();
    return 0;
}
