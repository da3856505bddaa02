# Every target sets itself up: it needs python3 >= 3.11 with pip, and nothing else.
#
#   make demo    a cyclic join over a large graph, DuckDB beside it
#   make test    lint, type check, the kernels without compiler and with bounds checks, all other tests, doctests;
#                of tests with many or long cases a third a day: TURN=all takes all of them
#   make lint    ruff and mypy alone
#   make kernels lint and types while the kernels are compiled, with bounds checks and without
#   make bench   the benchmarks; results, plots and the machine's description go to bench/results/
#   make bench-report  who keeps views up to date, strategies and peers, as one HTML page; 20 minutes
#   make cluster-test  the bridge on a Spark cluster of its own on loopback, parts of it killed, a state on S3; 5 minutes
#   make mutants deliberate faults in a copy of the tree, and which of them the tests notice; 10 minutes
#   make fuzz    random programs over random data, all ways to run and keep them, against other oracles; SECONDS=, SEED=
#   make soak    100,000 random changes on chained rules, checked now and then; SEED=, CHANGES= may be given
#   make dist    wheel and sdist, each installed in an empty environment and tried there
#   make kills   1,000 kills of a process that changes a workspace on disk, 10 million changes; SEED=, KILLS=, CHANGES=
#   make docs    the documentation as a web site in site/
#
# The tools live in .venv.  A stamp says which group of packages is in it; the
# stamps follow pyproject.toml, so that a change there installs again.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
PYTEST := $(BIN)/python -m pytest
CORES := $(shell getconf _NPROCESSORS_ONLN)
KERNEL_TESTS = $(shell grep -rl --include='test_*.py' mark.kernel tests)
CHECKED_TESTS = tests/maintenance/workspace/% tests/evaluation/test_query_oracle.py \
  $(filter-out %/test_machine_laws.py,$(wildcard tests/maintenance/machine/test_*.py))
INTERPRETED_TESTS = $(filter-out $(CHECKED_TESTS),$(KERNEL_TESTS))
# What LLVM's costlier passes would gain in these runs is less than they take to compile.
CHECKED = NUMBA_BOUNDSCHECK=1 NUMBA_OPT=1
# Whose turn it is of cases that take turns: 0, 1, 2 or all (tests/support/turns.py); by default the day's.
TURN ?= $(shell expr $$(date +%s) / 86400 % 3)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# Some container images switch it off; then each of the many processes of a test run compiles the sources anew.
export PYTHONDONTWRITEBYTECODE :=

.DELETE_ON_ERROR:
.PHONY: demo test cluster-test kernels lint style bench bench-report fuzz soak kills mutants dist docs clean

demo: $(STAMPS)/bench
	$(BIN)/python -m bench.demo

# Kernels are compiled first, so that no two workers compile the same.
# The tests of kernels run as plain Python and with bounds checks, those of whole workspaces, of random queries and of
# single parts of the commit machine (its laws are of all of it) with bounds checks alone; the last run is of all the others, over kernels as users have them.  (Examples are the
# same in every run: once more without checks shows nothing.  Only those of random programs are drawn anew each
# day, with bounds checks: tests/support/daily.py.)
# Where tests wait for processes that they start, there is one worker more than processors, and one that has all
# that need Java (tests/support/sharing.py).
test: export LFTJ_TURN := $(TURN)
test: kernels
	NUMBA_DISABLE_JIT=1 $(PYTEST) --dist worksteal -n $(CORES) -q -m kernel $(INTERPRETED_TESTS)
	$(CHECKED) $(PYTEST) --dist worksteal -n $(CORES) -q -m kernel $(KERNEL_TESTS)
	$(PYTEST) --dist loadfile --no-loadscope-reorder -n $$(($(CORES) + 1)) -m "not kernel" --durations=20

cluster-test: $(STAMPS)/cluster
	LFTJ_CLUSTER=1 $(PYTEST) -q --durations=5 tests/cluster

# Compiling needs the package alone: the tools are installed, and at work, while it goes on.
kernels: $(STAMPS)/package
	@$(BIN)/lftj warm-up & plain=$$!; $(CHECKED) $(BIN)/lftj warm-up & checked=$$!; \
	  { $(MAKE) --no-print-directory lint && wait $$plain && wait $$checked; } \
	  || { kill $$plain $$checked 2>/dev/null; exit 1; }

lint: style
	$(BIN)/mypy

style: $(STAMPS)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

bench: $(STAMPS)/bench
	$(BIN)/python -m bench

bench-report: $(STAMPS)/bench
	$(BIN)/python -m bench.maintenance_report

fuzz: $(STAMPS)/dev
	PYTHONPATH=tests:. $(BIN)/python -m fuzz $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY)) $(if $(CASE),--case $(CASE)) $(if $(WORKERS),--workers $(WORKERS))

soak: $(STAMPS)/bench
	$(BIN)/python -m bench.soak $(if $(SEED),--seed $(SEED)) $(if $(CHANGES),--changes $(CHANGES))

kills: $(STAMPS)/bench
	$(BIN)/python -m bench.kills $(if $(SEED),--seed $(SEED)) $(if $(KILLS),--kills $(KILLS)) $(if $(CHANGES),--changes $(CHANGES))

mutants: $(STAMPS)/dev
	$(BIN)/python tests/mutants

# A user's script runs, and passes mypy --strict, away from the sources.
dist: $(STAMPS)/release
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	for made in dist/*.whl dist/*.tar.gz; do \
	  $(PYTHON) -m venv --clear dist/try && dist/try/bin/python -m pip install --quiet "$$made" mypy \
	  && cp tests/project/user_script.py dist/ && cd dist && try/bin/python user_script.py \
	  && try/bin/mypy --strict user_script.py && try/bin/lftj --version && cd .. || exit 1; \
	done
	rm -rf dist/try dist/user_script.py dist/.mypy_cache

docs: $(STAMPS)/docs
	$(BIN)/mkdocs build --strict
	@echo "site/index.html"

clean:
	rm -rf $(VENV) site build dist

# Bytecode is compiled of what is imported, not of everything that is installed.
# A python3 without ensurepip (Debian splits it off) gets pip by way of its own pip.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "lftj needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Set PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) \
	  || { $(PYTHON) -m venv --clear --without-pip $(VENV) && $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; }

$(STAMPS)/package: pyproject.toml | $(BIN)/python
	@mkdir -p $(STAMPS)
	$(PIP) install --no-compile --editable .
	@touch $@

$(STAMPS)/%: pyproject.toml | $(BIN)/python
	@mkdir -p $(STAMPS)
	$(PIP) install --no-compile --editable '.[$*]'
	@touch $@
