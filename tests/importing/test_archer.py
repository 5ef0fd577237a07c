"""`agentc init --from-archer`: configurations with the keys of the released ones, and invented
values, become specs that are right and hold every key; also on the released files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentc.backend_api import BackendTable, load_backends
from agentc.cli import main
from agentc.compilation import compile_spec
from agentc.diagnostics.sink import Sink
from agentc.importing.archer import KEYS, ImportedSpec, import_archer
from agentc.importing.compose import ConfigurationError, compose
from agentc.plan.render import plan_document

CHECKOUT = os.environ.get("ARCHER_CHECKOUT")

DEFAULT = """\
cache_dir: '/invented/cache'
huggingface_token: ''
wandb_key: ""
policy_lm: "gpt2"
critic_lm: "roberta-base"
agent_type: "archer"
use_baseline: False
use_lora: False
max_new_tokens: 24
save_freq: 5
eval_freq: 4
capacity: 3000 # utterances
rollout_size: 6
eval_size: 3
batch_size: 4
iterations: 30
epochs: 7
actor_epochs: 2
warmup_iter: 9
grad_accum_steps: 8
do_sample: True
temperature: 0.9
critic_lr: 1e-5
lm_lr: 3e-5
env_idx: null
gamma: 0.85
tau: 0.2
max_grad_norm: 0.5
use_wandb: False"""
TOP = "defaults:\n  - default\n  - _self_\n\n"
WORDS = "env_name: twenty_questions\nenv_load_path: '/invented/oracle.pt'\nsave_path: '/invented'\n"
CONFIGURATIONS = {
    "words": WORDS + "checkpoint_path: '/invented/start.pt'\ncritic_lr: 2e-5\nlm_lr: 1e-6\n",
    "city": "env_name: guess_my_city\nenv_load_path: 'x.pt'\ncheckpoint_path: 's.pt'\n",
    "detective": "env_name: adventure\nenv_load_path: 'd.z5'\ncheckpoint_path: 's.pt'\n",
    "webshop": "env_name: webshop\nenv_load_path: 'http://127.0.0.1:3000'\ncheckpoint_path: ''\n"
    "webshop_lower: 20\nwebshop_upper: 30\nrollout_size: 12\n",
    "llm": WORDS + "checkpoint_path: null\nagent_type: archer_llm\nuse_lora: True\neos_str: null\n"
    "policy_lm : 'mistralai/Mistral-7B-Instruct-v0.2'\nactor_epochs: 1\nbatch_size: 2\n",
    "chai": WORDS + "checkpoint_path: 's.pt'\nagent_type: \"chai\"\n",
    "fbc": WORDS + "checkpoint_path: 's.pt'\nagent_type: online_filteredbc\nproject_name: p\n",
}


@pytest.fixture(scope="module")
def table() -> BackendTable:
    return load_backends()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "default.yaml").write_text(DEFAULT)
    for name, text in CONFIGURATIONS.items():
        (tmp_path / f"{name}.yaml").write_text(TOP + text)
    return tmp_path


def imported(path: Path) -> tuple[ImportedSpec, Mapping[str, Any]]:
    """The spec, and the values that it was made of."""
    released = compose(path, Sink())
    values = {key: each.value for key, each in released.items()}
    return import_archer(path.name, released), values


def run_of(spec: ImportedSpec, path: Path, table: BackendTable) -> Mapping[str, Any]:
    """What the run's job is told. The spec has to be without errors and warnings but two: that a
    policy is evaluated on what it learns from, as there, and that the game of Detective is a file
    that is not there."""
    path.write_text(spec.text)
    found = compile_spec(path, {}, table)
    assert {each.code for each in found.diagnostics} <= {"AGC507"}, found.diagnostics
    assert found.plan is not None
    jobs = plan_document(found.plan)["jobs"]
    [run] = [each for each in jobs if each["id"] == "run"]
    return dict(run)


def held(values: Mapping[str, Any], run: Mapping[str, Any]) -> None:
    """Hold a run to a configuration."""
    config, learner = run["config"], run["config"]["learner"]
    method = {"archer_llm": "archer", "online_filteredbc": "filtered_bc"}.get(
        values["agent_type"], values["agent_type"]
    )
    assert run["backend"] == f"{method}.online_rl"
    assert config["iterations"] == values["iterations"]
    assert config["episodes"] == values["rollout_size"]
    assert config["decode"]["max_tokens"] == values["max_new_tokens"]
    assert config["decode"]["temperature"] == values["temperature"]
    assert config["evaluate"]["every"] == values["eval_freq"]
    assert values["eval_size"] in (config["evaluate"]["limit"], config["evaluate"]["attempts"])
    assert run["placement"]["save_every"] == values["save_freq"]
    batch = values["batch_size"] * values["grad_accum_steps"]
    if method != "filtered_bc":
        critic = learner["critic"]
        assert (critic["lr"], critic["updates"]) == (values["critic_lr"], values["epochs"])
        assert (critic["batch"], critic["target_rate"]) == (batch, values["tau"])
        assert critic["max_grad_norm"] == values["max_grad_norm"]
        assert critic["discount"] == values["gamma"]
        assert config["buffer"]["capacity"] == values["capacity"]
    if method == "chai":
        assert (critic["candidates"], critic["rank_with"]) == (5, "target")
        return
    actor = learner["actor"]
    assert (actor["lr"], actor["updates"]) == (values["lm_lr"], values["actor_epochs"])
    assert (actor["batch"], actor["max_grad_norm"]) == (batch, values["max_grad_norm"])
    assert config["warmup"] == values["warmup_iter"]


def named_in(text: str) -> set[str]:
    """The keys that stand behind a setting, or at the head with a reason."""
    remarks = re.findall(r"(?m)# (.*)$", text)
    return {word for each in remarks for word in re.findall(r"\w+", each)}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_configuration_is_a_spec_that_holds_every_key(
    name: str, folder: Path, table: BackendTable
) -> None:
    spec, values = imported(folder / f"{name}.yaml")
    held(values, run_of(spec, folder / f"{name}-spec.yaml", table))
    assert {*values} <= named_in(spec.text)
    assert {*values} <= KEYS
    # What needs no setting has a reason, and what has a setting none.
    settings = spec.text.partition("agentc: 1")[2]
    assert not {*spec.without} & named_in(settings)


def test_numbers_without_a_point_are_numbers_and_later_files_win(folder: Path) -> None:
    _, values = imported(folder / "words.yaml")
    assert (values["critic_lr"], values["lm_lr"], values["gamma"]) == (2e-5, 1e-6, 0.85)
    (folder / "under.yaml").write_text("defaults: [_self_, default]\n" + WORDS + "gamma: 0.5\n")
    assert imported(folder / "under.yaml")[1]["gamma"] == 0.85


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("chai", ["does not start: CHAI reads `eos_str`", "torch 2.6"]),
        ("webshop", ["does not start: `checkpoint_path` is empty", "torch 2.6"]),
        ("fbc", ["torch 2.6", "at its first save, in iteration 5"]),
        ("words", ["torch 2.6"]),
    ],
)
def test_where_the_released_code_ends_is_said(name: str, words: list[str], folder: Path) -> None:
    spec, _ = imported(folder / f"{name}.yaml")
    assert len(spec.crashes) == len(words)
    for crash, word in zip(spec.crashes, words, strict=True):
        assert word in crash
        assert f"# - {crash}\n" in spec.text


def test_an_end_of_replies_makes_chai_start(folder: Path) -> None:
    (folder / "fixed.yaml").write_text(TOP + CONFIGURATIONS["chai"] + 'eos_str: "\\n"\n')
    spec, _ = imported(folder / "fixed.yaml")
    assert [each for each in spec.crashes if "eos_str" in each] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TOP + WORDS + "rollout_sise: 3\n", r"it\.yaml:8: ArCHer has no `rollout_sise`; .*size`"),
        (TOP + WORDS + "epochs: many\n", r"it\.yaml:8: `epochs` has to be a whole number"),
        (TOP + WORDS + "gamma: true\n", r"it\.yaml:8: `gamma` has to be a number"),
        (TOP + WORDS + "agent_type: chay\n", r"it\.yaml:8: there is no agent_type `chay`; .*chai"),
        (TOP + WORDS + "gamma: [1]\n", "`gamma` is not one value"),
        (WORDS, "it.yaml lacks .*takes in the rest"),
        (DEFAULT, "names no task, so it is a base of other files"),
        ("defaults: [default]\n" + WORDS, "with `_self_` among them"),
        ("defaults: [base, _self_]\n" + WORDS, "there is no base.yaml beside it"),
        ("compute_environment: LOCAL\ndistributed_type: MULTI_GPU\n", "is of `accelerate`"),
        ("- a list\n", "a mapping of keys to values"),
        ("defaults: [it, _self_]\n" + WORDS, r"it\.yaml:1: it is based on `it`, which is taken in"),
        ("defaults: [default, default, _self_]\n" + WORDS, "on `default`, which is taken in"),
        ("defaults: [../out, _self_]\n" + WORDS, "names of files beside this one"),
        ("defaults: [/out, _self_]\n" + WORDS, "names of files beside this one"),
        ("defaults: ['', _self_]\n" + WORDS, "names of files beside this one"),
        (TOP + WORDS + "critic_lm: ${policy_lm}\n", r"it\.yaml:8: .*from elsewhere"),
        (TOP + WORDS + "policy_lm: null\n", r"it\.yaml:8: `policy_lm` has to be a model"),
        (TOP + WORDS + "policy_lm: 'a}, b: {c'\n", r"`policy_lm` has to be a model"),
        (TOP + WORDS.replace("twenty_questions", "webshop"), "webshop_upper`, which `webshop` re"),
        (
            TOP + CONFIGURATIONS["webshop"].replace("30", "many"),
            r"`webshop_upper` has to be a whole number",
        ),
    ],
)
def test_what_is_no_configuration_of_a_run_is_refused(
    text: str, message: str, folder: Path
) -> None:
    (folder / "it.yaml").write_text(text)
    with pytest.raises(ConfigurationError, match=message):
        imported(folder / "it.yaml")


def test_files_that_stand_on_each_other_are_refused(folder: Path) -> None:
    (folder / "it.yaml").write_text("defaults: [other, _self_]\n")
    (folder / "other.yaml").write_text("defaults: [it, _self_]\n")
    with pytest.raises(ConfigurationError, match=r"other\.yaml:1: it is based on `it`"):
        imported(folder / "it.yaml")


def test_a_file_whose_name_says_nothing_is_a_spec(folder: Path, table: BackendTable) -> None:
    (folder / "ä.yaml").write_text(TOP + CONFIGURATIONS["llm"])
    run_of(imported(folder / "ä.yaml")[0], folder / "spec.yaml", table)


def test_the_command_writes_a_spec_once_and_no_secret(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = "${oc.env:quite-short-one}"  # of what is no setting it does not matter
    (folder / "own.yaml").write_text(TOP + WORDS + f"huggingface_token: '{secret}'\n")
    assert main(["init", "--from-archer", str(folder / "own.yaml")]) == 0
    shown = capsys.readouterr()
    assert "# - huggingface_token: a gated model takes" in shown.out
    assert secret not in shown.out + shown.err
    assert "as released, it ends in its first iteration" in shown.err
    target = folder / "spec.yaml"
    assert main(["init", "--from-archer", str(folder / "own.yaml"), str(target)]) == 0
    assert target.read_text() == shown.out
    assert main(["init", "--from-archer", str(folder / "own.yaml"), str(target)]) == 2
    assert main(["init", "--from-archer", str(folder / "none.yaml")]) == 1
    assert "cannot read" in capsys.readouterr().err


@pytest.mark.skipif(CHECKOUT is None, reason="ARCHER_CHECKOUT names no checkout of ArCHer")
def test_the_released_files(tmp_path: Path, table: BackendTable) -> None:
    """All nine: seven configure a run, one is what they stand on, one is of accelerate."""
    assert CHECKOUT is not None
    files = sorted((Path(CHECKOUT) / "scripts" / "config").rglob("*.yaml"))
    refused = []
    for path in files:
        try:
            spec, values = imported(path)
        except ConfigurationError:
            refused.append(path.name)
            continue
        held(values, run_of(spec, tmp_path / path.name, table))
        assert {*values} <= named_in(spec.text)
    assert (len(files), refused) == (9, ["default_config.yaml", "default.yaml"])
