"""A run of all of SWEET-RL's stages, its report and bundles of it. What a critic may know stays in
its artifact: a byte search over everything that they left. And a bundle makes the same bytes again
where agentc is not installed. No stage knows the environment, which is not the one that the method
was made for.

The canaries are the hidden texts themselves: sentences that only `/privileged` says. They are
looked for as text, in other spellings of JSON, and compressed.
"""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from bare_snakemake import made, one_of_each_kind, python_without_agentc, snakemake
from smoke import agentc, require_software

pytestmark = pytest.mark.slow

SPEC = """
agentc: 1
name: hidden
environments:
  city: {backend: guess_my_city, questions: 2}
servers:
  guesser:
    backend: scripted
    max_model_len: 512
    rules:
      - reply: ["Action: Is it Alexandria?", "Action: Is it Ahmedabad?", "Action: Is it in Asia?"]
  own: {backend: transformers, max_model_len: 512}
prompts:
  plain: {instruction: Find out the city.}
models:
  tiny: {backend: scratch, corpus: expert, context: 512, hidden_size: 16, layers: 1, heads: 1,
         vocab_size: 300}
stages:
  expert: {kind: expert, split: train, limit: 8}
  collect: {kind: rollout, server: guesser, model: tiny, split: train, limit: 8, attempts: 6,
            decode: {temperature: 1.0, max_tokens: 64}}
  hidden: {kind: privileged, split: train, limit: 8}
  pairs: {kind: pair, sources: self, rollouts: collect}
  critic: {kind: critic, model: tiny, data: pairs, privileged: hidden, beta: 0.1, nll_weight: 0.01,
           lr: 1e-3, global_batch: 4, max_length: 512, max_steps: 2}
  turns: {kind: sample, server: own, model: tiny, rollouts: collect, limit: 3, candidates: 4,
          decode: {temperature: 1.0, max_tokens: 16}}
  ranked: {kind: rank, server: own, candidates: turns, critic: critic, reference: tiny,
           privileged: hidden, reference_context: privileged}
  better: {kind: pair, turns: ranked, options: {pairs_per_turn: 2}}
  sweet: {kind: dpo, model: tiny, data: better, beta: 0.1, nll_weight: 0.01, lr: 1e-3,
          global_batch: 4, max_length: 512, max_steps: 2}
  end: {kind: evaluate, server: own, model: sweet, split: validation, limit: 3,
        decode: {temperature: 1.0, max_tokens: 16}}
  gain: {kind: compare, of: [end]}
"""
MADE = [
    *("compare", "critic", "dpo", "evaluate", "expert", "model", "pair", "privileged", "rank"),
    *("report", "rollout", "sample"),
]


AGAIN = {"report", "compare", "evaluate", "rollout", "dpo", "pair", "expert"}
"""Kinds of which a result is made again: with a server, without one, and a training."""


def leaks(folder: Path, canaries: list[str]) -> Iterator[Path]:
    """Files that hold a canary, below a folder, but for those of privileged objects' data."""
    words = [word.encode() for word in canaries]
    words += [json.dumps(word)[1:-1].encode() for word in canaries]
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).as_posix()
        if not path.is_file() or ("/objects/privileged/" in f"/{inside}" and "/data/" in inside):
            continue
        content = path.read_bytes()
        if content[:2] == b"\x1f\x8b":
            content += gzip.decompress(content)
        if any(word in content for word in words):
            yield path


@contextmanager
def watched_arguments() -> Iterator[set[bytes]]:
    """What every process was started with that could be seen meanwhile."""
    seen: set[bytes] = set()
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):  # it has ended, or is somebody else's
                    seen.add(path.read_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        over.set()
        watcher.join()


@dataclass(frozen=True, slots=True)
class Finished:
    """The run: its folder with spec and store, what it printed, and with which arguments processes
    were started meanwhile."""

    folder: Path
    said: str
    seen: frozenset[bytes]

    @property
    def spec(self) -> Path:
        return self.folder / "spec.yaml"

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def sent(self) -> Path:
        """A bundle with the results."""
        return self.folder / "sent"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    require_software("trl.critic")
    folder = tmp_path_factory.mktemp("hidden")
    spec, store = folder / "spec.yaml", folder / "store"
    spec.write_text(SPEC)
    with watched_arguments() as seen:
        said = agentc("run", spec, "--store", store, "--plain")
    bundle = ("bundle", spec, "--store", store, "-o")
    said += agentc(*bundle, folder / "plain") + agentc(*bundle, folder / "sent", "--with-results")
    return Finished(folder, said, frozenset(seen))


def test_hidden_texts_are_in_their_artifact_alone(finished: Finished) -> None:
    store = finished.store
    assert sorted(path.name for path in store.glob("objects/*")) == MADE
    [artifact] = store.glob("objects/privileged/*/data/privileged.jsonl")
    canaries = [json.loads(line)["text"] for line in artifact.read_text().splitlines()]
    assert len(canaries) == 8
    assert artifact.stat().st_mode & 0o777 == 0o400
    assert any(b"job_privileged" in words for words in finished.seen)
    assert not any(word.encode() in words for words in finished.seen for word in canaries)
    report = Path(agentc("report", finished.spec, "--store", store).strip())
    said = finished.said + report.read_text()
    assert not any(word in said for word in canaries)
    assert list(leaks(finished.folder, canaries)) == []
    # And the search finds what it looks for: a critic that wrote its rows would be seen.
    [critic] = store.glob("objects/critic/*/data")
    critic.chmod(0o755)
    (critic / "rows.jsonl").write_text(json.dumps({"prompt": canaries[3]}))
    assert [path.name for path in leaks(finished.folder, canaries)] == ["rows.jsonl"]
    (critic / "rows.jsonl").unlink()


def test_a_bundle_has_nothing_to_do_and_makes_the_same_without_agentc(
    finished: Finished, tmp_path: Path
) -> None:
    bundle, expected = finished.sent, made(finished.store)
    python = python_without_agentc(tmp_path)
    subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=bundle, check=True)
    store = bundle / ".agentc" / "store"
    assert made(store) == expected
    assert not (store / "objects" / "privileged").exists()
    assert "Nothing to be done" in snakemake(python, bundle)
    reports = list(store.glob("objects/report/*/data/index.html"))
    readme = (bundle / "README.md").read_text(encoding="utf-8")
    assert [str(path.relative_to(bundle)) in readme for path in reports] == [True]
    # The report is made again, with a result of each kind of job that it is made from.
    lost = one_of_each_kind(store, AGAIN)
    assert lost.keys() == AGAIN
    for name in (*lost.values(), "session"):
        if (store / "objects" / name).exists():
            subprocess.run(["chmod", "-R", "u+w", str(store / "objects" / name)], check=True)
            shutil.rmtree(store / "objects" / name)
    snakemake(python, bundle)
    assert made(store) == expected
    # Jobs ran from the bundle's own packages.
    links = [path.resolve() for path in (store / "code").glob("*/*") if path.is_symlink()]
    assert links
    assert all(path.is_relative_to(bundle / "packages") for path in links)
    assert "Nothing to be done" in snakemake(python, bundle)
    assert "nothing to do" in agentc("run", finished.spec, "--store", store)
