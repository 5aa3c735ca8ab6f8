"""All bound functions. A test holds that each operation has one and each one an operation.

Every module of this package is imported, so that an operation is bound by being written.
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
