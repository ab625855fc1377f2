"""Pages: the Markdown between two marks of a page is regenerated from the stored results; the words around it stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.registry import FOLDER, Experiment
from benchmarks.store import Store

PAGES = (FOLDER / "README.md", FOLDER / "classifiers.md", FOLDER.parent / "README.md")
NOTHING = "*No results are stored yet.*"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table.

    >>> print(table(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [header, ["---"] * len(header), *rows]
    text = ["| " + " | ".join(line) + " |" for line in lines]
    text[1] = "|" + "---|" * len(header)
    return "\n".join(text)


def fill(text: str, parts: Mapping[str, str]) -> str:
    """Replace what stands between `<!-- NAME -->` and `<!-- /NAME -->`.

    >>> print(fill("<!-- x -->old<!-- /x -->", {"x": "new"}))
    <!-- x -->
    new
    <!-- /x -->
    """
    for name, part in parts.items():
        before, start, rest = text.partition(f"<!-- {name} -->")
        _, end, after = rest.partition(f"<!-- /{name} -->")
        if end:
            text = f"{before}{start}\n{part or NOTHING}\n{end}{after}"
    return text


def parts(known: Mapping[str, Experiment], store: Store) -> dict[str, str]:
    """Each experiment's Markdown, and the list of experiments itself."""
    from benchmarks import claims, images_page, summary, table1_page

    found = {e.name: e.page(store) for e in known.values()}
    found["experiments"] = table(["`run` …", "what", "cost"], [[f"`{e.name}`", e.what, e.cost] for e in known.values()])
    found["headline"], found["pictures"] = summary.headline(store), summary.pictures(store)
    found["tools"] = summary.peers(store)
    found["numbers"], found["claims"] = claims.numbers(store), claims.words(store)
    found["table1-classifiers"], found["images-classifiers"] = (
        table1_page.classifiers(store),
        images_page.classifiers(store),
    )
    return found


def pages(known: Mapping[str, Experiment], store: Store) -> dict[Path, str]:
    """What every page should say."""
    made = parts(known, store)
    return {path: fill(path.read_text(encoding="utf-8"), made) for path in PAGES if path.exists()}


def write(known: Mapping[str, Experiment], store: Store) -> None:
    for path, text in pages(known, store).items():
        if path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(FOLDER.parent)}")
