"""Arrays to tensors and back: every dtype, shapes, strings, and who owns the memory."""

from __future__ import annotations

import gc
import mmap
import subprocess
import sys

import numpy as np
import pytest

from glowplug.core.dtypes import BY_NAME
from glowplug.core.errors import ClosedError
from glowplug.runtime.library import open_library
from glowplug.runtime.tensor import MappedMemory, Tensor, numpy_dtype, take_array

pytestmark = [pytest.mark.tensorflow, pytest.mark.core]


def round_trip(array: np.ndarray, dtype: str) -> np.ndarray:
    tensor = Tensor.from_array(array, dtype)
    pointer, tensor._pointer = tensor.pointer, None  # the array takes over
    return take_array(open_library(), pointer, None)


@pytest.mark.parametrize("name", sorted(set(BY_NAME) - {"string"}))
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 4)])
def test_every_dtype_and_shape(name: str, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(numpy_dtype(name))
    back = round_trip(array, name)
    assert back.dtype == array.dtype
    assert back.shape == shape
    assert np.array_equal(back, array)


@pytest.mark.parametrize("rows", [4, 4000])  # small ones are copied, large ones are read in place
def test_layouts_other_than_contiguous(rows: int) -> None:
    array = np.arange(rows * 6, dtype=np.float32).reshape(rows, 6)
    for view in (array, array.T, array[::2, 1::2], array[::-1], np.broadcast_to(array[:, :1], (rows, 9))):
        back = round_trip(view, "float32")
        assert np.array_equal(back, view)
        back += 1  # an answer is the caller's own
        assert np.array_equal(back, view + 1)


@pytest.mark.parametrize("items", [[], [b""], [b"short", b"x" * 22, b"y" * 23, b"z" * 100_000], ["käse", b"\x00a\x00"]])
def test_strings(items: list[str | bytes]) -> None:
    array = np.empty(len(items), object)
    array[:] = items
    expected = [item.encode() if isinstance(item, str) else item for item in items]
    assert round_trip(array, "string").tolist() == expected
    assert round_trip(array.reshape(len(items), 1), "string").shape == (len(items), 1)


def test_changing_the_input_later_does_not_show() -> None:
    array = np.ones(1000, np.float32)
    tensor = Tensor.from_array(array, "float32")
    array[:] = 5
    pointer, tensor._pointer = tensor.pointer, None
    assert (take_array(open_library(), pointer, None) == 1).all()


def test_mapped_memory_is_not_copied_and_is_given_back() -> None:
    size = 1 << 16
    with mmap.mmap(-1, size) as area:
        base = np.frombuffer(area, np.uint8)
        memory = MappedMemory(base.ctypes.data, size, area)
        tensors = [memory.tensor(offset, 256, "float32", (64,)) for offset in (0, 64, 4096, size - 256)]
        assert [tensor.address - memory.address for tensor in tensors] == [0, 64, 4096, size - 256]
        assert (memory.lent, memory.released) == (4, 0)
        for tensor in tensors:
            tensor.close()
            tensor.close()
        assert memory.released == 4
        crooked = memory.tensor(4, 256, "float32", (64,))  # below 64-byte alignment TensorFlow copies
        assert crooked.address != memory.address + 4
        assert memory.released == 5
        crooked.close()
        del base, memory
        gc.collect()


def test_output_inside_borrowed_memory_is_copied() -> None:
    area = np.zeros(1024, np.uint8)
    start = -area.ctypes.data % 64
    memory = MappedMemory(area.ctypes.data + start, 512, area)
    tensor = memory.tensor(0, 64, "float32", (16,))
    pointer, tensor._pointer = tensor.pointer, None
    array = take_array(open_library(), pointer, memory)
    assert not memory.holds(array.ctypes.data)
    array[0] = 1.0
    assert not area.any()


def test_closed_tensor() -> None:
    tensor = Tensor.from_array(np.ones(2, np.float32), "float32")
    tensor.close()
    with pytest.raises(ClosedError):
        _ = tensor.pointer


def test_memory_does_not_grow(bundle) -> None:  # type: ignore[no-untyped-def]
    """Ten thousand calls with arrays and ten thousand with strings leave the process as large as it was."""
    code = """
import gc, sys, numpy as np, glowplug
def resident():
    gc.collect()
    return int(open('/proc/self/statm').read().split()[1]) * 4
model = glowplug.load(sys.argv[1])
big = np.array(['x' * 5000] * 8, object)
x = {'i': np.ones(8, np.int64), 'b': np.ones(8, bool), 'u': np.ones(8, np.uint8)}
x |= {'c': np.ones(8, np.complex64), 's': big}
for _ in range(500): model(x)
before = resident()
for _ in range(3000): model(x)
print(resident() - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(bundle("types"))], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 4096  # kB; without freeing, 3,000 calls would keep 240 MB
