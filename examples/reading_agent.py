"""A worker that reads a folder of text files and remembers how far it has come.

Everything it knows of its progress is in the working memory of its task, written after every file.
Kill it at any moment and give the task to another agent: that one reads what the first had
remembered and goes on after its last checkpoint, in an entry of its own.

    python examples/reading_agent.py --lease-seconds 30

The server's address and the key come from MEMORYWALL_URL and MEMORYWALL_API_KEY; the folder and the
pattern come with the task.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import re
import sys
import time
import tokenize
from pathlib import Path
from typing import Any

from tqdm import tqdm

from memorywall import TaskContext, Worker
from memorywall.exceptions import MemorywallError

PROGRESS = ("reading", "progress")
LEARNED = "learned_patterns"
FACTS = "library_facts"
_PASSED_OVER = frozenset({"site-packages", "dist-packages", "__pycache__", ".git", ".venv"})
_SLOWEST_KEPT = 5
_WORD = re.compile(r"\w+")


def files_of(folder: Path, pattern: str) -> list[str]:
    """The text files to read, relative to the folder, in an order every run agrees on."""
    names = []
    for path in folder.rglob(pattern):
        parts = path.relative_to(folder).parts
        if _PASSED_OVER.isdisjoint(parts) and path.is_file() and is_text(path):
            names.append("/".join(parts))
    return sorted(names)


def is_text(path: Path) -> bool:
    """Whether the file begins like text: what is not text nearly always has a NUL early on."""
    try:
        with path.open("rb") as file:
            return b"\0" not in file.read(1024)
    except OSError:
        return False


def next_digest(digest: str, name: str) -> str:
    """A digest over the names read so far: it tells a file read twice, or none, from all once."""
    return hashlib.sha256(f"{digest}\n{name}".encode()).hexdigest()


def decode(content: bytes) -> tuple[str, str]:
    """The text of a file and the name of its encoding."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        return content.decode(encoding), encoding
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return content.decode("latin-1"), "unknown"


def read_file(progress: dict[str, Any], folder: Path, name: str) -> dict[str, Any]:
    """The progress after one more file."""
    begun = time.perf_counter()
    text, encoding = decode((folder / name).read_bytes())
    words = len(_WORD.findall(text))
    milliseconds = round((time.perf_counter() - begun) * 1000, 2)
    slowest = [*progress["slowest"], {"file": name, "milliseconds": milliseconds, "words": words}]
    slowest.sort(key=lambda one: -float(one["milliseconds"]))
    encodings = dict(progress["encodings"])
    encodings[encoding] = encodings.get(encoding, 0) + 1
    return {
        **progress,
        "completed": progress["completed"] + 1,
        "last_file": name,
        "lines": progress["lines"] + text.count("\n"),
        "words": progress["words"] + words,
        "slowest": slowest[:_SLOWEST_KEPT],
        "encodings": encodings,
        "digest": next_digest(progress["digest"], name),
    }


@Worker(capabilities=["reading"])
def read_library(ctx: TaskContext) -> dict[str, Any]:
    """Reads every file that no checkpoint counts yet."""
    folder = Path(ctx.input["folder"])
    names = files_of(folder, ctx.input["pattern"])
    checkpoint = ctx.memory.get(*PROGRESS)
    if checkpoint is None:
        progress: dict[str, Any] = {
            "total": len(names),
            "completed": 0,
            "last_file": None,
            "lines": 0,
            "words": 0,
            "slowest": [],
            "encodings": {},
            "digest": "",
        }
    else:
        progress = dict(checkpoint.value)
        if checkpoint.agent_id != ctx.agent_id:
            progress["resumed_from"] = checkpoint.id
    done = progress["completed"]
    with tqdm(total=len(names), initial=done, unit=" files", desc=f"{ctx.agent_id} reads") as bar:
        for name in names[done:]:
            progress = read_file(progress, folder, name)
            ctx.memory.set(*PROGRESS, progress, tags=["reading", "in-progress"])
            bar.update()
            time.sleep(ctx.input.get("pause_seconds", 0))
    remember(ctx, folder, progress)
    return {"files": progress["completed"], "digest": progress["digest"]}


def remember(ctx: TaskContext, folder: Path, progress: dict[str, Any]) -> None:
    """Writes what was learned: episodes of its own, and one fact for everyone."""
    for one in progress["slowest"]:
        ctx.memory.set(
            LEARNED,
            f"slow-file:{one['file']}",
            {"observation": "takes long to read", **one},
            memory_type="episodic",
            tags=["slow-file", "performance"],
        )
    for encoding, count in progress["encodings"].items():
        ctx.memory.set(
            LEARNED,
            f"encoding:{encoding}",
            {"observation": "files in this encoding", "encoding": encoding, "files": count},
            memory_type="episodic",
            tags=["encoding"],
            priority="low" if encoding == "utf-8" else "normal",
        )
    ctx.memory.set(
        FACTS,
        folder.name,
        {"files": progress["completed"], "lines": progress["lines"], "words": progress["words"]},
        memory_type="semantic",
        tags=["size"],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Work on reading tasks, one after the other.")
    parser.add_argument("--lease-seconds", type=int, default=30, help="How long a task is held.")
    lease_seconds = parser.parse_args().lease_seconds
    try:
        read_library.run(lease_seconds=lease_seconds, until_idle=True)
    except MemorywallError as error:
        sys.exit(f"reading_agent: {error}")


if __name__ == "__main__":
    main()
