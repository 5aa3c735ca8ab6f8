"""No method of the published client is forgotten: it is driven, or it is said why it is not."""

from __future__ import annotations

import json
import subprocess

from tests.published_client.environment import PACKAGE, client_python
from tests.published_client.served import NOT_SERVED, SERVED
from tests.published_client.stage import Stage

# The client keeps it to itself when these are not found.
SILENT = {"close_channel", "get_retry_policy"}
_WHAT_IS_INSTALLED = """
import importlib.metadata, json, sys
names = sorted(one.metadata["Name"].lower() for one in importlib.metadata.distributions())
print(json.dumps(["openintent==" + importlib.metadata.version("openintent"), names]))
"""


def test_the_client_is_the_published_one_and_alone() -> None:
    printed = subprocess.run(
        [str(client_python()), "-c", _WHAT_IS_INSTALLED], check=True, capture_output=True, text=True
    )
    version, names = json.loads(printed.stdout)
    assert version == PACKAGE
    # Neither its server nor ours is there to be taken for it.
    assert not {"fastapi", "sqlalchemy", "memorywall", "msgspec"} & set(names)


def test_no_method_is_on_both_lists() -> None:
    assert not SERVED & NOT_SERVED.keys()
    assert all(NOT_SERVED.values())


def test_every_public_method_is_on_one_of_the_lists(stage: Stage, colour: str) -> None:
    methods = set(stage.play("unserved", colour)["methods"])
    assert methods - SERVED - NOT_SERVED.keys() == set(), "nobody has decided about these"


def test_the_lists_name_only_what_exists(stage: Stage) -> None:
    methods = {
        method
        for colour in ("blocking", "async")
        for method in stage.play("unserved", colour)["methods"]
    }
    assert (SERVED | NOT_SERVED.keys()) - methods == set()


def test_every_served_method_is_driven(stage: Stage, colour: str) -> None:
    methods = set(stage.play("unserved", colour)["methods"])
    assert (SERVED & methods) - stage.calls(colour) == set()


def test_unknown_path_returns_not_found(stage: Stage, colour: str) -> None:
    seen = stage.play("unserved", colour)
    assert seen["answers"].keys() == NOT_SERVED.keys() & set(seen["methods"])
    strange = {method: status for method, status in seen["answers"].items() if status != 404}
    assert strange == dict.fromkeys(SILENT)
