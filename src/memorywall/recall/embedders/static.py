"""Vectors from a table of tokens: the vector of a text is the mean of its tokens' rows.

The table and its tokenizer are data files of the package wordllama. Its code is never imported,
because it has an HTTP client and a logging configuration of its own. The model id contains the
digests of both files, so that another table causes a new embedding.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from memorywall.recall.embedders.conversion import Rows, prepare_texts, unit_rows
from memorywall.recall.embedders.packages import packaged_file, read, short_digest
from memorywall.recall.stored_vectors import FORM
from memorywall.records.errors import ConfigurationError

_LONGEST = 8_192
_TENSOR = "embedding.weight"


class StaticEmbedder:
    """The 256-dimensional table of wordllama, in half precision: 16 MB."""

    is_local = True

    def __init__(self) -> None:
        table = read(packaged_file("wordllama", "weights", "l2_supercat_256.safetensors"))
        vocabulary = read(
            packaged_file("wordllama", "tokenizers", "l2_supercat_tokenizer_config.json")
        )
        try:
            self._table = _half_precision_tensor(table, _TENSOR)
            self._tokenizer = Tokenizer.from_buffer(vocabulary)
        except Exception:
            # The tokenizer raises bare exceptions; the remedy is the same for all errors.
            raise ConfigurationError(
                "The files of the package wordllama cannot be read; install another release"
            ) from None
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._last = len(self._table) - 1
        self.dimensions = int(self._table.shape[1])
        self.model = f"static-wordllama:{short_digest(table, vocabulary)}:{self.dimensions}:{FORM}"

    def embed(self, texts: Sequence[str]) -> Rows:
        """The mean of the rows of each text's tokens, scaled to length one."""
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(rows, prepare_texts(texts, _LONGEST), strict=True):
            if text:
                # Texts are tokenized one by one, because a batch would start a thread per core.
                tokens = self._tokenizer.encode(text, add_special_tokens=False).ids
                if tokens:
                    known = np.minimum(np.array(tokens, np.int64), self._last)
                    self._table[known].mean(axis=0, dtype=np.float32, out=row)
        return unit_rows(rows)

    def close(self) -> None:
        """Does nothing; the embedder uses only memory."""


def _half_precision_tensor(file: bytes, name: str) -> npt.NDArray[np.float16]:
    """One tensor of a safetensors file, which has the length of a JSON header, the header and
    bytes."""
    start = 8 + int.from_bytes(file[:8], "little")
    header = json.loads(file[8:start])[name]
    if header["dtype"] != "F16":
        raise ValueError(f"{name} is not in half precision")
    first, last = header["data_offsets"]
    numbers = np.frombuffer(file, "<f2", (last - first) // 2, start + first)
    return cast("npt.NDArray[np.float16]", numbers.reshape(header["shape"]))
