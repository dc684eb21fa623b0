# One virtual environment in .venv; everything heavy lives in the cache outside the checkout.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test unit lint clean

$(VENV)/.ready: pyproject.toml
	@echo "Installing Python packages into $(VENV): about a minute, once"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable '.[test]'
	touch $@

demo: $(VENV)/.ready
	exec $(BIN)/python -m tests.demo

test: $(VENV)/.ready lint
	$(BIN)/python -m tests.run

unit: $(VENV)/.ready
	$(BIN)/pytest

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf $(VENV) build dist *.egg-info
