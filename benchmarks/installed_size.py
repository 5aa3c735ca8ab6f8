"""Prints the size of an installation without extras, by package.

The size of a package is the size of the files that pip lists for it, bytecode included.
"""

from __future__ import annotations

import tempfile
from importlib.metadata import Distribution, distributions
from pathlib import Path

from benchmarks.environments import ROOT, create_environment

_TOOLS = ("pip", "setuptools", "wheel")
"""The packages that a fresh environment may contain."""


def installed_sizes() -> dict[str, float]:
    """Returns the size of each package that `pip install .` installs, in millions of bytes."""
    print("Installing memorywall without extras into a fresh environment ...", flush=True)
    with tempfile.TemporaryDirectory(prefix="memorywall-size-") as name:
        environment = Path(name) / "environment"
        create_environment(environment, str(ROOT))
        (site_packages,) = environment.glob("lib/python*/site-packages")
        return {
            found.name: _size(found)
            for found in distributions(path=[str(site_packages)])
            if found.name not in _TOOLS
        }


def _size(package: Distribution) -> float:
    files = [Path(str(file.locate())) for file in package.files or ()]
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


def main() -> None:
    """Prints a row for each package, the largest first, and the sum."""
    sizes = installed_sizes()
    for name, size in sorted(sizes.items(), key=lambda row: -row[1]):
        print(f"{name:22}{size:6.2f} MB")
    print(f"{'sum':22}{sum(sizes.values()):6.2f} MB")


if __name__ == "__main__":
    main()
