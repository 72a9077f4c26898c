"""The part of TensorFlow's C API that Glowplug calls: result and argument types, from the wheel's `c_api.h`.

Raw pointers stay inside the `runtime` layer.
"""

from __future__ import annotations

import ctypes as c
from typing import Any

Pointer = c.c_void_p


class Output(c.Structure):
    """`TF_Output`: one output of one operation."""

    _fields_ = (("oper", c.c_void_p), ("index", c.c_int))


class Buffer(c.Structure):
    """`TF_Buffer`: bytes owned by the library."""

    _fields_ = (("data", c.c_void_p), ("length", c.c_size_t), ("deallocator", c.c_void_p))


Deallocator = c.CFUNCTYPE(None, c.c_void_p, c.c_size_t, c.c_void_p)

_dims = c.POINTER(c.c_int64)
_outputs = c.POINTER(Output)
_pointers = c.POINTER(c.c_void_p)

# name -> (result, arguments)
PROTOTYPES: dict[str, tuple[Any, list[Any]]] = {
    "TF_NewStatus": (Pointer, []),
    "TF_DeleteStatus": (None, [Pointer]),
    "TF_GetCode": (c.c_int, [Pointer]),
    "TF_Message": (c.c_char_p, [Pointer]),
    "TF_NewBufferFromString": (Pointer, [c.c_char_p, c.c_size_t]),
    "TF_NewBuffer": (Pointer, []),
    "TF_DeleteBuffer": (None, [Pointer]),
    "TF_NewTensor": (Pointer, [c.c_int, _dims, c.c_int, c.c_void_p, c.c_size_t, Deallocator, c.c_void_p]),
    "TF_AllocateTensor": (Pointer, [c.c_int, _dims, c.c_int, c.c_size_t]),
    "TF_DeleteTensor": (None, [Pointer]),
    "TF_TensorType": (c.c_int, [Pointer]),
    "TF_NumDims": (c.c_int, [Pointer]),
    "TF_Dim": (c.c_int64, [Pointer, c.c_int]),
    "TF_TensorByteSize": (c.c_size_t, [Pointer]),
    "TF_TensorData": (c.c_void_p, [Pointer]),
    "TF_StringInit": (None, [c.c_void_p]),
    "TF_StringCopy": (None, [c.c_void_p, c.c_char_p, c.c_size_t]),
    "TF_StringGetDataPointer": (c.c_void_p, [c.c_void_p]),
    "TF_StringGetSize": (c.c_size_t, [c.c_void_p]),
    "TF_StringDealloc": (None, [c.c_void_p]),
    "TF_NewGraph": (Pointer, []),
    "TF_DeleteGraph": (None, [Pointer]),
    "TF_NewImportGraphDefOptions": (Pointer, []),
    "TF_DeleteImportGraphDefOptions": (None, [Pointer]),
    "TF_ImportGraphDefOptionsAddInputMapping": (None, [Pointer, c.c_char_p, c.c_int, Output]),
    "TF_GraphImportGraphDef": (None, [Pointer, Pointer, Pointer, Pointer]),
    "TF_GraphOperationByName": (Pointer, [Pointer, c.c_char_p]),
    "TF_OperationNumOutputs": (c.c_int, [Pointer]),
    "TF_NewSessionOptions": (Pointer, []),
    "TF_SetConfig": (None, [Pointer, c.c_char_p, c.c_size_t, Pointer]),
    "TF_DeleteSessionOptions": (None, [Pointer]),
    "TF_NewSession": (Pointer, [Pointer, Pointer, Pointer]),
    "TF_LoadSessionFromSavedModel": (
        Pointer,
        [Pointer, Pointer, c.c_char_p, c.POINTER(c.c_char_p), c.c_int, Pointer, Pointer, Pointer],
    ),
    "TF_CloseSession": (None, [Pointer, Pointer]),
    "TF_DeleteSession": (None, [Pointer, Pointer]),
    "TF_SessionRun": (
        None,
        [
            Pointer,
            Pointer,
            _outputs,
            _pointers,
            c.c_int,
            _outputs,
            _pointers,
            c.c_int,
            _pointers,
            c.c_int,
            Pointer,
            Pointer,
        ],
    ),
    "TF_LoadLibrary": (Pointer, [c.c_char_p, Pointer]),
    "TF_GetOpList": (Buffer, [Pointer]),
}
