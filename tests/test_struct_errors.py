"""Messages about JSON that does not fit a struct: they name the field and what it must be."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, inspect

from memorywall.records.errors import MemorywallError
from memorywall.records.struct_errors import explain, wanted_body
from memorywall.server.request_decoder import convert_body, convert_query
from memorywall.wire.operations import OPERATIONS

CANARY = "canary-7"


class Part(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    size: Annotated[int, Meta(ge=1)] = 1


class Whole(msgspec.Struct, forbid_unknown_fields=True):
    """One field of each form."""

    parts: Annotated[list[Part], Meta(min_length=1, max_length=9)]
    colour: Literal["red", "blue"] | None = None
    share: Annotated[float, Meta(gt=0, le=1)] = 1
    below: Annotated[float, Meta(lt=3)] = 1
    limits: dict[Literal["a", "b"], Annotated[int, Meta(ge=0, le=5)]] = {}
    title: Annotated[str, Meta(max_length=3)] = ""
    text: str | list[dict[str, Any]] = ""
    is_new: bool = False
    tags: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"colour": CANARY}, "`colour` must be `blue`, `red` or null"),
        ({"share": 0}, "`share` must be a number, above 0 and at most 1"),
        ({"below": 3}, "`below` must be a number, below 3"),
        ({"limits": {CANARY: 1}}, "`limits` may only have the keys `a` or `b`"),
        ({"limits": {"a": 6}}, "each value of `limits` must be an integer from 0 to 5"),
        ({"limits": CANARY}, "`limits` must be an object"),
        ({"title": CANARY}, "`title` must be a text of at most 3 characters"),
        ({"text": 5}, "`text` must be a text or a list of objects"),
        ({"is_new": CANARY}, "`is_new` must be true or false"),
        ({"tags": [CANARY, 1]}, "`tags[1]` must be a text"),
        ({"parts": []}, "`parts` must be a list of 1 to 9 objects with `name`"),
        ({"parts": [CANARY]}, "`parts[0]` must be an object with `name`"),
        ({"parts": [{}]}, "`parts[0].name` is required: a text"),
        ({"parts": [{"name": "", "size": 0}]}, "`parts[0].size` must be an integer, at least 1"),
        (
            {"parts": [{"name": "", CANARY: 0}], "share": 2},
            f"unknown fields: `parts[0].{CANARY}`; `share` must be a number, above 0 and at most 1",
        ),
    ],
)
def test_the_field_and_what_it_must_be(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(MemorywallError) as refused:
        convert_body({"parts": [{"name": "a"}], **fields}, Whole)
    assert refused.value.detail == message


def test_a_body_that_is_another_object_or_none() -> None:
    with pytest.raises(MemorywallError) as refused:
        convert_body({"name": "a", "size": 1}, Whole)
    assert refused.value.detail == (
        "unknown fields: `name`, `size`; `parts` is required: a list of 1 to 9 objects with `name`"
    )
    with pytest.raises(MemorywallError) as refused:
        convert_body([], Whole)
    assert refused.value.detail == "the body must be an object with `parts`"
    assert wanted_body(Whole) == "an object with `parts`"


def test_the_message_of_a_check_of_a_struct_stays() -> None:
    class Checked(msgspec.Struct):
        name: str

        def __post_init__(self) -> None:
            raise ValueError("`name` must be another one")

    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.convert({"name": CANARY}, Checked)
    assert explain(refused.value, Checked) == "`name` must be another one"


def _enumerations(kind: type) -> dict[str, list[str]]:
    """The fields of a struct that are an enumeration, and their values."""
    found: dict[str, list[str]] = {}
    whole = inspect.type_info(kind)
    assert isinstance(whole, inspect.StructType)
    for field in whole.fields:
        alternatives = (
            field.type.types if isinstance(field.type, inspect.UnionType) else (field.type,)
        )
        for one in alternatives:
            if isinstance(one, inspect.LiteralType):
                found[field.encode_name] = [str(value) for value in one.values]
            elif isinstance(one, inspect.EnumType):
                found[field.encode_name] = [str(value.value) for value in one.cls]
    return found


def test_every_enumeration_of_a_request_is_listed_when_a_value_is_none_of_it() -> None:
    tried = 0
    for operation in OPERATIONS:
        for kind, convert in ((operation.body, convert_body), (operation.query, convert_query)):
            if kind in (None, bytes):
                continue
            for field, values in _enumerations(kind).items():
                with pytest.raises(MemorywallError) as refused:
                    convert({field: CANARY}, kind)
                detail = refused.value.detail
                assert detail.startswith(f"`{field}` must be "), (operation.name, detail)
                assert all(f"`{value}`" in detail for value in values), (operation.name, detail)
                assert CANARY not in detail
                tried += 1
    assert tried > 30
