"""The conversation of the recipes' pages: one person says which tea she drinks, and asks later."""

from __future__ import annotations

import json
import re
from typing import Any

from integrations.scripted_model import Reply, says

_TOLD = re.compile(r"only drinks? green tea\.")


def answers(body: dict[str, Any]) -> Reply:
    """What a model says about tea that is given this request."""
    return says("Green tea." if _TOLD.search(json.dumps(body)) else "I do not know yet.")
