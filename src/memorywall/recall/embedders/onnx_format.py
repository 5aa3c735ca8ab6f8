"""The part of the ONNX file format that is needed to read weights and to write a model.

An ONNX file is one protocol buffers message. Reading and writing its few relevant fields avoids the
onnx package, which is larger than the model.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# Field numbers of the messages of onnx.proto.
_MODEL_IR_VERSION, _MODEL_GRAPH, _MODEL_OPSET = 1, 7, 8
_OPSET_DOMAIN, _OPSET_VERSION = 1, 2
_GRAPH_NODE, _GRAPH_NAME, _GRAPH_TENSOR, _GRAPH_INPUT, _GRAPH_OUTPUT = 1, 2, 5, 11, 12
_NODE_INPUT, _NODE_OUTPUT, _NODE_OPERATION, _NODE_ATTRIBUTE, _NODE_DOMAIN = 1, 2, 4, 5, 7
_ATTRIBUTE_NAME, _ATTRIBUTE_FLOAT, _ATTRIBUTE_INT, _ATTRIBUTE_TYPE = 1, 2, 3, 20
_TENSOR_SHAPE, _TENSOR_TYPE, _TENSOR_NAME, _TENSOR_BYTES = 1, 2, 8, 9
_VALUE_NAME, _VALUE_TYPE = 1, 2
_TYPE_TENSOR, _TYPE_ELEMENT, _TYPE_SHAPE, _SHAPE_SIZE, _SIZE_NAME = 1, 1, 2, 1, 2

_NUMBERED: Final = {1: "<f4", 2: "|u1", 3: "|i1", 7: "<i8"}
_NUMBER_OF: Final = {np.dtype(name): number for number, name in _NUMBERED.items()}
_FLOAT_ATTRIBUTE, _INT_ATTRIBUTE = 1, 2
_VARINT, _LONG, _BYTES, _SHORT = 0, 1, 2, 5

CONTRIBUTED: Final = "com.microsoft"
"""The domain of the fused operations of onnxruntime."""


@dataclass(frozen=True, slots=True)
class OnnxNode:
    """One operation of a graph with the names of its inputs and outputs."""

    operation: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def read_model(file: bytes) -> tuple[list[OnnxNode], dict[str, Array]]:
    """The nodes of a model in order, and its constants (those of the usual types) by name.

    The arrays are views of `file`. Raises ValueError for an invalid file.
    """
    try:
        return _graph(memoryview(file))
    except (TypeError, OverflowError):
        # A field has the wrong type.
        raise ValueError("This is not an ONNX file") from None


def _graph(model: memoryview) -> tuple[list[OnnxNode], dict[str, Array]]:
    nodes: list[OnnxNode] = []
    constants: dict[str, Array] = {}
    for number, graph in _fields(model):
        if number == _MODEL_GRAPH:
            for member, value in _fields(graph):
                if member == _GRAPH_NODE:
                    nodes.append(_node(value))
                elif member == _GRAPH_TENSOR and (tensor := _tensor(value)):
                    constants[tensor[0]] = tensor[1]
    return nodes, constants


def _node(message: memoryview) -> OnnxNode:
    parts: dict[int, list[str]] = {_NODE_INPUT: [], _NODE_OUTPUT: [], _NODE_OPERATION: []}
    for number, value in _fields(message):
        if number in parts:
            parts[number].append(str(value, "utf-8"))
    return OnnxNode(
        operation="".join(parts[_NODE_OPERATION]),
        inputs=tuple(parts[_NODE_INPUT]),
        outputs=tuple(parts[_NODE_OUTPUT]),
    )


def _tensor(message: memoryview) -> tuple[str, Array] | None:
    shape: list[int] = []
    element, name, content = 0, "", None
    for number, value in _fields(message):
        if number == _TENSOR_SHAPE:
            # Sizes are separate fields or, from newer writers, one packed field.
            shape += [value] if isinstance(value, int) else _varints(value)
        elif number == _TENSOR_TYPE:
            element = value
        elif number == _TENSOR_NAME:
            name = str(value, "utf-8")
        elif number == _TENSOR_BYTES:
            content = value
    if content is None or element not in _NUMBERED:
        return None
    return name, np.frombuffer(content, _NUMBERED[element]).reshape(shape)


def _fields(message: memoryview) -> Iterator[tuple[int, Any]]:
    """The number and the value of each field: an int, or the bytes of a string or a message."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        if kind == _BYTES:
            length, at = _varint(message, at)
        elif kind in (_LONG, _SHORT):
            length = 8 if kind == _LONG else 4
        else:
            raise ValueError("This is not an ONNX file")
        if at + length > len(message):
            raise ValueError("The ONNX file is cut off")
        yield key >> 3, message[at : at + length]
        at += length


def _varints(message: memoryview) -> list[int]:
    values, at = [], 0
    while at < len(message):
        value, at = _varint(message, at)
        values.append(value)
    return values


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message) and shift < 70:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("The ONNX file is cut off")


@dataclass(slots=True)
class GraphWriter:
    """Writes a graph operation by operation; each method returns the name of its output."""

    _members: list[bytes] = field(default_factory=list)
    _count: int = 0

    def constant(self, array: Array) -> str:
        """Adds a constant."""
        name = self._name()
        tensor = [_number(_TENSOR_SHAPE, size) for size in array.shape]
        tensor.append(_number(_TENSOR_TYPE, _NUMBER_OF[array.dtype]))
        tensor.append(_text(_TENSOR_NAME, name))
        tensor.append(_bytes(_TENSOR_BYTES, array.tobytes()))
        self._members.append(_bytes(_GRAPH_TENSOR, b"".join(tensor)))
        return name

    def node(
        self, operation: str, *inputs: str, domain: str = "", **attributes: int | float
    ) -> str:
        """Adds an operation with one output; "" stands for an omitted input."""
        return self.nodes(1, operation, *inputs, domain=domain, **attributes)[0]

    def nodes(
        self,
        outputs: int,
        operation: str,
        *inputs: str,
        domain: str = "",
        **attributes: int | float,
    ) -> list[str]:
        """Adds an operation with several outputs."""
        names = [self._name() for _ in range(outputs)]
        message = [_text(_NODE_INPUT, name) for name in inputs]
        message += [_text(_NODE_OUTPUT, name) for name in names]
        message.append(_text(_NODE_OPERATION, operation))
        message += [_bytes(_NODE_ATTRIBUTE, _attribute(*one)) for one in attributes.items()]
        message.append(_text(_NODE_DOMAIN, domain))
        self._members.append(_bytes(_GRAPH_NODE, b"".join(message)))
        return names

    def model(
        self,
        inputs: dict[str, tuple[type[np.generic], tuple[int | str, ...]]],
        output: str,
        shape: tuple[int | str, ...],
    ) -> bytes:
        """The bytes of the model: `inputs` by name with their types and shapes, and one float
        output."""
        self._members.append(_text(_GRAPH_NAME, "graph"))
        for name, (element, sizes) in inputs.items():
            self._members.append(_bytes(_GRAPH_INPUT, _value(name, element, sizes)))
        self._members.append(_bytes(_GRAPH_OUTPUT, _value(output, np.float32, shape)))
        opsets = [("", 18), (CONTRIBUTED, 1)]
        return b"".join(
            [
                _number(_MODEL_IR_VERSION, 8),
                _bytes(_MODEL_GRAPH, b"".join(self._members)),
                *(
                    _bytes(
                        _MODEL_OPSET, _text(_OPSET_DOMAIN, domain) + _number(_OPSET_VERSION, one)
                    )
                    for domain, one in opsets
                ),
            ]
        )

    def _name(self) -> str:
        self._count += 1
        return f"value_{self._count}"


def _attribute(name: str, value: int | float) -> bytes:
    if isinstance(value, int):
        typed = _number(_ATTRIBUTE_INT, value) + _number(_ATTRIBUTE_TYPE, _INT_ATTRIBUTE)
    else:
        single = _key(_ATTRIBUTE_FLOAT, _SHORT) + struct.pack("<f", value)
        typed = single + _number(_ATTRIBUTE_TYPE, _FLOAT_ATTRIBUTE)
    return _text(_ATTRIBUTE_NAME, name) + typed


def _value(name: str, element: type[np.generic], shape: tuple[int | str, ...]) -> bytes:
    sizes = b"".join(
        _bytes(
            _SHAPE_SIZE,
            _number(_SHAPE_SIZE, size) if isinstance(size, int) else _text(_SIZE_NAME, size),
        )
        for size in shape
    )
    tensor = _number(_TYPE_ELEMENT, _NUMBER_OF[np.dtype(element)]) + _bytes(_TYPE_SHAPE, sizes)
    return _text(_VALUE_NAME, name) + _bytes(_VALUE_TYPE, _bytes(_TYPE_TENSOR, tensor))


def _text(number: int, value: str) -> bytes:
    return _bytes(number, value.encode())


def _bytes(number: int, value: bytes) -> bytes:
    return _key(number, _BYTES) + _encoded(len(value)) + value


def _number(number: int, value: int) -> bytes:
    return _key(number, _VARINT) + _encoded(value)


def _key(number: int, kind: int) -> bytes:
    return _encoded(number << 3 | kind)


def _encoded(value: int) -> bytes:
    # Negative numbers are written as 64-bit two's complement.
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
