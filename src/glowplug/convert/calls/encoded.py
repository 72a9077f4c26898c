"""Strings that a model decodes: images, sound, lines of CSV, tensors and numbers, small and valid."""

from __future__ import annotations

import base64
import io
import wave
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from tensorflow.python.framework import tensor_util

from glowplug.convert.graph.editor import GraphEditor, attribute
from glowplug.core.dtypes import BY_CODE, numpy_dtype

from .examples import example_makers
from .samples import Strings, words

_FLOAT, _DOUBLE, _STRING = 1, 2, 7
_SAMPLES_A_SIZE = 100
_Encode = Callable[[np.random.Generator, int], bytes]


def string_makers(graph: GraphEditor) -> tuple[Strings, ...]:
    """Return makers of strings for the decoding operations of a graph and its functions, then of arbitrary texts."""
    functions = [graph.library[name] for name in sorted(graph.reached_functions())]
    scopes = [graph.nodes, *({node.name: node for node in function.node_def} for function in functions)]
    nodes = [node for scope in scopes for node in scope.values()]
    decoders = {f"{node.op} {sorted(node.attr.items(), key=str)}": node for node in nodes}  # alike ones once
    encoders = [encode for node in decoders.values() for encode in _encoders(node)]
    made = (*example_makers(scopes), *(_each(encode) for encode in encoders), words)
    if any(node.op == "DecodeBase64" for node in nodes):
        made = (*(_in_base64(maker) for maker in made), *made)
    return made


def _each(encode: _Encode) -> Strings:
    def make(random: np.random.Generator, count: int, size: int) -> list[bytes]:
        return [encode(random, size) for _ in range(count)]

    return make


def _in_base64(maker: Strings) -> Strings:
    def make(random: np.random.Generator, count: int, size: int) -> list[bytes]:
        return [base64.urlsafe_b64encode(item).rstrip(b"=") for item in maker(random, count, size)]

    return make


def _encoders(node: Any) -> Iterator[_Encode]:
    if node.op in _IMAGES:
        yield from _IMAGES[node.op]
    elif node.op == "DecodeWav":
        yield _sound
    elif node.op == "StringToNumber":
        yield _number
    elif node.op == "DecodeCSV":
        yield _line(list(attribute(node, "OUT_TYPE").list.type), attribute(node, "field_delim").s or b",")
    elif node.op in ("DecodeRaw", "DecodePaddedRaw"):
        yield _raw(attribute(node, "out_type").type)
    elif node.op == "ParseTensor":
        yield from (_tensor(attribute(node, "out_type").type, shape) for shape in _TENSOR_SHAPES)


def _image(encoder: str) -> _Encode:
    def encode(random: np.random.Generator, size: int) -> bytes:
        import tensorflow as tf

        pixels = random.integers(0, 256, (size, size, 3)).astype(np.uint8)
        data: bytes = getattr(tf.io, encoder)(pixels).numpy()
        return data

    return encode


def _bitmap(random: np.random.Generator, size: int) -> bytes:
    """A BMP file of 24 bits a pixel; rows are padded to four bytes."""
    row = (3 * size + 3) // 4 * 4
    pixels = random.integers(0, 256, row * size).astype(np.uint8).tobytes()
    numbers = ((54 + len(pixels), 4), (0, 4), (54, 4), (40, 4), (size, 4), (size, 4), (1, 2), (24, 2))
    head = b"BM" + b"".join(value.to_bytes(width, "little") for value, width in numbers)
    return head.ljust(54, b"\0") + pixels


_JPEG, _PNG = _image("encode_jpeg"), _image("encode_png")
_IMAGES: dict[str, tuple[_Encode, ...]] = {
    "DecodeJpeg": (_JPEG,),
    "DecodeAndCropJpeg": (_JPEG,),
    "ExtractJpegShape": (_JPEG,),
    "DecodePng": (_PNG,),
    "DecodeImage": (_PNG, _JPEG),
    "DecodeBmp": (_bitmap,),
}


def _sound(random: np.random.Generator, size: int) -> bytes:
    data = io.BytesIO()
    with wave.open(data, "wb") as stream:
        stream.setnchannels(1)
        stream.setsampwidth(2)
        stream.setframerate(16_000)
        stream.writeframes(random.integers(-999, 999, size * _SAMPLES_A_SIZE).astype("<i2").tobytes())
    return data.getvalue()


def _number(random: np.random.Generator, size: int) -> bytes:
    return b"%d" % random.integers(0, 100)


def _line(types: list[int], delimiter: bytes) -> _Encode:
    def encode(random: np.random.Generator, size: int) -> bytes:
        fields = {_FLOAT: b"%.3f" % random.standard_normal(), _DOUBLE: b"%.3f" % random.standard_normal()}
        return delimiter.join(fields.get(kind, b"text" if kind == _STRING else b"1") for kind in types)

    return encode


_TENSOR_SHAPES: tuple[Callable[[int], tuple[int, ...]], ...] = (
    lambda size: (size,),
    lambda size: (),
    lambda size: (2, size),
    lambda size: (size, size, 3),
    lambda size: (1, size, size, 3),
)


def _values(code: int, shape: tuple[int, ...], random: np.random.Generator) -> Any:
    name = BY_CODE[code].name
    if name == "string":
        return np.full(shape, b"text", object)
    if name.startswith(("float", "bfloat", "complex")):
        return random.standard_normal(shape).astype(numpy_dtype(name))
    return random.integers(0, 2, shape).astype(numpy_dtype(name))


def _raw(code: int) -> _Encode:
    def encode(random: np.random.Generator, size: int) -> bytes:
        data: bytes = _values(code, (size,), random).tobytes()
        return data

    return encode


def _tensor(code: int, shape: Callable[[int], tuple[int, ...]]) -> _Encode:
    def encode(random: np.random.Generator, size: int) -> bytes:
        proto = tensor_util.make_tensor_proto(_values(code, shape(size), random))
        data: bytes = proto.SerializeToString(deterministic=True)
        return data

    return encode
