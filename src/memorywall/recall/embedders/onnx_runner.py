"""Runs a sentence model in onnxruntime, one text at a time.

Batches gain nothing on one core, and padding costs time. Eight-bit arithmetic shares one scale over
a batch, so a vector would depend on the other texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime  # type: ignore[import-untyped]
from tokenizers import Tokenizer

from memorywall.recall.embedders.conversion import Rows, prepare_texts, unit_rows
from memorywall.recall.embedders.onnx_format import CONTRIBUTED, GraphWriter
from memorywall.recall.stored_vectors import FORM
from memorywall.records.errors import ConfigurationError, UnavailableError

_CHARACTERS_PER_TOKEN = 32
_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}


class OnnxEmbedder:
    """A model from token ids to token vectors, which are averaged, or to one vector.

    name: the start of the model id
    """

    is_local = True

    def __init__(
        self,
        model: bytes | Path,
        tokenizer: bytes,
        *,
        name: str,
        maximum_tokens: int | None = None,
        threads: int = 1,
    ) -> None:
        self._session = open_session(model, threads)
        self._inputs = {one.name for one in self._session.get_inputs()}
        if not self._inputs <= _INPUTS or "input_ids" not in self._inputs:
            raise ConfigurationError(
                f"The model must take input_ids and may take {_phrase(_INPUTS - {'input_ids'})}; "
                f"it takes {_phrase(self._inputs)}"
            )
        self._tokenizer, maximum = _open_tokenizer(tokenizer, maximum_tokens)
        self._longest = maximum * _CHARACTERS_PER_TOKEN
        # The special tokens of an otherwise empty text have no meaning.
        self._empty = len(self._tokenizer.encode("").ids)
        # The file may not declare the number of dimensions, so one vector is computed.
        try:
            self.dimensions = len(self._pooled(self._tokenizer.encode("a").ids))
        except UnavailableError as failure:
            raise ConfigurationError(failure.detail) from None
        self.model = f"{name}:{self.dimensions}:{FORM}"

    def embed(self, texts: Sequence[str]) -> Rows:
        """The mean of the token vectors of each text, scaled to length one."""
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(rows, prepare_texts(texts, self._longest), strict=True):
            if text:
                tokens = self._tokenizer.encode(text).ids
                if len(tokens) > self._empty:
                    row[:] = self._pooled(tokens)
        return unit_rows(rows)

    def close(self) -> None:
        """Does nothing; the embedder uses only memory."""

    def _pooled(self, tokens: list[int]) -> npt.NDArray[np.float32]:
        ids = np.array([tokens], np.int64)
        feed = {"input_ids": ids}
        if "attention_mask" in self._inputs:
            feed["attention_mask"] = np.ones_like(ids)
        if "token_type_ids" in self._inputs:
            feed["token_type_ids"] = np.zeros_like(ids)
        try:
            vectors: npt.NDArray[np.float32] = np.asarray(self._session.run(None, feed)[0])
        except Exception as failure:
            # Messages of onnxruntime name nodes and shapes; only the type of the error is reported.
            raise UnavailableError(
                f"The model failed on {len(tokens)} tokens: {type(failure).__name__}"
            ) from None
        vector: npt.NDArray[np.float32] = vectors[0]
        return vector.mean(axis=0) if vectors.ndim == 3 else vector


def _phrase(names: set[str]) -> str:
    return " and ".join(sorted(names))


def _open_tokenizer(content: bytes, maximum_tokens: int | None) -> tuple[Tokenizer, int]:
    """The tokenizer without padding, and its limit in tokens."""
    try:
        tokenizer = Tokenizer.from_buffer(content)
        own: dict[str, Any] = tokenizer.truncation or {}
        maximum = maximum_tokens or int(own.get("max_length", 256))
        tokenizer.no_padding()
        tokenizer.enable_truncation(maximum)
    except Exception:
        # The tokenizer raises bare exceptions for all errors.
        raise ConfigurationError("tokenizer.json is not a tokenizer that can be read") from None
    return tokenizer, maximum


def open_session(model: bytes | Path, threads: int) -> onnxruntime.InferenceSession:
    """A session on the CPU, with `threads` threads that sleep without work.

    On processors whose fast eight-bit multiplication overflows, the exact one is used, so that
    vectors are equal on all processors.
    """
    return _session(model, threads, exact=not _multiplies_exactly())


@cache
def _multiplies_exactly() -> bool:
    """Whether the sums of the largest eight-bit products are exact on this processor."""
    size = 64
    graph = GraphWriter()
    product = graph.node(
        "DynamicQuantizeMatMul",
        "left",
        graph.constant(np.full((size, size), 127, np.int8)),
        graph.constant(np.ones(1, np.float32)),
        domain=CONTRIBUTED,
    )
    probe = graph.model({"left": (np.float32, (2, size))}, product, (2, size))
    left = np.full((2, size), 255, np.float32)
    result = np.asarray(_session(probe, 1, exact=False).run(None, {"left": left})[0])
    return bool(np.allclose(result, 255 * 127 * size))


def _session(model: bytes | Path, threads: int, *, exact: bool) -> onnxruntime.InferenceSession:
    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    # Without the arena, the memory of a long text is freed after it, at no cost in time.
    options.enable_cpu_mem_arena = False
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.x64quantprecision", "1" if exact else "0")
    source = model if isinstance(model, bytes) else str(model)
    try:
        return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except Exception as failure:
        raise ConfigurationError(
            f"onnxruntime cannot load the model: {type(failure).__name__}"
        ) from None
