"""The obligations of every backend: one file of cases per capability, for pytest.

A backend's own test names the suite and says how a store is opened:

    class TestMyStore(StoreConformance):
        @pytest.fixture
        def opener(self, tmp_path: Path) -> Opener:
            return functools.partial(open_my_store, tmp_path)

memorywall never imports this package, so that only tests of a backend need pytest and Hypothesis. A
new obligation in `storage/port.py` comes with a case here.
"""

from __future__ import annotations

import pkgutil

import pytest

# A failed assertion in a case then shows the values it compared, as in any other test.
pytest.register_assert_rewrite(
    *(f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__))
)
