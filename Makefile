# Every target needs only git, make and Python 3.11 to 3.13. Everything else is installed into this folder.
# Paths are relative and quoted, and programs run as `python -m`, so the folder's path may contain a space.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help setup demo test fuzz check bench site lock clean

PY := .venv/bin/python
DEMO := .venv/.demo
SETUP := .venv/.complete
LOCK = $(PY) -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header
# Two test runs in parallel, each with its own services and Spark: a Spark that plans keeps one processor busy.
PYTEST := $(PY) -m pytest -n $(or $(WORKERS),2) --dist worksteal

# Lists the targets.
help:
	@awk '/^# /{text = substr($$0, 3)} /^[a-z]+:/{sub(":.*", ""); printf "  make %-8s %s\n", $$0, text}' Makefile

# Installs everything into this folder once: Python packages, Java, the jars of Kafka and Spark.
setup: $(SETUP)
	@echo "Ready. Try make demo or make test." >&2

# Demonstrates Lamina on real data: live views, a rebuild with its proof, a late record (ONCE=1 ends by itself).
demo: $(DEMO)
	@$(PY) -m lamina demo $(if $(ONCE),--once)

# Runs the tests against a real Kafka, Postgres and Spark (ARGS="tests/laws -x" for some, WORKERS=1 one by one).
test: $(SETUP)
	@$(PYTEST) $(ARGS) $(if $(EXIT_CODE_FILE),; echo $$? > "$(EXIT_CODE_FILE)")

# Compares random views with Spark's answer to their SELECTs (N=200 views of SEED=1), and reduces any difference.
fuzz: $(SETUP)
	@$(PY) -m tests.fuzz --views $(or $(N),200) --seed $(or $(SEED),1)

# Checks format, style, types, import rules and English, then runs the tests.
check: $(SETUP)
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m mypy
	@$(PY) -c 'from importlinter.cli import lint_imports_command as lint; lint(["--no-logo"])'
	@$(PY) -m tests.habits.english
	@$(PYTEST) $(ARGS)

# Measures the quicker figures of docs/benchmarks.md in sequence (an hour and a half on an idle machine).
bench: $(SETUP)
	@missed=0; for figure in compile starts approximate catch_up unique freshness many_sources large_table reads joins rebuild \
		rebuild_rate last_hour changes; do \
		echo "$$figure" >&2; $(PY) -m benchmarks.$$figure || missed=1; \
	done; exit $$missed

# Builds the documentation site into build/site, and fails on a broken link.
site: $(SETUP)
	@$(PY) -m zensical build --strict --clean --config-file "$$($(PY) website/pages.py build)"
	@echo "Open build/site/index.html; its search needs a server: $(PY) -m http.server --directory build/site" >&2

# Regenerates both package locks and jars.lock from pyproject.toml and the versions in lamina/services/jars.py.
lock: $(SETUP)
	@$(LOCK) --all-extras --output-file requirements.lock pyproject.toml
	@$(LOCK) --extra embedded --extra build --constraints requirements.lock --output-file demo.lock pyproject.toml
	@$(PY) -m lamina.services.jars lock

# Stops the embedded services and removes everything that was installed and created here, including data.
clean:
	@if [ -x $(PY) ]; then $(PY) -m lamina.local.stack .lamina .lamina/demo .lamina/tests/* || true; fi
	rm -rf .venv .lamina build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Marks that the demo can run, with Python, its packages and the jars. A changed lock makes it stale.
$(DEMO): demo.lock pyproject.toml lamina/services/packages.py lamina/services/jars.lock
	@python=; old=; bare=; \
	for candidate in $(PYTHON) python3 python3.13 python3.12 python3.11 python; do \
		"$$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null || continue; \
		if "$$candidate" -c 'import venv, ensurepip' 2>/dev/null; then python=$$candidate; break; fi; \
		bare=$$candidate; \
	done; \
	if [ -z "$$python" ] && [ -n "$$bare" ]; then \
		echo "Lamina needs Python's venv, which $$bare lacks: install it (Debian and Ubuntu: the package python3-venv)." >&2; \
		exit 1; \
	elif [ -z "$$python" ]; then \
		echo "Lamina needs Python 3.11, 3.12 or 3.13 on the PATH, and found none. To name one, run make setup PYTHON=/path/to/python." >&2; \
		exit 1; \
	fi; \
	if [ ! -x $(PY) ] || ! $(PY) -m pip --version >/dev/null 2>&1; then \
		echo "Making .venv with $$("$$python" --version)" >&2; \
		"$$python" -m venv --clear .venv || exit 1; \
	fi
	@echo "Installing $$(grep -c '^[a-z].*==' demo.lock) locked packages (once, half a minute)" >&2
	@$(PY) lamina/services/packages.py demo.lock
	@$(PY) -m uv pip install --quiet --offline --no-deps --no-build-isolation --editable .
	@$(PY) -m compileall -q view_algebra master_log interchange serving_layer batch_layer speed_layer lamina
	@echo "Fetching the jars of Kafka and Spark" >&2
	@$(PY) -m lamina.services.jars
	@touch $(DEMO)

# Marks that setup is complete. A changed lock makes it stale.
$(SETUP): $(DEMO) requirements.lock
	@echo "Installing the rest of $$(grep -c '^[a-z].*==' requirements.lock) locked packages: Airflow, tests, linters" >&2
	@$(PY) lamina/services/packages.py requirements.lock
	@$(PY) -m uv pip install --quiet --offline --no-deps --no-build-isolation --editable .
	@echo "Starting Kafka and Spark once, so that they start faster (a minute)" >&2
	@$(PY) -m lamina.local.prepare .lamina
	@touch $(SETUP)
