"""Words: numbers and names as a person writes them."""

from __future__ import annotations


def percent(share: float, digits: int = 1) -> str:
    """A share as a percentage, with the narrow space that belongs before the sign.

    >>> percent(0.5534) == "55.3\\u202f%"
    True
    """
    return f"{100 * share:.{digits}f}\u202f%"


def small(value: float) -> str:
    """A small number without filling zeros in its exponent.

    >>> small(1e-5)
    '1e-5'
    """
    return f"{value:g}".replace("e-0", "e-")


def block(name: str) -> str:
    """A measured block by its columns: bins and fine cells are told by the stage.

    >>> block("sex#bin × age#bin")
    'sex × age'
    """
    for suffix in ("#bin", "#fine", "#label", "#part"):
        name = name.replace(suffix, "")
    name = name.replace("#null", " is null").replace("#read ", "reading of ")
    return name.replace("#", "")  # '#length', '#rounds of age': already words


def short(text: str, most: int) -> str:
    """Cut to so many characters.

    >>> short("education", 6)
    'educa…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"
