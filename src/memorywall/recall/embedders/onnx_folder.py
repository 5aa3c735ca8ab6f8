"""A sentence model in a folder with `model.onnx` and `tokenizer.json`."""

from __future__ import annotations

from pathlib import Path

from memorywall.recall.embedders.onnx_runner import OnnxEmbedder
from memorywall.recall.embedders.packages import read, short_digest
from memorywall.records.errors import ConfigurationError


def open_folder(folder: str, *, threads: int = 1) -> OnnxEmbedder:
    """The model of a folder. Texts are truncated at the tokenizer's limit, or at 256 tokens.

    The model id contains the digest of all files of the model: large models store weights beside
    `model.onnx` in files whose names start with it.
    """
    place = Path(folder)
    missing = [name for name in ("model.onnx", "tokenizer.json") if not (place / name).is_file()]
    if missing:
        raise ConfigurationError(f"The folder {folder} has no {' and no '.join(missing)}")
    tokenizer = read(place / "tokenizer.json")
    parts = [path for path in sorted(place.glob("model.onnx*")) if path.is_file()]
    return OnnxEmbedder(
        # By its path, because onnxruntime finds weights in other files from there.
        place / "model.onnx",
        tokenizer,
        name=f"onnx:{short_digest(*parts, tokenizer)}",
        threads=threads,
    )
