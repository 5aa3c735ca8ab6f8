"""Any sentence model in a folder with `model.onnx` and `tokenizer.json`."""

from __future__ import annotations

from pathlib import Path

from memorywall.recall.embedders.onnx_runner import OnnxEmbedder
from memorywall.recall.embedders.packages import read, short_digest
from memorywall.records.errors import ConfigurationError


def open_folder(folder: str, *, threads: int = 1) -> OnnxEmbedder:
    """The model of this folder, as it is; texts are cut where its tokenizer says, or at 256 tokens.

    Every file that belongs to the model is in its id: large models keep weights beside `model.onnx`
    under names that start with it.
    """
    place = Path(folder)
    missing = [name for name in ("model.onnx", "tokenizer.json") if not (place / name).is_file()]
    if missing:
        raise ConfigurationError(f"The folder {folder} has no {' and no '.join(missing)}")
    tokenizer = read(place / "tokenizer.json")
    parts = [path for path in sorted(place.glob("model.onnx*")) if path.is_file()]
    return OnnxEmbedder(
        # By its path, because weights in files beside it are found from there.
        place / "model.onnx",
        tokenizer,
        name=f"onnx:{short_digest(*parts, tokenizer)}",
        threads=threads,
    )
