"""All bound functions, those of OpenWOP included. Importing this module binds them."""

from __future__ import annotations

from memorywall.openwop import routes
from memorywall.operations.table import FUNCTIONS

__all__ = ["FUNCTIONS", "routes"]
