"""Virtual environments: one kept for the reference server, one thrown away to be weighed."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REFERENCE_PACKAGE = "openintent[server]==0.17.0"
TIMEOUT = 600.0
# What every virtual environment brings, or has brought in some version of Python.
BROUGHT_ALONG = ("pip", "setuptools", "pkg_resources", "wheel", "_distutils_hack", "distutils-")


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


def installed_megabytes() -> float:
    """The size of everything `pip install .` puts into an empty environment, bytecode too."""
    print("Installing memorywall without extras into a fresh environment ...", flush=True)
    with tempfile.TemporaryDirectory(prefix="memorywall-size-") as name:
        environment = Path(name) / "environment"
        create_environment(environment, str(ROOT))
        (site_packages,) = environment.glob("lib/python*/site-packages")
        return (
            sum(
                file.lstat().st_size
                for child in site_packages.iterdir()
                if not child.name.startswith(BROUGHT_ALONG)
                for file in (child.rglob("*") if child.is_dir() else [child])
                if file.is_file()
            )
            / 1e6
        )


def create_environment(environment: Path, package: str) -> None:
    """Makes an environment with a package, with the pip of the present one."""
    python = str(environment / "bin" / "python")
    _run(sys.executable, "-m", "venv", "--clear", "--without-pip", str(environment))
    _run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", package)


def _run(*arguments: str) -> None:
    try:
        subprocess.run(arguments, check=True, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.CalledProcessError as error:
        raise InstallError(error.stderr.strip()[-500:]) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InstallError(str(error)) from error
