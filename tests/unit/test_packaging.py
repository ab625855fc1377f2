"""Packaging: equal bytes from equal sources, and a lock file that holds everything by its hash."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements" / "demo.lock").read_text(encoding="utf-8")


def _tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_two_builds_of_one_source_are_the_same_bytes(tmp_path: Path) -> None:
    """Two copies made at different times with different permissions."""
    pytest.importorskip("hatchling")
    found = []
    for copy, mask in (("one", 0o022), ("two", 0o077)):
        before = os.umask(mask)
        try:
            for name in ("src", "README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml", "Makefile"):
                source, target = ROOT / name, tmp_path / copy / name
                target.parent.mkdir(exist_ok=True)
                if source.is_dir():
                    shutil.copytree(
                        source, target, ignore=shutil.ignore_patterns("__pycache__"), copy_function=shutil.copy
                    )
                else:
                    shutil.copy(source, target)
        finally:
            os.umask(before)
        environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
        command = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path / f"built-{copy}")]
        subprocess.run(command, cwd=tmp_path / copy, env=environment, check=True, capture_output=True)
        files = sorted((tmp_path / f"built-{copy}").iterdir())
        assert [f.suffix for f in files] == [".whl", ".gz"]
        found.append([hashlib.sha256(f.read_bytes()).hexdigest() for f in files])
    assert found[0] == found[1]


def test_the_lock_file_holds_every_dependency_by_its_hash() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["evaluate"]]
    names = {re.split(r"[<>=;\[ ]", w)[0].lower() for w in wanted if "darwin'" not in w or "!=" in w}
    locked = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", LOCK, re.M))
    assert names <= locked.keys()
    assert not [name for name in locked if name.startswith(("nvidia", "triton", "cuda"))]  # a CPU is enough
    for one in re.split(r"^(?=[a-z0-9-]+==)", LOCK, flags=re.M)[1:]:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", one), one.splitlines()[0]


def test_the_bill_of_materials_names_what_is_locked() -> None:
    bill = _tool("sbom").bill()
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    assert {c["name"] for c in bill["components"]} == set(re.findall(r"^([a-z0-9-]+)==", LOCK, re.M))
    assert all(c["hashes"] and c["purl"].startswith("pkg:pypi/") for c in bill["components"])
    assert json.dumps(bill) == json.dumps(_tool("sbom").bill())


def test_every_dependency_has_an_oldest_version() -> None:
    """What `make oldest` installs: the bound as written, of all that a user can have."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = _tool("oldest").oldest()
    assert {re.split(r"[<>=;\[ ]", wanted)[0] for wanted in project["dependencies"]} <= found.keys()
    assert {"scikit-learn", "duckdb", "cryptography", "sqlglot"} <= found.keys() and "pytest" not in found
    wanted = dict(re.findall(r'"([a-z0-9-]+)>=([0-9.]+)', (ROOT / "pyproject.toml").read_text(encoding="utf-8")))
    assert all(wanted[name] == bound for name, bound in found.items())


def test_an_index_that_knows_no_vulnerabilities_is_none(tmp_path: Path) -> None:
    """Of a mirror pip-audit learns nothing, and says that all is well."""
    found = {}
    for name, text in {"knows": '{"vulnerabilities": [{"id": "x"}]}', "mirror": '{"info": {}}', "page": "<p>"}.items():
        (tmp_path / name).write_text(text)
        found[name] = _tool("reachable").answers((tmp_path / name).as_uri())
    assert found == {"knows": True, "mirror": False, "page": False}
    assert not _tool("reachable").answers((tmp_path / "nothing").as_uri())


def test_what_the_package_says_it_holds_is_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "Typing :: Typed" in project["project"]["classifiers"] and (ROOT / "src/dpmerf/py.typed").is_file()
    named = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert len(named) > 5 and not [name for name in named if not (ROOT / name).exists()]
