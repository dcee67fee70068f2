# SPDX-License-Identifier: Apache-2.0
"""Opens the libraries beside this package, and turns their errors into exceptions.

ctypes lets go of the interpreter's lock in every call of libisthmus-c, so that other threads run while one waits.
"""
from __future__ import annotations

import atexit
import ctypes
import os
import pathlib
import sys
import time
from ctypes import POINTER, byref, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

from . import _structures as structures
from .errors import Error, class_of

# The wheel has them in lib/; a build tree or a system's library is named by this variable.
FOLDER = pathlib.Path(os.environ.get('ISTHMUS_PYTHON_LIBRARIES') or pathlib.Path(__file__).parent / 'lib')
C_VERSION = 1   # ISTHMUS_C_VERSION that this package needs


def _open(name: str) -> ctypes.CDLL:
    path = FOLDER / name
    try:
        return ctypes.CDLL(str(path))
    except OSError as problem:
        raise ImportError(f'isthmus: {path} was not opened: {problem}. Install the wheel for this machine '
                          '(pip install isthmus), or name a folder with the libraries in ISTHMUS_PYTHON_LIBRARIES'
                          ) from None


def _refuse_subinterpreters() -> None:
    """What is released goes to whichever interpreter comes next, and the libraries are the process's."""
    id_of, current = ctypes.pythonapi.PyInterpreterState_GetID, ctypes.pythonapi.PyInterpreterState_Get
    id_of.restype, id_of.argtypes, current.restype = c_int64, [c_void_p], c_void_p
    if id_of(current()) != 0:
        raise ImportError('isthmus: a subinterpreter cannot use it. Try: the main interpreter, or another process')


def _declared() -> ctypes.CDLL:
    # First, so that the next one finds it by its SONAME, wherever it was built.
    _open('libisthmus.so.0')
    library = _open('libisthmus-c.so.1')
    try:
        for name, arguments in structures.FALLIBLE.items():
            function = getattr(library, 'isthmus_' + name)
            function.restype, function.argtypes = c_int32, [*arguments, POINTER(c_void_p)]
        for name, (result, arguments) in structures.PLAIN.items():
            function = getattr(library, 'isthmus_' + name)
            function.restype, function.argtypes = result, arguments
    except AttributeError as missing:
        raise ImportError(f'isthmus: the libraries in {FOLDER} are older than this package: {missing}') from None
    have = library.isthmus_c_version()
    if have < C_VERSION:
        raise ImportError(f'isthmus: libisthmus-c.so.1 has version {have} of its interface; this package needs {C_VERSION}')
    return library


class _Interpreter(ctypes.Structure):
    _fields_ = [(name, c_void_p) for name in ('capsule_is_valid', 'capsule_get_pointer', 'inc_ref', 'dec_ref',
                                              'add_pending_call', 'get_attribute', 'get_buffer', 'type_from_spec',
                                              'release_buffer', 'allocate', 'free', 'state_of_this_thread',
                                              'current_state', 'save_thread', 'restore_thread')]


class _Functions(ctypes.Structure):
    _fields_ = [(name, c_void_p) for name in ('open_on_host', 'free_view', 'close_scope')]


class Opened(ctypes.Structure):
    """A view that isthmus_python_open_view() opened."""
    _fields_ = [('share', c_void_p), ('data', c_void_p), ('error', c_void_p)]


def _started(library: ctypes.CDLL, folder: pathlib.Path) -> tuple[ctypes.CDLL, ctypes.PyDLL]:
    """The helper library twice: functions that let go of the interpreter's lock, and functions that need it."""
    free = _open('libisthmus-python.so')
    locked = ctypes.PyDLL(str(folder / 'libisthmus-python.so'))
    names = ('PyCapsule_IsValid', 'PyCapsule_GetPointer', 'Py_IncRef', 'Py_DecRef', 'Py_AddPendingCall',
             'PyObject_GetAttrString', 'PyObject_GetBuffer', 'PyType_FromSpec', 'PyBuffer_Release', 'PyType_GenericAlloc',
             'PyObject_Free', 'PyGILState_GetThisThreadState',
             'PyThreadState_GetUnchecked' if sys.version_info >= (3, 13) else '_PyThreadState_UncheckedGet',
             'PyEval_SaveThread', 'PyEval_RestoreThread')
    calls = _Interpreter(*(ctypes.cast(getattr(ctypes.pythonapi, name), c_void_p) for name in names))
    functions = _Functions(*(ctypes.cast(getattr(library, name), c_void_p) for name in (
        'isthmus_buffer_open_on_host', 'isthmus_host_view_free', 'isthmus_native_scope_close')))
    locked.isthmus_python_start(byref(calls), byref(functions))
    for name, result, arguments in (
            ('share_new', c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p]),
            ('share_references', c_uint32, [c_void_p]),
            ('share_take', c_void_p, [c_void_p]),
            ('share_place', c_void_p, [c_void_p]),
            ('export', c_void_p, [POINTER(structures.DLTensor), c_int32, c_uint64, c_void_p]),
            ('capsule_name', c_void_p, [c_int32, c_int32]),
            ('copy', c_void_p, [c_void_p, c_size_t, POINTER(c_void_p)]),
            ('buffer_source', ctypes.py_object, []),
            ('adopted', c_void_p, [ctypes.py_object, c_void_p, c_void_p, POINTER(structures.DLTensor), c_uint64]),
            ('not_adopted', None, [c_void_p]),
            ('drop_released', None, []),
            ('interpreter_ends', None, []),
            ('inside', c_int32, []),
            ('forked', None, [])):
        function = getattr(locked, 'isthmus_python_' + name)
        function.restype, function.argtypes = result, arguments
    free.isthmus_python_share_unref.restype = None
    free.isthmus_python_share_unref.argtypes = [c_void_p]
    free.isthmus_python_open_view.restype = c_int32
    free.isthmus_python_open_view.argtypes = [c_void_p, c_uint64, c_uint64, c_uint32, c_int64, c_void_p, POINTER(Opened)]
    free.isthmus_python_end_frame.restype = c_int32
    free.isthmus_python_end_frame.argtypes = [c_void_p, c_void_p, c_void_p, c_int64, POINTER(c_void_p)]
    free.isthmus_python_end_view.restype = c_uint32
    free.isthmus_python_end_view.argtypes = [c_void_p]
    return free, locked


_refuse_subinterpreters()
c = _declared()
glue, glue_locked = _started(c, FOLDER)


def _end(most: float = 60) -> None:
    """At exit: the threads of the library call Python no more. Waits for the stand-ins that run."""
    glue_locked.isthmus_python_interpreter_ends()
    until = time.monotonic() + most
    while glue_locked.isthmus_python_inside() > 0 and time.monotonic() < until:
        time.sleep(0.001)


atexit.register(_end)
os.register_at_fork(after_in_child=glue_locked.isthmus_python_forked)


def address(function: Any) -> int:
    """The address of a C function, for C to call."""
    return ctypes.cast(function, c_void_p).value or 0


def text(value: bytes | None) -> str:
    return (value or b'').decode('utf-8', 'replace')


def raised(error: Any, code: int) -> Error:
    """The exception for an error of the library, which is freed."""
    if not error:
        return class_of(code)('the call failed', code=code)
    try:
        return class_of(code)(text(c.isthmus_error_message(error)), text(c.isthmus_error_remedy(error)), code=code,
                              id=text(c.isthmus_error_id(error)), driver_code=c.isthmus_error_driver_code(error),
                              text=text(c.isthmus_error_text(error)))
    finally:
        c.isthmus_error_free(error)


def call(function: Any, *arguments: Any) -> None:
    """Calls a fallible function; raises what it answers."""
    error = c_void_p()
    code = function(*arguments, byref(error))
    if code:
        raise raised(error, code)


def make(function: Any, *arguments: Any) -> int:
    """Calls a fallible function whose last result is a pointer, and returns it; _handles.owned() is for handles to free."""
    made = c_void_p()
    call(function, *arguments, byref(made))
    return made.value or 0


_free = ctypes.CDLL(None).free
_free.argtypes, _free.restype = [c_void_p], None


def text_of(function: Any, *arguments: Any) -> str:
    """Calls a fallible function whose last result is a text that the caller frees."""
    made = make(function, *arguments)
    try:
        return ctypes.string_at(made).decode('utf-8', 'replace')
    finally:
        _free(made)


def drop_released() -> None:
    """Drops adopted objects whose memory the library has released. Cheap where there are none."""
    glue_locked.isthmus_python_drop_released()
