# Everything here works from a fresh clone with Python 3.11 or newer and access to the Python package index.
#   make demo                    optimize a small bundled network and show before and after
#   make test                    all checks and tests
#   make PYTHON=python3.12 demo  choose the Python that .venv is made with

PYTHON ?= python3
WORKERS ?= 2

BIN := .venv/bin
# A binary of an older release rather than a compilation of the newest.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --prefer-binary
# Stamps: set-up is done again only when pyproject.toml has changed since.
READY := .venv/.ready
READY_DEV := .venv/.ready-dev

.PHONY: help demo serve test conformance models rules mine exported bench bench-foundation clean
.DEFAULT_GOAL := help

help:
	@echo "make demo              optimize a small bundled network and show before and after"
	@echo "make serve             the service on http://127.0.0.1:8000"
	@echo "make test              ruff, basedpyright, import contracts, pytest"
	@echo "make conformance       hold the passes to the onnx package's own test models"
	@echo "make models            fetch the real models of benchmarks/models.toml"
	@echo "make rules             find the rules of rules/generated again (goes on where it was stopped)"
	@echo "make mine              export small networks (needs torch), recognize their parts, write rules/mined"
	@echo "                       (EXPORTED=DIR takes the models in DIR)"
	@echo "make bench             superopt against onnxruntime, its peers and merging by hand"
	@echo "                       (EXPORTED=DIR adds networks exported there)"
	@echo "make bench-foundation  optimize the fetched models and print the table"
	@echo "make clean             remove what was made, except .venv and fetched models"

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) not found; try: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit(f"superopt needs Python 3.11 or newer, $(PYTHON) is {v[0]}.{v[1]}; try: make PYTHON=python3.12")'
	@echo "making .venv with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv .venv || { rm -rf .venv; exit 1; }

$(READY): pyproject.toml | $(BIN)/python
	@echo "installing superopt into .venv"
	@$(PIP) -e .
	@touch $@

$(READY_DEV): pyproject.toml | $(BIN)/python
	@echo "installing superopt and its development tools into .venv"
	@$(PIP) -e '.[dev]'
	@touch $@ $(READY)

demo: $(READY)
	@$(BIN)/python benchmarks/sample.py demo/sample.onnx
	@$(BIN)/superopt optimize demo/sample.onnx -o demo/optimized.onnx --report demo/report.json
	@echo "the optimized model is demo/optimized.onnx, the whole report demo/report.json"

serve: $(READY)
	@$(BIN)/superopt serve

# Tests start hundreds of processes: each would compile every module again where none may be kept.
test: export PYTHONDONTWRITEBYTECODE =
test: $(READY_DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	@echo "$(BIN)/basedpyright, beside the tests; what it says comes last"
	@$(BIN)/basedpyright >.venv/types.log 2>&1 & types=$$!; \
	echo "$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal"; $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal; tests=$$?; \
	wait $$types; status=$$?; cat .venv/types.log; [ $$tests -eq 0 ] && [ $$status -eq 0 ]

conformance: $(READY)
	@$(BIN)/python benchmarks/conformance.py --workers $(WORKERS)

models: $(READY)
	@$(BIN)/python benchmarks/fetch.py

GENERATE := $(BIN)/superopt generate-rules --out rules/generated --workers $(WORKERS)
KNOWN := --known rules/generated/pointwise.rules

rules: $(READY)
	$(GENERATE) --recipe pointwise --seconds 3 --candidates 80
	$(GENERATE) --recipe reduce --seconds 3 --candidates 40 $(KNOWN)
	$(GENERATE) --recipe linear --seconds 12 --candidates 16 $(KNOWN)
	$(GENERATE) --recipe layout --seconds 3 --candidates 20 $(KNOWN)
	$(GENERATE) --recipe conv --seconds 12 --candidates 12 $(KNOWN)
	$(GENERATE) --recipe fused --seconds 3 --candidates 24 $(KNOWN)
	$(GENERATE) --recipe taso --seconds 6 --candidates 16 $(foreach r,pointwise reduce linear conv fused,--known rules/generated/$(r).rules)
	$(GENERATE) --recipe aimed --seconds 60 --candidates 30 $(foreach r,pointwise reduce linear layout conv fused taso,--known rules/generated/$(r).rules)
	$(GENERATE) --recipe gates --seconds 60 --candidates 30 $(foreach r,pointwise reduce linear layout conv fused taso aimed,--known rules/generated/$(r).rules)
	$(GENERATE) --recipe kernels
	$(GENERATE) --recipe numbers --seconds 60
	$(GENERATE) --recipe tiles --seconds 150
	$(GENERATE) --recipe macros --seconds 60 $(foreach r,pointwise reduce linear layout conv fused taso aimed gates,--known rules/generated/$(r).rules)
	$(BIN)/superopt rules reduce rules/generated

# In a folder of its own first: what was stopped leaves the rules that ship as they are, and its proofs for the next time.
mine: $(READY) $(if $(EXPORTED),,exported)
	$(BIN)/superopt generate-rules --from $(or $(EXPORTED),exported) --out build/mined --workers $(WORKERS)
	cp build/mined/mined.rules rules/mined/mined.rules

# Small networks of many architectures, by torch's two exporters; those that are there already stay.
exported: .export/.ready
	.export/bin/python benchmarks/spellings.py exported

.export/.ready:
	$(PYTHON) -m venv .export
	.export/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0 onnx onnxscript transformers==5.22.2
	@touch $@

bench: models
	@$(BIN)/python benchmarks/optimizer.py --save $(if $(EXPORTED),--models $(EXPORTED))

bench-foundation: models
	@$(BIN)/python benchmarks/foundation.py --save

clean:
	rm -rf demo build dist *.egg-info .hypothesis .ruff_cache .import_linter_cache
	find . -path ./.venv -prune -o -type d -name __pycache__ -exec rm -rf {} +
