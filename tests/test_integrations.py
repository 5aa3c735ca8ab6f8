"""The page of integrations says what the tests of the frameworks have seen."""

from __future__ import annotations

import pytest

from integrations.matrix import (
    PAGE,
    ROOT,
    frameworks,
    has_passed,
    lowest_of,
    read_seen,
    render,
)

FRAMEWORKS = frameworks()


def test_the_page_is_what_the_tests_saw() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(read_seen()), "make docs"


def test_a_failing_framework_is_shown_as_failing() -> None:
    for passed, tests in ((6, 7), (0, 0)):
        run = {
            "versions": {"anthropic": "2.0.0"}, "tests": tests, "passed": passed,
            "conformance": "", "python": "3.11.7", "date": "2026-11-26",
        }  # fmt: skip
        assert not has_passed(run)
        page = render({"anthropic": {"lowest": run}})
        assert f"| `anthropic` 2.0.0: **FAILING**, {passed} of {tests} tests passed |" in page
    assert page.count("**never**") == len(FRAMEWORKS)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_every_framework_was_tested_at_both_ends_of_its_bounds(name: str) -> None:
    framework, seen = FRAMEWORKS[name], read_seen()[name]
    lowest = lowest_of(framework)
    assert seen.keys() == ({"lowest", "newest"} if lowest else {"newest"})
    for package, bound in lowest.items():
        version = seen["lowest"]["versions"][package]
        assert _numbers(version) == _numbers(bound), f"run make integrations FRAMEWORKS={name}"
    for pattern in framework["tests"]:
        assert list(ROOT.glob(pattern)), pattern


def _numbers(version: str) -> list[int]:
    """The numbers of a version, of which `2` is 2.0.0."""
    return [int(number) for number in [*version.split("."), "0", "0"][:3]]


def test_every_page_of_a_recipe_is_run() -> None:
    pages = {f"recipes/{one.name}" for one in (ROOT / "docs" / "recipes").glob("*.md")}
    run = {one["page"]: one["tests"] for one in FRAMEWORKS.values()}
    for page in pages:
        (test,) = run[page]
        stem = page.removeprefix("recipes/").removesuffix(".md")
        text = (ROOT / test).read_text(encoding="utf-8")
        assert f'recipe("{stem}")' in text or f'recipe_files("{stem}")' in text
