# SPDX-License-Identifier: Apache-2.0
"""The structures of isthmus.h and of DLPack, and how the functions of isthmus.h are declared."""
from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any

from .errors import InvalidArgument

READ, WRITE = 1, 2
WAIT_DEFAULT = -1
REST = 2**64 - 1


class RuntimeOptions(ctypes.Structure):
    _fields_ = [('size', c_size_t), ('use_cuda', c_int32), ('launch_mode', c_int32), ('cuda_library', c_char_p),
                ('wait_timeout_ns', c_uint64), ('log', c_void_p), ('log_context', c_void_p), ('profile', c_char_p),
                ('cache_bytes', c_uint64), ('cpu_threads', c_uint32), ('wait_policy', c_int32),
                ('order_check', c_int32), ('oversubscribe_managed', c_int32), ('observer', c_void_p),
                ('trace', c_void_p)]


class SharedUse(ctypes.Structure):
    _fields_ = [('size', c_size_t), ('host', c_int32), ('device', c_int32), ('prefer', c_int32), ('kind', c_int32),
                ('alignment_bytes', c_uint64), ('device_passes', c_int32), ('reserved_number', c_int32),
                ('reserved', c_uint64 * 3)]


class ExportableOptions(ctypes.Structure):
    _fields_ = [('size', c_size_t), ('seen_by', c_int32), ('reserved', c_uint32)]


class NativeUse(ctypes.Structure):
    _fields_ = [('buffer', c_void_p), ('flags', c_uint32), ('reserved', c_uint32), ('pointer', c_void_p)]


class Argument(ctypes.Structure):
    _fields_ = [('buffer', c_void_p), ('value', c_void_p), ('value_bytes', c_size_t)]


class Parameter(ctypes.Structure):
    _fields_ = [('flags', c_uint32), ('bytes', c_uint32), ('alignment', c_uint32), ('reserved', c_uint32)]


class LaunchShape(ctypes.Structure):
    _fields_ = [('size', c_size_t), ('grid', c_uint64 * 3), ('block', c_uint64 * 3), ('cluster', c_uint64 * 3),
                ('shared_bytes', c_uint64)]


class StandIn(ctypes.Structure):
    _fields_ = [('entry', c_char_p), ('parameters', c_void_p), ('parameter_count', c_size_t), ('run', c_void_p),
                ('context', c_void_p)]


class ModuleOptions(ctypes.Structure):
    _fields_ = [('size', c_size_t), ('cache_folder', c_char_p), ('stand_ins', c_void_p), ('stand_in_count', c_size_t)]


class SharedRingOptions(ctypes.Structure):
    _fields_ = [('size', c_size_t), ('slots', c_uint32), ('policy', c_uint32), ('rights', c_uint32),
                ('most_readers', c_uint32), ('reader_deadline_ns', c_uint64), ('use', SharedUse),
                ('element_bytes', c_uint32), ('waiting', c_uint32)]


class DLTensor(ctypes.Structure):
    _fields_ = [('data', c_void_p), ('device_type', c_int32), ('device_id', c_int32), ('ndim', c_int32),
                ('code', c_uint8), ('bits', c_uint8), ('lanes', c_uint16), ('shape', POINTER(c_int64)),
                ('strides', POINTER(c_int64)), ('byte_offset', c_uint64)]


class DLManagedTensor(ctypes.Structure):
    _fields_ = [('tensor', DLTensor), ('context', c_void_p), ('deleter', c_void_p)]


class DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = [('major', c_uint32), ('minor', c_uint32), ('context', c_void_p), ('deleter', c_void_p),
                ('flags', c_uint64), ('tensor', DLTensor)]


def sized(structure: type[Any], **fields: object) -> Any:
    """A structure whose first field is its own size, as those of isthmus.h that may grow."""
    made = structure(**fields)
    for name, given in fields.items():
        if isinstance(given, int) and (getattr(made, name) or 0) != given:   # C has it modulo 2**32 or 2**64
            raise InvalidArgument(f'{name} of {given}', 'a number that is not negative, and not so large')
    made.size = ctypes.sizeof(structure)
    return made


P, PP, TEXT = c_void_p, POINTER(c_void_p), c_char_p

# name: (result, arguments without the error). A result of None is an isthmus_code; the error comes last.
FALLIBLE: dict[str, list[object]] = {
    'runtime_open': [POINTER(RuntimeOptions), PP],
    'runtime_counters_text': [P, PP],
    'runtime_capabilities_json': [P, PP],
    'runtime_synchronize': [P, c_int64],
    'trace_open': [TEXT, PP],
    'trace_close': [P],
    'device_wrap_stream': [P, P, PP],
    'device_create_stream': [P, c_int32, PP],
    'device_synchronize': [P, c_int64],
    'device_allocate_shared': [P, c_uint64, POINTER(SharedUse), PP],
    'device_allocate': [P, c_uint64, c_int32, PP],
    'device_allocate_exportable': [P, c_uint64, POINTER(ExportableOptions), PP],
    'buffer_export_dma_buf': [P, POINTER(c_int)],
    'buffer_open_on_host': [P, c_uint64, c_uint64, c_uint32, c_int64, PP, PP],
    'stream_open_native_scope': [P, TEXT, POINTER(NativeUse), c_size_t, PP],
    'native_scope_close': [P, c_int32],
    'stream_native_handle': [P, PP],
    'stream_record': [P, PP],
    'stream_wait': [P, P],
    'stream_wait_stream': [P, P],
    'stream_wait_native': [P, P],
    'stream_finished': [P, POINTER(c_int32)],
    'stream_synchronize': [P, c_int64],
    'stream_copy': [P, P, c_uint64, P, c_uint64, c_uint64],
    'stream_fill_elements': [P, P, c_uint64, c_uint64, c_char_p, c_uint64],
    'event_finished': [P, POINTER(c_int32)],
    'event_synchronize': [P, c_int64],
    'event_native_handle': [P, PP],
    'stream_launch': [P, P, POINTER(c_uint64), POINTER(Argument), c_size_t],
    'device_load_module': [P, P, c_size_t, POINTER(ModuleOptions), PP],
    'device_load_module_file': [P, TEXT, POINTER(ModuleOptions), PP],
    'module_find': [P, TEXT, POINTER(Parameter), c_size_t, PP],
    'stream_launch_module': [P, P, POINTER(LaunchShape), POINTER(Argument), c_size_t],
    'shared_ring_create': [P, c_uint64, POINTER(SharedRingOptions), PP],
    'shared_ring_admit': [P, PP],
    'shared_ring_begin': [P, c_int64, PP],
    'frame_publish': [P, c_int64],
    'frame_finish': [P, c_int64],
    'shared_reader_open': [P, P, c_size_t, POINTER(c_int32), c_size_t, PP],
    'shared_reader_next': [P, c_int64, PP],
    'listener_create': [TEXT, PP],
    'listener_accept': [P, c_int64, PP],
    'channel_connect': [TEXT, PP],
    'channel_send': [P, c_uint32, P, c_size_t, POINTER(c_int32), c_size_t],
    'channel_receive': [P, c_int64, PP],
    'device_adopt_dlpack': [P, P, P, PP],
}
PLAIN: dict[str, tuple[object, list[object]]] = {
    'version_text': (TEXT, []),
    'c_version': (c_uint32, []),
    'error_code': (c_int32, [P]),
    'error_driver_code': (c_int32, [P]),
    'error_message': (TEXT, [P]),
    'error_remedy': (TEXT, [P]),
    'error_id': (TEXT, [P]),
    'error_text': (TEXT, [P]),
    'error_free': (None, [P]),
    'kind_name': (TEXT, [c_int32]),
    'path_name': (TEXT, [c_int32]),
    'model_name': (TEXT, [c_int32]),
    'feature_count': (c_int32, []),
    'feature_name': (TEXT, [c_int32]),
    'state_name': (TEXT, [c_int32]),
    'origin_name': (TEXT, [c_int32]),
    'runtime_free': (None, [P]),
    'trace_free': (None, [P]),
    'runtime_device_count': (c_size_t, [P]),
    'runtime_device': (P, [P, c_size_t]),
    'runtime_default_device': (P, [P]),
    'runtime_cpu': (P, [P]),
    'runtime_cuda_absence': (TEXT, [P]),
    'runtime_driver_version': (c_int32, [P]),
    'runtime_is_simulated': (c_int32, [P]),
    'device_name': (TEXT, [P]),
    'device_is_cpu': (c_int32, [P]),
    'device_ordinal': (c_int32, [P]),
    'device_index': (c_size_t, [P]),
    'device_model': (c_int32, [P]),
    'device_why': (TEXT, [P, c_int32]),
    'device_feature_state': (c_int32, [P, c_int32]),
    'device_feature_origin': (c_int32, [P, c_int32]),
    'device_stream': (P, [P]),
    'device_can_access': (c_int32, [P, P, POINTER(c_char_p)]),
    'buffer_ref': (P, [P]),
    'buffer_free': (None, [P]),
    'buffer_bytes': (c_uint64, [P]),
    'buffer_kind': (c_int32, [P]),
    'buffer_path': (c_int32, [P]),
    'buffer_explain': (TEXT, [P]),
    'buffer_staged_bytes': (c_uint64, [P]),
    'buffer_device': (P, [P]),
    'host_view_free': (None, [P]),
    'native_scope_stream': (P, [P]),
    'stream_free': (None, [P]),
    'stream_device': (P, [P]),
    'stream_id': (c_uint64, [P]),
    'event_free': (None, [P]),
    'kernel_by_name': (P, [TEXT]),
    'kernel_count': (c_size_t, []),
    'kernel_name': (TEXT, [c_size_t]),
    'kernel_parameters': (TEXT, [P]),
    'kernel_rank': (c_int32, [P]),
    'module_free': (None, [P]),
    'module_entry_count': (c_size_t, [P]),
    'module_entry': (TEXT, [P, c_size_t]),
    'module_kernel_free': (None, [P]),
    'shared_ring_published': (c_uint64, [P]),
    'shared_ring_close': (None, [P]),
    'shared_ring_free': (None, [P]),
    'frame_buffer': (P, [P]),
    'frame_number': (c_uint64, [P]),
    'frame_missed': (c_uint64, [P]),
    'frame_free': (None, [P]),
    'shared_reader_frame_bytes': (c_uint64, [P]),
    'shared_reader_free': (None, [P]),
    'descriptor_bytes': (P, [P, POINTER(c_size_t)]),
    'descriptor_fds': (POINTER(c_int32), [P, POINTER(c_size_t)]),
    'descriptor_free': (None, [P]),
    'listener_free': (None, [P]),
    'channel_free': (None, [P]),
    'message_kind': (c_uint32, [P]),
    'message_bytes': (P, [P, POINTER(c_size_t)]),
    'message_fds': (POINTER(c_int32), [P, POINTER(c_size_t)]),
    'message_take_fds': (None, [P]),
    'message_free': (None, [P]),
}
