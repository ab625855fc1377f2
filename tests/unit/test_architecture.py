"""Architecture is a test: the locked room stays locked, and imports climb one ladder."""

import ast
import re
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "dpmerf"
# Each rung may import only rungs above it (and its own folder).
LADDER = [
    "errors", "plugins", "lazy", "shown", "folders", "progress", "schema", "metadata", "encoding", "features",
    "accounting", "plan", "methods", "release", "discovery", "sources", "private", "generators", "model", "train",
    "person_model", "inference", "output", "evaluate", "report", "dossier", "pipeline", "api", "person_run",
    "synthesizer", "one_call", "audit", "demo", "app", "cli",
]  # fmt: skip
MAY_ENTER = {
    "private",
    "pipeline",
    "person_run",
    "api",
    "audit",
    "app",
    "cli",
    "__init__",
}  # who may import dpmerf.private


def _rung(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def _imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{a.name}" for a in node.names}
    return {name.removeprefix("dpmerf.").split(".")[0] for name in found if name.startswith("dpmerf.")}


FILES = sorted(SOURCE.rglob("*.py"))


def test_post_processing_never_imports_private() -> None:
    guilty = [str(f) for f in FILES if _rung(f) not in MAY_ENTER and "private" in _imports(f)]
    assert not guilty


def test_imports_climb_one_ladder() -> None:
    wrong = []
    for file in FILES:
        rung = _rung(file)
        if rung in ("__init__",):
            continue
        assert rung in LADDER, f"{rung} has no place on the ladder: give it one"
        for name in _imports(file):
            if name in LADDER and name != rung and LADDER.index(name) > LADDER.index(rung):
                wrong.append(f"{rung} imports {name}")
    assert not wrong


def test_no_file_can_run_code_from_data() -> None:
    banned = ("import pickle", "pickle.load", "torch.load(", "allow_pickle=True", "yaml.load", "eval(", "exec(")
    for file in FILES:
        text = file.read_text(encoding="utf-8").replace(".eval()", "")
        assert not [b for b in banned if b in text], file


def test_the_noise_takes_no_seed() -> None:
    for file in (SOURCE / "private").glob("*.py"):
        names = {n.arg for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.arg)}
        assert not names & {"seed", "rng", "generator"}, file


def test_contributing_names_files_that_exist() -> None:
    text = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:src/dpmerf/|tests/)?[a-z_/]+(?:/|\.py))`", text)
    places = [n if n.startswith(("src/", "tests/")) else f"src/dpmerf/{n}" for n in named if not n.startswith("docs/")]
    assert len(places) > 15
    assert not [place for place in places if not (SOURCE.parents[1] / place).exists()]
