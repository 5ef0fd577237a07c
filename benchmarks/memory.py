"""`python -m benchmarks.memory [--only ID] [--write PAGE [--add]]`: the memory that trainings and
the embedded server take on a processor, against what `agentc.memory` says they will. With `--add`,
only what the page does not show yet.

Measured is the peak of what the process that holds the model holds itself (`held_memory.py`), less
that of the same program with a model of next to nothing. glibc is told to give every larger block
back when it is freed (MALLOC_MMAP_THRESHOLD_), so that what counts is what is held, not what lies
about.
Neighbour: `memory_sizes.py`, what is measured.
"""

from __future__ import annotations

import argparse
import array
import json
import math
import os
import random
import shutil
import string
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentc.backend_api import (
    Architecture,
    OptionView,
    ServerBackend,
    StageBackend,
    load_backends,
)
from agentc.memory import MemoryNeed
from agentc.runtime.software.job_software import code_directory, job_variables
from agentc.runtime.store.layout import StoreLayout
from benchmarks.held_memory import HeldMemory, mapped
from benchmarks.memory_sizes import (
    NOTHING,
    SERVED,
    SERVER,
    SHARED,
    SIZES,
    TRAINERS,
    MemorySize,
    counted,
    shape_of,
)
from benchmarks.processes import CommandError
from benchmarks.reduced import ROOT
from benchmarks.training_jobs import Stages, write_rows

BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
_ROWS = 4
_PATIENCE_S = 600
_MALLOC = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}
_BLOCK = 1 << 16
_ASKED = 400
"""Letters of a text that the server is asked about: its buffers are for whole conversations, so
that many short ones fill its cache better than a few long ones."""
_LETTERS = string.ascii_lowercase + string.digits


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Bytes that were counted, and those that were measured."""

    backend: str
    size: MemorySize
    need: MemoryNeed
    measured: float

    @property
    def error(self) -> float:
        """How much more is counted than was measured, as a share."""
        return self.need.device / self.measured - 1


def measure(
    folder: Path,
    only: Sequence[str],
    say: Callable[[str], None] = lambda line: None,
    *,
    sizes: Sequence[MemorySize] = SIZES,
    known: Container[tuple[str, str]] = (),
) -> Iterator[Measurement]:
    """Every size of every trainer, then of the server, but those `known` by backend and name.
    Raises CommandError."""
    bench = _Bench(folder)
    for backend in TRAINERS:
        left = [size for size in sizes if (backend, size.name) not in known]
        if not left or (only and backend not in only):
            continue
        base = bench.trained(backend, NOTHING)
        for size in left:
            found = bench.trained(backend, size)
            said = Measurement(
                backend=backend,
                size=size,
                need=found[1],
                measured=found[0] - base[0] + base[1].device,
            )
            say(_line(said))
            yield said
    left = [size for size in SERVED if (SERVER, size.name) not in known]
    if left and (not only or SERVER in only):
        nothing = MemorySize(name="", model=NOTHING.model, settings={"cache_mb": 16})
        base = bench.served(nothing)
        for size in left:
            found = bench.served(size)
            # The cache of the smallest server is hardly filled.
            less = sum(part.size for part in base[1].parts if part.name != "keys and values")
            said = Measurement(
                backend=SERVER, size=size, need=found[1], measured=found[0] - base[0] + less
            )
            say(_line(said))
            yield said


class _Bench:
    """Runs trainings and servers in a folder."""

    def __init__(self, folder: Path) -> None:
        self.table = load_backends()
        self.stages = Stages(folder)
        self.folder = folder
        random.seed(7)
        rows = [_row(number) for number in range(_ROWS)]
        self.data = {
            "sft": write_rows(folder / "rows", "rows.jsonl", rows),
            "dpo": write_rows(folder / "pairs", "pairs.jsonl", map(_pair, rows)),
        }
        self.start = self.stages.run(
            "tokenizer",
            self.stage_backend("model.scratch"),
            {"hidden_size": 32, "layers": 1, "heads": 1, "context": 8192, "vocab_size": 300},
            {"corpus": [self.data["sft"]]},
        )
        self.count = 0

    def stage_backend(self, name: str) -> StageBackend:
        found = self.table.backends[name]
        assert isinstance(found, StageBackend)
        return found

    def trained(self, name: str, size: MemorySize) -> tuple[float, MemoryNeed]:
        """Peak in bytes, and what was counted."""
        backend = self.stage_backend(name)
        settings = {**SHARED, **TRAINERS[name], **size.settings}
        self.count += 1
        _, peak = self.stages.measured(
            f"training-{self.count}",
            backend,
            settings,
            {"model": [self.model(size)], "data": [self.data[backend.kind]]},
            _MALLOC,
        )
        return float(peak), counted(self.table, name, size)

    def served(self, size: MemorySize) -> tuple[float, MemoryNeed]:
        """Peak in bytes of all processes of a server whose cache was filled, and the count."""
        backend = self.table.backends[SERVER]
        assert isinstance(backend, ServerBackend)
        view = OptionView(table=backend.fields, values=dict(size.settings))
        lease = backend.lease(view)
        assert lease.software is not None
        self.count += 1
        ready = self.folder / f"ready-{self.count}.json"
        words = {"model": str(self.model(size)), "served_name": "policy", "host": "127.0.0.1"}
        program = [w.format(**words, ready_file=str(ready)) for w in lease.program]
        code = code_directory(StoreLayout(self.folder), ["agentc", "agentc_backends"])
        process = subprocess.Popen(
            [self.stages.python(lease.software), *program],
            env={**job_variables(code, 1, False, {}), **lease.variables, **_MALLOC},
            stdout=subprocess.DEVNULL,
        )
        try:
            with HeldMemory(process.pid) as memory:
                address = _address(ready, process)
                shape = shape_of(size)
                tokens = size.settings["cache_mb"] * 2**20 / _token_bytes(shape, size.settings)
                _fill(address, tokens, _ASKED)
            peak = sum(memory.peaks.values()) + mapped(process.pid, ".safetensors")
        finally:
            process.terminate()
            process.wait(_PATIENCE_S)
        return float(peak), counted(self.table, SERVER, size)

    def model(self, size: MemorySize) -> Path:
        """A checkpoint of that shape, with the tokenizer of the smallest model."""
        folder = self.folder / f"model-{self.count}"
        shutil.copytree(self.start / "data", folder)
        shape = shape_of(size)
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        config |= {
            "vocab_size": shape.vocabulary,
            "hidden_size": shape.hidden,
            "num_hidden_layers": shape.layers,
            "num_attention_heads": shape.heads,
            "num_key_value_heads": shape.kv_heads,
            "head_dim": shape.head_size,
            "intermediate_size": shape.intermediate,
            "tie_word_embeddings": shape.tied,
        }
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        write_weights(folder / "model.safetensors", shape)
        return folder


def write_weights(path: Path, shape: Architecture) -> None:
    """Small random float32 weights of a Llama: to start transformers for each size would take
    longer than to train it."""
    wide, deep = shape.hidden, shape.intermediate
    sizes = {
        "model.embed_tokens.weight": [shape.vocabulary, wide],
        "model.norm.weight": [wide],
        "lm_head.weight": [shape.vocabulary, wide],
    }
    for layer in range(shape.layers):
        for name, size in {
            "input_layernorm": [wide],
            "post_attention_layernorm": [wide],
            "self_attn.q_proj": [shape.queries, wide],
            "self_attn.k_proj": [shape.keys, wide],
            "self_attn.v_proj": [shape.keys, wide],
            "self_attn.o_proj": [wide, shape.queries],
            "mlp.gate_proj": [deep, wide],
            "mlp.up_proj": [deep, wide],
            "mlp.down_proj": [wide, deep],
        }.items():
            sizes[f"model.layers.{layer}.{name}.weight"] = size
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, size in sizes.items():
        start, end = end, end + 4 * math.prod(size)
        header[name] = {"dtype": "F32", "shape": size, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    block = array.array("f", (random.gauss(0, 0.02) for _ in range(_BLOCK))).tobytes()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for left in range(end, 0, -len(block)):
            file.write(block[:left])


def _text(length: int) -> str:
    return "".join(random.choices(_LETTERS + " ", k=length))


def _row(number: int) -> dict[str, Any]:
    """A row of more tokens than any size takes."""
    return {
        "id": f"r{number}",
        "task_id": f"r{number}",
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": _text(12_000)},
        ],
        "prompt_length": 1,
        "reward": 1.0,
        "source": "expert",
    }


def _pair(row: Mapping[str, Any]) -> dict[str, Any]:
    prompt, reply = row["messages"]
    other = {"role": "assistant", "content": _text(12_000)}
    return {
        "id": row["id"],
        "task_id": row["task_id"],
        "prompt": [prompt],
        "chosen": [reply],
        "rejected": [other],
    }


def _token_bytes(shape: Architecture, settings: Mapping[str, Any]) -> int:
    width = 2 if settings.get("dtype", "float32") != "float32" else 4
    return 2 * shape.layers * shape.keys * width


def _address(ready: Path, process: subprocess.Popen[bytes]) -> str:
    end = time.monotonic() + _PATIENCE_S
    while not ready.exists():
        if process.poll() is not None or time.monotonic() > end:
            raise CommandError("the server did not start")
        time.sleep(0.1)
    said = json.loads(ready.read_text(encoding="utf-8"))
    return f"http://{said['host']}:{said['port']}"


def _fill(address: str, tokens: float, longest: int) -> None:
    """Ask for replies to texts of their own, until that many tokens are in the cache."""
    asked = 0.0
    while asked < 1.1 * tokens:
        body = {"model": "policy", "prompt": _text(longest), "max_tokens": 1, "temperature": 0}
        request = urllib.request.Request(
            f"{address}/v1/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=_PATIENCE_S) as answer:
            asked += json.load(answer)["usage"]["prompt_tokens"]


def _line(found: Measurement) -> str:
    return (
        f"{found.backend:20} {found.size.name:34} counted {found.need.device / 1e6:6.0f} MB, "
        f"measured {found.measured / 1e6:6.0f} MB, {found.error:+.1%}"
    )


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def lines_of(table: str) -> dict[tuple[str, str], str]:
    """The lines of a table as `markdown` makes it, by backend and name of the size."""
    lines = table.strip().splitlines()[2:]
    cells = [[cell.strip() for cell in line.split("|")] for line in lines]
    return {(row[1], row[2]): line for row, line in zip(cells, lines, strict=True)}


def markdown(found: Iterable[Measurement], known: Mapping[tuple[str, str], str]) -> str:
    """The table: a line for each size of each backend, of now or `known` from before."""
    lines = ["| | what weighs | weights | counted, MB | measured, MB | error | most of it |",
             "|---|---|---|---|---|---|---|"]  # fmt: skip
    made = dict(known)
    for each in found:
        parts = sorted(each.need.parts, key=lambda part: -part.size)[:3]
        most = ", ".join(f"{part.name} {part.size / 1e6:.0f}" for part in parts)
        count = shape_of(each.size).parameters / 1e6
        made[each.backend, each.size.name] = (
            f"| {each.backend} | {each.size.name} | {count:.1f}M | {each.need.device / 1e6:.0f} | "
            f"{each.measured / 1e6:.0f} | {each.error:+.0%} | {most} |"
        )
    order = [(backend, size.name) for backend in TRAINERS for size in SIZES]
    order += [(SERVER, size.name) for size in SERVED]
    return "\n".join([*lines, *(made[each] for each in order if each in made)])


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when every count is within 15% of what was measured, 1 when not."""
    parser = argparse.ArgumentParser(prog="benchmarks.memory", description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="ID", help="a backend")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page")
    parser.add_argument("--add", action="store_true", help="measure what that page lacks")
    options = parser.parse_args(arguments)
    if options.add and options.write is None:
        parser.error("--add goes with --write")
    before, known, after = "", {}, ""
    if options.write is not None:
        before, rest = options.write.read_text(encoding="utf-8").split(BEGIN)
        written, after = rest.split(END)
        known = lines_of(written) if options.add else {}
    os.environ.setdefault("AGENTC_SOFTWARE", str(ROOT / ".agentc" / "software"))
    with tempfile.TemporaryDirectory(prefix="agentc-memory-") as folder:
        try:
            found = list(measure(Path(folder), options.only, _say, known=known))
        except CommandError as error:
            print(error, file=sys.stderr)
            return 1
    table = markdown(found, known)
    if options.write is None:
        print(table)
    else:
        options.write.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")
    return 1 if any(abs(each.error) > 0.15 for each in found) else 0


if __name__ == "__main__":
    sys.exit(main())
