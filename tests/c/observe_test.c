// SPDX-License-Identifier: Apache-2.0
/* Observers and traces: what they are told, what they refuse, and what a trace's file holds. */
#include "check.h"

#include <unistd.h>

struct told {
    int begins, ends, marks, refused;
    int open; /* spans that have begun and not ended */
    int last; /* the span that ended last */
    uint64_t view_bytes;
    isthmus_device* device;
    int barred; /* calls from a callback that were refused */
};

static void begins(void* context, const isthmus_observed* span) {
    struct told* const told = context;
    CHECK(span->size == sizeof(isthmus_observed) && span->name_length > 0 && span->error == NULL);
    ++told->begins;
    ++told->open;
    if (span->what == ISTHMUS_SPAN_HOST_VIEW) told->view_bytes = span->bytes;
    isthmus_buffer* buffer = NULL;
    told->barred +=
        isthmus_device_allocate(told->device, 64, ISTHMUS_KIND_PINNED, &buffer, NULL) == ISTHMUS_NOT_PERMITTED;
}
static void ends(void* context, const isthmus_observed* span) {
    struct told* const told = context;
    ++told->ends;
    --told->open;
    told->last = span->what;
    CHECK((span->code != ISTHMUS_OK) == (span->error_length > 0));
}
static void marks(void* context, const isthmus_observed* mark) {
    struct told* const told = context;
    ++told->marks;
    if (mark->what != ISTHMUS_MARK_REFUSED) return;
    ++told->refused;
    CHECK(mark->code == ISTHMUS_IN_USE && mark->error_length == 4);
}

static isthmus_runtime* open_observed(const isthmus_observer* observer, isthmus_trace* trace) {
    isthmus_runtime_options options = ISTHMUS_RUNTIME_OPTIONS_INIT;
    options.observer = observer;
    options.trace = trace;
    isthmus_runtime* runtime = NULL;
    WORKS(isthmus_runtime_open(&options, &runtime, ERR));
    return runtime;
}

/* Fills a buffer, waits for it in a view, and is refused a second one for writing. */
static void use(isthmus_runtime* runtime) {
    isthmus_device* const device = isthmus_runtime_default_device(runtime);
    isthmus_buffer* buffer = shared_buffer(device, 4096);
    isthmus_stream* const stream = isthmus_device_stream(device);
    WORKS(isthmus_stream_fill(stream, buffer, 0, ISTHMUS_REST, 7, ERR));
    isthmus_stream_free(stream);
    isthmus_host_view *view = NULL, *second = NULL;
    void* data = NULL;
    WORKS(isthmus_buffer_open_on_host(buffer, 0, ISTHMUS_REST, ISTHMUS_READ, ISTHMUS_WAIT_DEFAULT, &view, &data, ERR));
    CHECK(((const unsigned char*)data)[4095] == 7);
    REFUSED(
        ISTHMUS_IN_USE, "",
        isthmus_buffer_open_on_host(buffer, 0, ISTHMUS_REST, ISTHMUS_WRITE, ISTHMUS_WAIT_NEVER, &second, &data, ERR));
    isthmus_host_view_free(view);
    isthmus_buffer_free(buffer);
}

static char* content(const char* file) {
    FILE* const in = fopen(file, "rb");
    CHECK(in != NULL);
    char* const text = calloc(1, 1 << 20);
    CHECK(text != NULL);
    CHECK(fread(text, 1, (1 << 20) - 1, in) > 0);
    fclose(in);
    return text;
}

/* keeps O1, Y1 */
static void an_observer_is_told(void) {
    struct told told = {0};
    isthmus_observer observer = ISTHMUS_OBSERVER_INIT;
    observer.context = &told;
    observer.begin = begins;
    observer.end = ends;
    observer.mark = marks;
    isthmus_runtime* runtime = open_observed(&observer, NULL);
    told.device = isthmus_runtime_default_device(runtime);
    use(runtime);
    isthmus_runtime_free(runtime);
    CHECK(told.begins > 3 && told.begins == told.ends && told.open == 0);
    CHECK(told.barred == told.begins); /* a callback may not call the library */
    CHECK(told.refused == 1 && told.view_bytes == 4096);
    CHECK(told.last == ISTHMUS_SPAN_RELEASE || told.last == ISTHMUS_SPAN_WAIT);
    const isthmus_observer nobody = ISTHMUS_OBSERVER_INIT;
    runtime = open_observed(&nobody, NULL);
    use(runtime);
    isthmus_runtime_free(runtime);

    isthmus_runtime_options options = ISTHMUS_RUNTIME_OPTIONS_INIT;
    isthmus_observer small = observer;
    small.size = 8;
    options.observer = &small;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "options.observer", isthmus_runtime_open(&options, &runtime, ERR));
}

/* keeps O2, Y1 */
static void a_trace_is_written(const char* file) {
    struct told told = {0};
    isthmus_observer observer = ISTHMUS_OBSERVER_INIT;
    observer.context = &told;
    observer.mark = marks;
    isthmus_trace* trace = NULL;
    WORKS(isthmus_trace_open(file, &trace, ERR));
    isthmus_runtime* runtime = open_observed(&observer, trace);
    isthmus_runtime* other = open_observed(NULL, trace); /* several runtimes record into one */
    isthmus_runtime_options options = ISTHMUS_RUNTIME_OPTIONS_INIT;
    options.observer = &observer;
    options.trace = trace;
    isthmus_runtime* refused = NULL;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "options.observer", isthmus_runtime_open(&options, &refused, ERR));
    use(runtime);
    CHECK(told.refused == 1); /* the observer is told, too */
    CHECK(isthmus_trace_dropped(trace) == 0);
    WORKS(isthmus_trace_close(trace, ERR));
    char* text = content(file);
    CHECK(strstr(text, "traceEvents") != NULL && strstr(text, "host_view") != NULL && strstr(text, "refused") != NULL);
    free(text);
    CHECK(unlink(file) == 0);
    use(other); /* not recorded */
    WORKS(isthmus_trace_close(trace, ERR));
    CHECK(access(file, F_OK) != 0);
    isthmus_trace_free(trace);
    use(runtime); /* works on without its trace */
    isthmus_runtime_free(runtime);
    isthmus_runtime_free(other);

    REFUSED(ISTHMUS_SYSTEM_ERROR, "/nonexistent/trace.json: No such file or directory",
            isthmus_trace_open("/nonexistent/trace.json", &trace, ERR));
    WORKS(isthmus_trace_open("/dev/full", &trace, ERR));
    REFUSED(ISTHMUS_SYSTEM_ERROR, "/dev/full", isthmus_trace_close(trace, ERR));
    isthmus_trace_free(trace);
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "name of a file", isthmus_trace_open("", &trace, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "`trace` is NULL", isthmus_trace_open(file, NULL, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "`trace` is NULL", isthmus_trace_close(NULL, ERR));
    isthmus_trace_free(NULL);
    CHECK(isthmus_trace_dropped(NULL) == 0);
}

/* keeps O2: ISTHMUS_TRACE names the file; without it nothing is recorded. */
static void the_environment_names_the_file(const char* file) {
    isthmus_trace* trace = NULL;
    CHECK(unsetenv("ISTHMUS_TRACE") == 0);
    WORKS(isthmus_trace_open(NULL, &trace, ERR));
    isthmus_runtime* runtime = open_observed(NULL, trace);
    use(runtime);
    isthmus_runtime_free(runtime);
    WORKS(isthmus_trace_close(trace, ERR));
    isthmus_trace_free(trace);
    CHECK(setenv("ISTHMUS_TRACE", file, 1) == 0);
    WORKS(isthmus_trace_open(NULL, &trace, ERR));
    runtime = open_observed(NULL, trace);
    use(runtime);
    isthmus_runtime_free(runtime);
    isthmus_trace_free(trace); /* writes it */
    char* text = content(file);
    CHECK(strstr(text, "fill") != NULL);
    free(text);
    CHECK(unlink(file) == 0);
}

/* keeps O3 */
static void counters_are_counted(void) {
    isthmus_runtime* runtime = open_runtime();
    use(runtime);
    char* text = NULL;
    WORKS(isthmus_runtime_counters_text(runtime, &text, ERR));
    CHECK(strstr(text, "# TYPE isthmus_operations_total counter\nisthmus_operations_total ") != NULL);
    CHECK(strstr(text, "\nisthmus_refused_views_total 1\n") != NULL);
    free(text);
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "`runtime` is NULL", isthmus_runtime_counters_text(NULL, &text, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "`text` is NULL", isthmus_runtime_counters_text(runtime, NULL, ERR));
    isthmus_runtime_free(runtime);
}

int main(void) {
    char file[] = "/tmp/isthmus-c-trace-XXXXXX";
    const int made = mkstemp(file);
    CHECK(made >= 0);
    close(made);
    an_observer_is_told();
    a_trace_is_written(file);
    the_environment_names_the_file(file);
    counters_are_counted();
    return 0;
}
