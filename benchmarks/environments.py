"""Virtual environments for the reference server and for measuring an installation."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REFERENCE_PACKAGE = "openintent[server]==0.17.0"
TIMEOUT = 600.0


class InstallError(Exception):
    """Something could not be installed."""


def reference_command(environment: Path) -> Path:
    """The program that starts the reference server."""
    return environment.absolute() / "bin" / "openintent-server"


def install_reference(environment: Path) -> None:
    """Install the reference server, unless an earlier run has."""
    if reference_command(environment).exists():
        return
    print(f"Installing {REFERENCE_PACKAGE} into {environment} (once) ...", flush=True)
    create_environment(environment, REFERENCE_PACKAGE)


def create_environment(environment: Path, package: str) -> None:
    """Makes an environment with a package, with the pip of the present one."""
    python = str(environment / "bin" / "python")
    _run(sys.executable, "-m", "venv", "--clear", "--without-pip", str(environment))
    _run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", package)


def install_beside(folder: Path, packages: Sequence[str]) -> None:
    """Installs packages without what they need into a folder, unless an earlier run has. The
    present environment has the rest."""
    if folder.exists():
        return
    print(f"Installing {', '.join(packages)} into {folder} (once) ...", flush=True)
    # An interrupted installation is not taken for a whole one.
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory) / "packages"
        options = ("--quiet", "--no-deps", "--target", str(target))
        _run(sys.executable, "-m", "pip", "install", *options, *packages)
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(target, folder)


def _run(*arguments: str) -> None:
    try:
        subprocess.run(arguments, check=True, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.CalledProcessError as error:
        raise InstallError(error.stderr.strip()[-500:]) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InstallError(str(error)) from error
