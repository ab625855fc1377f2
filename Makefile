# Everything runs in .venv, which these targets make. Assumed: Python >= 3.11, make, pip.
#   make demo            make test            make help
# PYTHON=/path/to/python chooses the interpreter, PIP_FLAGS='...' is handed to pip install, PYTEST_FLAGS='...' to pytest.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.14 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo "$$p"; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check -q $(PIP_FLAGS)
SPARK := $(shell command -v java >/dev/null 2>&1 && echo ,spark)
ONE_THREAD := OMP_NUM_THREADS=1
LOCK := requirements/demo.lock
OLDEST := .venv-oldest
OLDEST_TESTS := tests/golden $(patsubst %,tests/flow/test_%.py,cli failures hostile_words) $(patsubst %,tests/unit/test_%.py, \
	app codec dossier hostile_files images_read kinds ledger metadata_files object_store plan release schema \
	schema_problems sources table_files train)

.DEFAULT_GOAL := help
.PHONY: demo test check docs privacy clean help fuzz lock sbom oldest

demo: $(VENV)/.installed-demo  ## simulate a hospital table, release it, train, write synthetic rows to demo-out/
	$(BIN)/dpmerf demo -o demo-out

test: $(VENV)/.installed-test  ## all tests
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n 2 --dist loadgroup $(PYTEST_FLAGS)

check: $(VENV)/.installed-test  ## lint, format, types, and known holes in what is locked (where the network answers)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@if $(BIN)/python tools/reachable.py; then $(BIN)/pip-audit --progress-spinner off --disable-pip --require-hashes -r $(LOCK); fi

lock: $(VENV)/.installed-test  ## resolve the demo's packages again, with hashes
	$(BIN)/python tools/lock.py > $(LOCK).new && mv $(LOCK).new $(LOCK)

sbom: $(VENV)/.installed-test  ## bill of materials of the locked packages (CycloneDX) to sbom.json
	$(BIN)/python tools/sbom.py > sbom.json

docs: $(VENV)/.installed-test  ## the documentation site, to docs/_build/; a broken link is an error
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build

privacy: $(VENV)/.installed-test  ## the privacy tests with their full sample sizes (long)
	DPMERF_PRIVACY=full $(ONE_THREAD) $(BIN)/python -m pytest -q -n 2 --dist loadgroup tests/privacy $(PYTEST_FLAGS)

oldest: pyproject.toml  ## the tests of files, commands and stored bits with the oldest packages that pyproject.toml allows (Python 3.11)
	@test -x $(OLDEST)/bin/python || { "$(PYTHON)" -m venv $(OLDEST) || { rm -rf $(OLDEST); exit 1; }; }
	$(OLDEST)/bin/python tools/oldest.py > $(OLDEST)/oldest.txt
	$(OLDEST)/bin/python -m pip install --disable-pip-version-check -q $(PIP_FLAGS) $(CPU) -c $(OLDEST)/oldest.txt -e '.[test]'
	$(ONE_THREAD) $(OLDEST)/bin/python -m pytest -q -n 2 --dist loadgroup -m 'not slow and not data and not browser' \
		$(OLDEST_TESTS) $(PYTEST_FLAGS)

fuzz: $(VENV)/.installed-test  ## 20,000 hostile inputs, every fault point, signals and races, as a table
	PYTHONPATH=src:tests $(ONE_THREAD) $(BIN)/python -m fuzz --cases $(or $(CASES),20000) $(if $(CASES),,--page docs/campaign.md)

clean:  ## remove the environment, caches and demo output
	rm -rf $(VENV) $(OLDEST) demo-out docs/_build build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help:  ## this list
	@sed -n 's/^\([a-z]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

# The environment is made once; packages are installed again when pyproject.toml changes.
# The demo's come from the lock file, by their hashes: PyTorch for the CPU, from PyTorch's own index or a local folder.
$(VENV)/.installed-demo: pyproject.toml $(LOCK) | $(BIN)/python
	$(INSTALL) --require-hashes --no-deps $(CPU) -r $(LOCK)
	$(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.installed-test: pyproject.toml | $(BIN)/python
	$(INSTALL) -e '.[test,dev,docs$(SPARK)]'
	@touch $@

# Some systems ship Python without ensurepip: then the interpreter's own pip fills the environment.
$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "dpmerf needs Python 3.11 or newer and found none: install it, or say make PYTHON=/path/to/python" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "dpmerf needs Python 3.11 or newer; $(PYTHON) is not" >&2; exit 1; }
	@"$(PYTHON)" -m venv $(VENV) >/dev/null 2>&1 \
		|| { rm -rf $(VENV) && "$(PYTHON)" -m venv --without-pip $(VENV) && "$(PYTHON)" -m pip --python $(BIN)/python install -q pip; } \
		|| { rm -rf $(VENV); echo "could not make $(VENV): install the venv module of Python (Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; }
