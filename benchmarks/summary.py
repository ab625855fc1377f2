"""Summary: the few figures that the project's README quotes, from the stored results."""

from __future__ import annotations

from benchmarks import images_page, paper, peers_page, table1_page
from benchmarks.image_scores import CNN
from benchmarks.pages import table
from benchmarks.store import Store


def headline(store: Store) -> str:
    """Table 1 in four columns: real, the paper's DP-MERF, our paper preset and our default."""
    found = table1_page.cells(store)
    rows = []
    for name, published in paper.TABLE1.items():
        row = [f"{name} ({'/'.join(paper.NAMES[m] for m in table1_page.metrics(name))})"]
        for protocol, method in (("honest", "real"), ("honest", "paper"), ("honest", "default")):
            runs = found.get((protocol, name, method))
            row.append("/".join(f"{v:.3f}" for v in table1_page.means(runs, name)) if runs else "–")
        rows.append([row[0], row[1], "/".join(f"{v:.3f}" for v in published["paper"]), *row[2:]])
    header = ["data", "real rows", "DP-MERF as published", "`--preset paper`", "**default**"]
    return table(header, rows)


PEERS = {
    "real": "real rows",
    "default": "**dpmerf**",
    "add-remove": "**dpmerf**, their unit",
    "aim": "AIM",
    "mbi-aim": "AIM (mbi)",
    "mst": "MST",
    "mbi-mst": "MST (mbi)",
    "privbayes": "PrivBayes",
}


def peers(store: Store) -> str:
    """Ours beside the peers that model pairs of columns: utility, and the distance of two-way tables."""
    rows = []
    for (name, epsilon), methods in peers_page.cells(store).items():
        shown = {m: peers_page.row(m, methods[m]) for m in PEERS if m in methods}
        said = {m: "fails" if r[1].startswith("failed") else f"{r[1]}, {r[4]}" for m, r in shown.items()}
        rows.append([f"{name}, ε = {epsilon}", *(said.get(m, "–") for m in PEERS)])
    return table(["ROC or F1, 2-way TV", *PEERS.values()], rows) if rows else ""


def pictures(store: Store) -> str:
    """Both picture sets at ε = 1: twelve classifiers as in the paper, and a CNN."""
    found = images_page.means(store)
    rows = []
    for name in images_page.SETS:
        row = [name, f"{images_page.PAPER[name]['paper', '1']:.3f}"]
        for preset in ("paper", "default"):
            scores = found.get((name, preset, "1"), {})
            row.append(images_page.mean_of_twelve(scores))
            row.append(f"{scores[CNN][0]:.3f}" if CNN in scores else "–")
        rows.append(row)
    ours = [f"{preset}, {what}" for preset in ("`--preset paper`", "**default**") for what in ("mean of 12", CNN)]
    return table(["pictures", "DP-MERF as published, mean of 12", *ours], rows)
