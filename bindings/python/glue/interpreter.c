/* SPDX-License-Identifier: Apache-2.0
 * Keeps the functions that the package hands over. They are set once, under the interpreter's lock, before any use. */
#include "interpreter.h"

isthmus_python_interpreter isthmus_python_calls;
isthmus_python_library isthmus_python_functions;

void isthmus_python_start(const isthmus_python_interpreter* interpreter, const isthmus_python_library* library) {
    isthmus_python_calls = *interpreter;
    isthmus_python_functions = *library;
}
