"""Trees whose root is the state behind the first turns of another trajectory: a toy for the rules,
real TextCraft for the job, its revisions and what goes on from its paths."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.backends.expert.test_job_expert import CONFIG as EXPERT
from tests.backends.inside.test_same_results import inside
from tests.backends.revise.test_job_revise import CONFIG as REVISE
from tests.backends.revise.test_job_revise import WITHOUT_JUDGE
from tests.backends.rollout.test_job_rollout import CONFIG as ROLLOUT
from tests.backends.rollout.test_job_rollout import MODULE as ROLLOUT_MODULE
from tests.backends.rollout.test_job_rollout import PLACEMENT as ROLLOUT_PLACEMENT
from tests.backends.search.scripted import (
    EPISODE,
    Script,
    Toy,
    drawn,
    grown,
    reach_rules,
    search_rules,
)
from tests.backends.search.test_job_search import CONFIG, MODULE, PLACEMENT

from agentc.runtime.contracts.artifacts import check_artifact
from agentc.runtime.contracts.tree_contracts import tree_findings
from agentc_backends.agents.common.connect import connect
from agentc_backends.agents.common.episode import Reply
from agentc_backends.agents.common.prefixes import Prefix, PrefixSource, PrefixTurn, read_sources
from agentc_backends.agents.common.prompt import Message
from agentc_backends.agents.revise.judge import question
from agentc_backends.agents.revise.trees import read_trees
from agentc_backends.agents.search.root import TreeRoot, roots_behind

CUT = {"cut": "every", "shortest": 1, "longest": None, "max_reward": None, "counted": True}
BEHIND = {**{n: v for n, v in CONFIG.items() if n != "prompt_seed"}, "prefix": CUT, "depth": 6}


def source(*turns: PrefixTurn, name: str = "s") -> PrefixSource:
    return PrefixSource(
        input=0, id=name, task_id="task", prompt_seed=0, task="The game begins.", reward=0.0,
        turns=turns,
    )  # fmt: skip


def turn(action: str, shown: str, reward: float = 0.0) -> PrefixTurn:
    return PrefixTurn(reply=action, told=f"Observation: {shown}", reward=reward)


def behind(*turns: PrefixTurn, counted: bool = False) -> TreeRoot:
    [root] = roots_behind([Prefix(source(*turns), len(turns))], 0, 0, counted=counted)
    return root


def grow(replies: str, root: TreeRoot, **rules: Any) -> tuple[dict[str, Any], Script]:
    script = Script(replies.split())
    return asyncio.run(grown(script, Toy(), rules=search_rules(**rules), root=root)), script


def test_the_root_is_the_state_behind_the_prefix() -> None:
    row, script = grow("b x", behind(turn("c", "c"), turn("a", "c a")))
    assert drawn(row) == [("", 2, 1.0, "dead_end"), ("b", 1, 1.0, "done"), ("x", 1, 0.0, "done")]
    assert row["nodes"][1]["observation"] == "c a b"
    assert [m["content"] for m in script.prompts[0][3:]] == [
        "c", "Observation: c", "a", "Observation: c a",
    ]  # fmt: skip
    assert (row["id"], row["task_id"]) == ("task#0", "task")
    assert row["origin"] == {"input": 0, "id": "s", "turns": 2}
    assert row["prefix"] == [
        {"reply": "c", "action": "c", "observation": "c", "reward": 0.0},
        {"reply": "a", "action": "a", "observation": "c a", "reward": 0.0},
    ]
    assert len(row["messages"]) == 3
    assert list(tree_findings(row, {"reward_range": [0, 1]})) == []
    # Carried out again, for no new node.
    assert (row["budget"]["replayed_steps"], row["budget"]["steps"]) == (2, 2)


@pytest.mark.parametrize(("counted", "deepest"), [(False, 3), (True, 1)])
def test_depth_counts_the_prefix_where_that_is_asked_for(counted: bool, deepest: int) -> None:
    given = (turn("c", "c"), turn("d", "c d"))
    row, _ = grow(" ".join(f"r{n}" for n in range(40)), behind(*given, counted=counted))
    leaves = [node for node in row["nodes"] if node["end"] == "depth"]
    assert {node["depth"] for node in leaves} == {deepest}


def test_a_prefix_counts_towards_the_environments_own_limit() -> None:
    world = Toy()
    world.step_limit = 4
    root = behind(turn("c", "c"), turn("d", "c d"))
    rules = search_rules(children=1, depth=9, iterations=1)
    row = asyncio.run(grown(Script(["c"] * 9), world, rules=rules, root=root))
    assert [(node["depth"], node["end"]) for node in row["nodes"]][-1] == (2, "done")


def test_turns_of_the_prefix_are_forgotten_first() -> None:
    script = Script([f"r{n}" for n in range(8)], room=8)
    rules = search_rules(children=1, depth=1, iterations=1)
    root = behind(turn("c", "c"), turn("d", "c d"))
    asyncio.run(grown(script, Toy(), rules=rules, root=root))
    assert [m["content"] for m in script.prompts[-1][3:]] == [
        "c", "Observation: c d", "r0", "Observation: c d r0",
    ]  # fmt: skip


class Paying(Toy):
    """Pays a quarter for each step, or -1 for `n`."""

    async def begin(self, task_id: str, prompt_seed: int) -> Any:
        session = await super().begin(task_id, prompt_seed)
        stock = session.step

        async def step(action: str) -> Any:
            return replace(await stock(action), reward=-1.0 if action == "n" else 0.25)

        session.step = step  # type: ignore[method-assign]
        return session


@pytest.mark.parametrize(("kind", "last"), [("sum", 0.75), ("latest", 0.25), ("max", 0.25)])
def test_rewards_of_the_prefix_are_part_of_the_score(kind: Any, last: float) -> None:
    root = behind(turn("c", "c", 0.25), turn("d", "c d", 0.25))
    episode = replace(EPISODE, reward_kind=kind)
    rules = search_rules(children=1, depth=0, iterations=1)
    how = reach_rules("replay", 1)
    row = asyncio.run(
        grown(Script(["c"]), Paying(), rules=rules, episode=episode, root=root, how=how)
    )
    assert [node["reward"] for node in row["nodes"]] == [{"sum": 0.5}.get(kind, 0.25), last]
    assert [each["reward"] for each in row["prefix"]] == [0.25, row["nodes"][0]["reward"]]


def test_nothing_is_searched_behind_a_negative_reward() -> None:
    root = behind(turn("n", "n", -1.0))
    row = asyncio.run(grown(Script([]), Paying(), root=root, how=reach_rules("replay", 1)))
    assert drawn(row) == [("", 1, 0.0, "negative")]
    assert list(tree_findings(row, {"reward_range": [0, 1]})) == []


@pytest.mark.parametrize(
    ("turns", "said"),
    [
        ([turn("c", "other")], "turn 1 of 's': 'Observation: c' was 'Observation: other'"),
        ([turn("c", "c"), turn("x", "c x")], "turn 2 of 's': the episode is over there"),
        ([turn("c", "c", 0.5)], "turn 1 of 's': a reward of 0 was 0.5"),
        ([turn("", "c")], "turn 1 of 's': no action can be read from its reply"),
    ],
)
def test_a_prefix_that_leads_elsewhere_is_no_tree(turns: Sequence[PrefixTurn], said: str) -> None:
    world = Toy()
    row = asyncio.run(grown(Script([]), world, root=behind(*turns)))
    assert (row["end"], row["diverged"]) == ("error", True)
    assert row["error"].startswith(said)
    assert list(tree_findings(row, {"reward_range": [0, 1]})) == []
    assert row["budget"]["environment_calls"] == len(world.log)
    assert world.open == 0


def test_a_given_reply_without_an_action_stays_what_it_was() -> None:
    episode = replace(EPISODE, prompt=replace(EPISODE.prompt, reply_format="react"))
    given = PrefixTurn(reply="hm", told="Observation: What?", reward=0.0)
    first = PrefixTurn(reply="Action: a", told="Observation: a", reward=0.0)
    row = asyncio.run(
        grown(Script(["Action: b"] * 2), Toy(), episode=episode, root=behind(first, given))
    )
    assert [(each["action"], each["observation"]) for each in row["prefix"]] == [
        ("a", "a"), ("", "What?"),
    ]  # fmt: skip
    assert drawn(row) == [("", 1, 1.0, "dead_end"), ("b", 1, 1.0, "done")]


def test_trees_behind_one_trajectory_draw_differently() -> None:
    whole = source(turn("c", "c"), turn("d", "c d"), name="s")
    roots = roots_behind([Prefix(whole, 1), Prefix(whole, 2)], 7, 0, counted=True)
    assert [root.id for root in roots] == ["task#0", "task#1"]
    assert len({root.seed for root in roots} | {root.tie_seed for root in roots}) == 4
    [alone] = roots_behind([Prefix(whole, 2)], 7, 0, counted=True)
    assert (alone.seed, alone.tie_seed) == (roots[1].seed, roots[1].tie_seed)


@pytest.fixture
def expert(run_job: Any, tmp_path: Path) -> Any:
    """Expert trajectories of TextCraft's training goals, under prompt seeds of their own."""
    lease = {"environment": inside("textcraft", tmp_path / "account")}
    config = {**EXPERT, "split": "train", "limit": 3, "attempts": 1, "prompt": CONFIG["prompt"]}
    done = run_job(
        "agentc_backends.agents.expert.job_expert", config, leases=lease,
        staging=tmp_path / "expert",
    )  # fmt: skip
    assert done.code == 0, done.output
    return done


def leases(policy: Any, folder: Path) -> dict[str, Any]:
    return {"policy": policy.lease, "environment": inside("textcraft", folder)}


def trees(done: Any) -> list[dict[str, Any]]:
    """The rows without what they have cost."""
    return [{k: v for k, v in row.items() if k != "budget"} for row in done.rows("trees.jsonl")]


def test_job_grows_a_tree_behind_every_prefix(
    run_job: Any, policy: Any, expert: Any, tmp_path: Path
) -> None:
    acting, found = policy(), []
    ways = [{"concurrency": 1}, {"reach": "replay", "concurrency": 3}, {"concurrency": 16}]
    for number, way in enumerate(ways):
        done = run_job(
            MODULE, BEHIND, placement={**PLACEMENT, **way}, inputs={"prefixes": [expert.data]},
            leases=leases(acting, tmp_path / f"e{number}"), staging=tmp_path / str(number),
        )  # fmt: skip
        assert done.code == 0, done.output
        found.append(trees(done))
    assert found[0] == found[1] == found[2]
    check_artifact("SearchTrees", done.data, {"reward_range": [0, 1]}, {}, done.facts)
    wanted = [
        (row["id"], given)
        for row in expert.rows("trajectories.jsonl")
        for given in range(1, min(row["turns"] - 1, BEHIND["depth"]) + 1)
    ]
    assert [(row["origin"]["id"], row["origin"]["turns"]) for row in found[0]] == wanted
    facts = done.facts
    assert facts["prefixes"] == facts["trees"] == len(wanted) > 4
    assert (facts["diverged"], facts["errors"]) == (0, 0)
    assert facts["prefix_turns"] == sum(given for _, given in wanted)
    deepest = {row["origin"]["turns"]: row["nodes"][-1]["depth"] for row in found[0]}
    for row in found[0]:
        own = max(node["depth"] for node in row["nodes"])
        assert row["origin"]["turns"] + own <= BEHIND["depth"] + 1, deepest


def test_every_node_shows_what_its_actions_lead_to(
    run_job: Any, policy: Any, expert: Any, tmp_path: Path
) -> None:
    """An oracle: a fresh session that carries out the prefix and the path of a node sees what the
    node says."""
    config = {**BEHIND, "limit": 2, "iterations": 2}
    done = run_job(
        MODULE, config, placement=PLACEMENT, inputs={"prefixes": [expert.data]},
        leases=leases(policy(), tmp_path / "e"), staging=tmp_path / "trees",
    )  # fmt: skip
    assert done.code == 0, done.output
    rows = done.rows("trees.jsonl")
    lease = {"environment": inside("textcraft", tmp_path / "here")}

    async def check(row: dict[str, Any], world: Any) -> int:
        nodes, seen = {node["id"]: node for node in row["nodes"]}, 0
        for node in row["nodes"]:
            if not node["action"] or node["id"] in {each["parent"] for each in row["nodes"]}:
                continue
            path = []
            while node["parent"] is not None:
                path.insert(0, node)
                node = nodes[node["parent"]]
            async with world.open(row["task_id"], row["prompt_seed"]) as session:
                for each in (*row["prefix"], *path):
                    if each["action"]:
                        step = await session.step(each["action"])
                        assert (step.observation, step.reward) == (
                            each["observation"], each["reward"],
                        )  # fmt: skip
            seen += 1
        return seen

    async def check_all() -> int:
        async with connect(lease, None, 1) as servers:
            return sum([await check(row, servers.world) for row in rows])

    assert asyncio.run(check_all()) > 20


def test_a_tampered_source_fails_the_job_or_costs_its_trees(
    run_job: Any, policy: Any, expert: Any, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    rows = expert.rows("trajectories.jsonl")
    rows[0]["messages"][rows[0]["prompt_length"] + 1]["content"] = "Observation: A dragon."
    (other / "trajectories.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    more: dict[str, Any] = {"inputs": {"prefixes": [other]}, "leases": leases(policy(), other)}
    done = run_job(MODULE, BEHIND, placement=PLACEMENT, staging=tmp_path / "none", **more)
    assert done.code == 1, done.output
    assert "prefixes led elsewhere when they were played again" in done.output
    budget = {**PLACEMENT, "error_budget": 0.9}
    done = run_job(MODULE, BEHIND, placement=budget, staging=tmp_path / "some", **more)
    assert done.code == 0, done.output
    check_artifact("SearchTrees", done.data, {"reward_range": [0, 1]}, {}, done.facts)
    apart = [row for row in done.rows("trees.jsonl") if row.get("diverged")]
    assert {row["origin"]["id"] for row in apart} == {rows[0]["id"]}
    assert len(apart) == done.facts["diverged"] == done.facts["errors"] > 0


def spoken(row: dict[str, Any]) -> list[str]:
    """The replies of a trajectory."""
    turns = row["messages"][row["prompt_length"] :]
    return [m["content"] for m in turns if m["role"] == "assistant"]


class Rest:
    """The rest of an expert's trajectory, or a wrong turn: a tree with an end of each kind."""

    def __init__(self, row: dict[str, Any]) -> None:
        self._replies = spoken(row)
        self._first = row["prompt_length"]
        self._asked = 0

    async def reply(self, messages: Sequence[Message], seed: int, affinity: str) -> Reply:
        done = (len(messages) - self._first) // 2
        self._asked += 1
        wrong = f"Thought: hm\nAction: get {self._asked} oak log"
        right = self._replies[min(done, len(self._replies) - 1)]
        return Reply(right if self._asked % 2 else wrong, "stop", 1, 1)


@pytest.fixture
def grown_behind(expert: Any, tmp_path: Path) -> Path:
    """Trees behind each prefix of the longest expert trajectory, grown in TextCraft by a policy
    that knows the way and leaves it."""
    row = max(expert.rows("trajectories.jsonl"), key=lambda each: each["turns"])
    lease = {"environment": inside("textcraft", tmp_path / "here")}
    prompt = replace(
        EPISODE.prompt, instruction="Craft things.", acknowledgement="OK", reply_format="react"
    )
    [whole], _ = read_sources([[row]], "Observation: ")
    prefixes = [Prefix(whole, length) for length in range(1, row["turns"])]

    async def grow_all() -> list[dict[str, Any]]:
        async with connect(lease, None, 1) as servers:
            return [
                await grown(
                    Rest(row), servers.world, rules=search_rules(depth=8, iterations=4), root=root,
                    episode=replace(EPISODE, prompt=prompt),
                )
                for root in roots_behind(prefixes, 0, 0, counted=False)
            ]  # fmt: skip

    folder = tmp_path / "grown"
    folder.mkdir()
    rows = asyncio.run(grow_all())
    (folder / "trees.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    return folder


def test_revisions_keep_the_prefix_and_never_train_it(
    run_job: Any, grown_behind: Path, environment: Any, tmp_path: Path
) -> None:
    config = {**REVISE, **WITHOUT_JUDGE, "verify": "mark", "max_revision": None}
    done = run_job(
        "agentc_backends.agents.revise.job_revise", config, inputs={"trees": [grown_behind]},
        placement={"concurrency": 8, "error_budget": 0.0},
        leases={"environment": environment.lease}, staging=tmp_path / "revise",
    )  # fmt: skip
    assert done.code == 0, done.output
    check_artifact("SFTDataset", done.data, {"reward_range": [0, 1]}, {}, done.facts)
    found = [json.loads(line) for line in (grown_behind / "trees.jsonl").read_text().splitlines()]
    known = {f"{row['id']}#0": row for row in found}
    rows = done.rows("rows.jsonl")
    assert {row["part"] for row in rows} == {"direct", "good"}
    assert len({row["id"].rsplit("/", 1)[0] for row in rows}) == len(found) > 1
    for row in rows:
        tree = known[row["id"].rsplit("/", 1)[0]]
        given = len(tree["prefix"])
        assert row["origin"] == tree["origin"]
        turns = row["messages"][row["prompt_length"] :]
        replies = [m for m in turns if m["role"] == "assistant"]
        assert [m["content"] for m in replies[:given]] == [t["reply"] for t in tree["prefix"]]
        assert [m["loss"] for m in replies[:given]] == [False] * given
        assert [m["content"] for m in turns[1 : 2 * given : 2]] == [
            f"Observation: {t['observation']}" for t in tree["prefix"]
        ]
        own = [m.get("loss") for m in replies[given:]]
        if row["part"] == "good":
            assert set(own) == {None}
        else:
            assert own == sorted(own)
            assert set(own) == {False, True}
            # The prefix is no action of the bad path.
            assert row["bad_actions"] == own.count(False)
    # Carried out from the start of the task, prefix included, splices reach their reward.
    assert done.facts["verified"] > 0
    assert set(done.facts["unverified"]) <= {"ended_early"}


def test_the_judge_is_asked_about_the_policys_actions_alone(grown_behind: Path) -> None:
    rows = [json.loads(line) for line in (grown_behind / "trees.jsonl").read_text().splitlines()]
    [tree], _ = read_trees([rows[1:2]])
    steps = tree.steps(tree.leaves[0].id)
    asked = question(tree, steps, 0)
    assert f"Current step:\nAction: {steps[0].action}\n" in asked
    log = asked.split("Log:\n")[1].split("\n\nCurrent step")[0]
    assert log == "\n".join(
        f"Action: {t['action']}\nObservation: {t['observation']}" for t in rows[1]["prefix"]
    )
    cut = question(tree, steps, 0, oldest=1)
    assert "(1 earlier steps are left out)" in cut
    assert rows[1]["prefix"][0]["observation"] not in cut


def test_paths_of_such_trees_are_gone_on_from_and_answer(
    run_job: Any, policy: Any, grown_behind: Path, tmp_path: Path
) -> None:
    config = {
        **{n: v for n, v in ROLLOUT.items() if n not in ("prompt_seed", "prompt_per_attempt")},
        "attempts": 1, "max_turns": 30, "prefix": CUT, "split": "train",
        "prompt": CONFIG["prompt"],
    }  # fmt: skip
    done = run_job(
        ROLLOUT_MODULE, config, placement={**ROLLOUT_PLACEMENT, "same_state": "observation"},
        inputs={"prefixes": [grown_behind]}, leases=leases(policy(), tmp_path / "b"),
        staging=tmp_path / "behind",
    )  # fmt: skip
    assert done.code == 0, done.output
    assert done.facts["diverged"] == 0
    rows = [json.loads(line) for line in (grown_behind / "trees.jsonl").read_text().splitlines()]
    known = {row["id"]: row for row in rows}
    played = done.rows("trajectories.jsonl")
    assert {row["origin"]["id"].split("@")[0] for row in played} == set(known)
    for row in played:
        tree = known[row["origin"]["id"].split("@")[0]]
        shared = min(len(tree["prefix"]), row["origin"]["turns"])
        assert spoken(row)[:shared] == [t["reply"] for t in tree["prefix"]][:shared]
    # A cut within what all paths of a tree share is one prefix.
    assert sum(
        row["origin"]["id"].split("@")[0] == rows[-1]["id"] and row["origin"]["turns"] == 1
        for row in played
    ) == 1  # fmt: skip
    measured = run_job(
        "agentc_backends.agents.measure.job_measure",
        {
            "answer": "best_leaf", "success_at": None, "confidence": 0.95, "success": 1.0,
            "environment": "textcraft", "reward_range": [0.0, 1.0],
        },
        inputs={"of": [grown_behind]}, staging=tmp_path / "measured",
    )  # fmt: skip
    assert measured.code == 0, measured.output
    metrics = json.loads((measured.data / "metrics.json").read_text("utf-8"))
    assert (metrics["n"], metrics["n_tasks"]) == (len(rows), 1)
    assert metrics["reward"]["mean"] == 1.0
    [steps] = metrics["step_rewards"].values()
    assert list(steps) == [str(len(row["prefix"])) for row in rows]
