"""Embedders, which convert texts to vectors. A setting selects one; threads share it.

Nothing is downloaded: weights come with installed packages or from a named folder. Only the
embedder `http` uses the network.
"""

from __future__ import annotations

import os
import sys
import threading

from memorywall.recall.embedders.packages import require
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
"""The forms that `open_embedder` accepts; `http:` is for an endpoint on this machine."""


def open_embedder(
    spec: str,
    *,
    key: str | None = None,
    query_prefix: str = "",
    document_prefix: str = "",
    threads: int = 1,
) -> Embedder | None:
    """Opens an embedder; None for `none`. Opening may take a second, so call it in a thread.

    spec: one of `FORMS`
    key: the API key of an endpoint, None for none
    query_prefix, document_prefix: see `CenteredEmbedder`; of models from a folder or an endpoint
    threads: the number of threads that compute one vector; default: 1
    Raises ConfigurationError for a missing package or an invalid file, and UnavailableError if an
    endpoint without a declared length of its vectors does not answer.
    """
    # Each embedder is imported when it is opened, because its packages are extras.
    kind, _, rest = spec.partition(":")
    if spec == "none":
        return None
    if spec == "static":
        require(kind)
        from memorywall.recall.embedders.static import StaticEmbedder

        return StaticEmbedder()
    if spec == "local":
        require(kind)
        from memorywall.recall.embedders.minilm import open_minilm

        return open_minilm(threads=threads)
    if kind == "onnx" and rest:
        require(kind)
        from memorywall.recall.embedders.centered import CenteredEmbedder
        from memorywall.recall.embedders.onnx_folder import open_folder

        return CenteredEmbedder(
            open_folder(rest, threads=threads),
            query_prefix=query_prefix,
            document_prefix=document_prefix,
        )
    if kind in ("http", "https", "http+insecure"):
        require(kind)
        from memorywall.recall.embedders.centered import CenteredEmbedder
        from memorywall.recall.embedders.http import HttpEmbedder

        return CenteredEmbedder(
            HttpEmbedder(spec, key=key), query_prefix=query_prefix, document_prefix=document_prefix
        )
    # The text is not repeated, because a URL may contain a password.
    raise ConfigurationError(f"There is no such embedder; it is one of {', '.join(FORMS)}")


_NICE = 19


def lower_thread_priority() -> bool:
    """Lowers the priority of the calling thread. Returns whether it succeeded.

    Only Linux has priorities per thread; elsewhere nothing happens. A thread cannot raise its
    priority again, so only threads for background work may call this function.
    """
    if sys.platform != "linux":
        return False
    thread = threading.get_native_id()
    try:
        if os.getpriority(os.PRIO_PROCESS, thread) < _NICE:
            os.setpriority(os.PRIO_PROCESS, thread, _NICE)
    except OSError:
        return False
    return True
