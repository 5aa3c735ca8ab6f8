"""All bound functions. A test checks that operations and functions correspond one to one.

This module imports every module of the package, so that every function is bound.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from memorywall import operations
from memorywall.operations.binding import FUNCTIONS

for _module in iter_modules(operations.__path__, f"{operations.__name__}."):
    if _module.name != __name__:
        import_module(_module.name)

__all__ = ["FUNCTIONS"]
