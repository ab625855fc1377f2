"""The page of formulas says what the code computes: its examples are run, and none may be lost."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "inference.md"


def test_every_example_of_the_page_holds() -> None:
    found = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8", raise_on_error=False)
    assert found.failed == 0 and found.attempted >= 20
