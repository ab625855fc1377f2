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


# --- one frame: queries, rows, settings, names -----------------------------------------------------------------------

FIXED = {  # numbers that are no choice: formats, limits of memory, and what saved models depend on
    "BARRED", "BELOW_ONE", "LEAST", "EDGE",
    "LOW", "HIGH", "CELLS", "GRID", "AT_ONCE", "SMALLEST", "_LIMIT_EPSILON", "_LIMIT_ROWS", "_ASSUMED_ROWS",
}  # fmt: skip


def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def _query_kinds() -> set[str]:
    found = set()
    for file in (SOURCE / "plan" / "queries").glob("*.py"):
        for node in _tree(file).body:
            if isinstance(node, ast.ClassDef) and any(getattr(b, "id", "") == "Query" for b in node.bases):
                found.add(node.name)
    return found


def test_only_queries_know_the_kinds_of_queries_apart() -> None:
    """Elsewhere a plan is asked (`plan.has`, `plan.query`): a new kind is one file and one line."""
    kinds, guilty = _query_kinds(), []
    assert {"Histograms", "Tables", "ColumnSelection"} <= kinds
    for file in FILES:
        if "queries" in file.parts:
            continue
        for node in ast.walk(_tree(file)):
            asked: ast.AST | None = None
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
                asked = node.args[1]
            elif isinstance(node, ast.MatchClass):
                asked = node.cls
            if asked is not None and {n.id for n in ast.walk(asked) if isinstance(n, ast.Name)} & kinds:
                guilty.append(f"{file}:{node.lineno}")  # type: ignore[attr-defined]
    assert not guilty


def test_only_the_locked_room_and_evaluation_iterate_rows() -> None:
    """Sources define `batches`; nobody else asks for them."""
    guilty = [
        f"{file}:{node.lineno}"
        for file in FILES
        if _rung(file) not in ("private", "evaluate", "sources")
        for node in ast.walk(_tree(file))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "batches"
    ]
    assert not guilty


def test_tuned_numbers_are_settings() -> None:
    """No module constant of methods or generators holds a number: they are fields, documented, and can be passed."""
    guilty = []
    for file in FILES:
        if _rung(file) not in ("methods", "generators"):
            continue
        for node in _tree(file).body:
            if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
            call = isinstance(node.value, ast.Call) and names <= {"PAPER"}  # an instance of settings
            numbers = [c for c in ast.walk(node.value) if isinstance(c, ast.Constant) and type(c.value) in (int, float)]
            if numbers and not call and not names <= FIXED:
                guilty.append(f"{file}: {sorted(names)}")
    assert not guilty


def test_files_are_short_and_names_are_unique() -> None:
    long = [str(f) for f in FILES if len(f.read_text(encoding="utf-8").splitlines()) > 350]
    names = [f.name for f in FILES if f.name not in ("__init__.py", "__main__.py")]
    assert not long and not {name for name in names if names.count(name) > 1}


def test_public_functions_and_classes_have_docstrings() -> None:
    missing = [
        f"{file}: {node.name}"
        for file in FILES
        for node in _tree(file).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
    ]
    assert not missing


def test_every_import_inside_the_package_has_a_file() -> None:
    """Types of missing modules are not checked, so a renamed module would go unseen until it is used."""
    absent = []
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("dpmerf."):
                place = SOURCE.joinpath(*node.module.split(".")[1:])
                if not place.with_suffix(".py").exists() and not (place / "__init__.py").exists():
                    absent.append(f"{file.name}: {node.module}")
    assert not absent


def test_a_kind_of_column_is_known_in_its_own_file_and_one_registry() -> None:
    """The kind `time` stands for any other: its class, its name and what it reads occur in no third file."""
    telling = {"Time", "time_of_day"}
    found = set()
    for file in FILES:
        for node in ast.walk(_tree(file)):
            module = node.module if isinstance(node, ast.ImportFrom) else None
            words = {getattr(node, "id", ""), *(module or "").split(".")}
            read = isinstance(node, ast.Attribute) and node.attr in ("is_time", "is_time32", "is_time64", "time32")
            clock = isinstance(node, ast.Attribute) and node.attr == "time" and getattr(node.value, "id", "") == "dt"
            kind = (
                isinstance(node, ast.Compare)
                and "kind" in ast.unparse(node.left)
                and any(isinstance(c, ast.Constant) and c.value == "time" for c in node.comparators)
            )
            if words & telling or read or clock or kind:
                found.add(str(file.relative_to(SOURCE)))
    measured_by_it = {"schema/derivations.py"}  # the time of day of a timestamp
    assert found == {"schema/columns.py", "schema/kinds/time_of_day.py"} | measured_by_it


def test_cells_are_read_and_written_without_asking_for_the_kind() -> None:
    """No `match` on a column's class and no comparison of its kind where cells, drafts and audits are made."""
    kinds = {"Number", "Integer", "Date", "Timestamp"}
    asked = ("cells", "reading", "writing", "codec", "names", "canary", "frames", "subgroups", "frictionless", "sdv")
    guilty = []
    for file in FILES:
        if file.stem not in asked:
            continue
        for node in ast.walk(_tree(file)):
            cls = node.cls if isinstance(node, ast.MatchClass) else None
            if cls is None and isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
                cls = node.args[1]
            if cls is not None and {n.id for n in ast.walk(cls) if isinstance(n, ast.Name)} & kinds:
                guilty.append(f"{file}:{node.lineno}")
    assert not guilty
