"""Prefixes: the first turns of trajectories, or of paths of search trees, with which episodes and
trees begin (docs/design/prefixes.md): read and cut, compared with what their actions lead to when
they are carried out again, and counted. Rows in; prefixes in the order of the inputs out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from agentc.kinds.interaction import PrefixSettings
from agentc.program.artifact_files import TRAJECTORIES_FILE, TREES_FILE
from agentc.program.job import Job, read_rows
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.common.seeds import draw_length

Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixTurn:
    """A turn as its source has it: the reply, and the message that the agent received as its
    `answer`.

    `actions` are what the environment was given, none or one; None where that has to be read from
    the reply. `reward` is what the step paid, `score` that of the episode so far; a source knows
    one of them. `cut`: the reply ran into its limit. `raw` is the whole text of a reply of which
    only part was seen.
    """

    reply: str
    answer: str
    actions: tuple[str, ...] | None = None
    reward: float | None = None
    score: float | None = None
    cut: bool = False
    raw: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixSource:
    """A trajectory that is cut; `task` is the message that its first reply answers. Of a path in
    a `tree`, `nodes` are those that its turns are, so that what two paths share is taken once."""

    input: int
    id: str
    task_id: str
    prompt_seed: int
    task: str
    reward: float | None
    turns: tuple[PrefixTurn, ...]
    tree: str = ""
    nodes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Prefix:
    """The first `length` turns of a source."""

    source: PrefixSource
    length: int

    @property
    def turns(self) -> tuple[PrefixTurn, ...]:
        return self.source.turns[: self.length]

    def origin(self) -> dict[str, Any]:
        """What a trajectory says of its prefix (docs/design/contracts.md, section 4)."""
        return {"input": self.source.input, "id": self.source.id, "turns": self.length}


@dataclass(frozen=True, slots=True, kw_only=True)
class CutRules(PrefixSettings):
    """Where trajectories are cut. `most` is the longest prefix that leaves a turn to the policy;
    None where its turns do not count."""

    seed: int
    most: int | None


def read_sources(
    inputs: Sequence[Sequence[Row]], observation_prefix: str
) -> tuple[list[PrefixSource], Counter[str]]:
    """The trajectories of all inputs, in order, and how many were left out, by the reason. Agents
    were told what a tree's environment showed behind the `observation_prefix`."""
    left_out: Counter[str] = Counter()
    sources: list[PrefixSource] = []
    for number, rows in enumerate(inputs):
        for row in rows:
            if row["end"] == "error":
                left_out["error"] += 1
            elif "nodes" in row:
                sources += _paths(row, number, observation_prefix)
            else:
                sources.append(_trajectory(row, number))
    return sources, left_out


def cut_sources(
    sources: Sequence[PrefixSource], rules: CutRules, tasks: Sequence[str], left_out: Counter[str]
) -> list[Prefix]:
    """The prefixes of a stage, by the task's place in the split, then by source and length. Counts
    in `left_out` what is none: of another task, of too large a reward, or too short to be cut."""
    places = {task_id: place for place, task_id in enumerate(tasks)}
    found: list[Prefix] = []
    seen: set[tuple[int, str, tuple[int, ...]]] = set()
    for source in sources:
        if source.task_id not in places:
            left_out["other_task"] += 1
            continue
        if rules.max_reward is not None and (
            source.reward is None or source.reward > rules.max_reward
        ):
            left_out["above_max_reward"] += 1
            continue
        lengths = _lengths(source, rules)
        if not lengths:
            left_out["too_short"] += 1
        for length in lengths:
            if source.nodes:
                node = (source.input, source.tree, source.nodes[:length])
                if node in seen:
                    left_out["shared"] += 1
                    continue
                seen.add(node)
            found.append(Prefix(source, length))
    return sorted(found, key=lambda prefix: places[prefix.source.task_id])


def _lengths(source: PrefixSource, rules: CutRules) -> Sequence[int]:
    """Lengths of the prefixes of a source: each leaves the source's last turn to be done again."""
    bounds = (len(source.turns) - 1, rules.longest, rules.most)
    longest = min(bound for bound in bounds if bound is not None)
    lengths = range(rules.shortest, longest + 1)
    if rules.cut == "every" or not lengths:
        return lengths
    return [draw_length(rules.seed, source.input, source.id, lengths)]


def _trajectory(row: Row, number: int) -> PrefixSource:
    first = row["prompt_length"]
    messages = [*row["messages"][first:], {"content": row.get("last_observation") or ""}]
    turns = [
        PrefixTurn(
            reply=reply["content"],
            answer=answer["content"],
            reward=reward,
            cut=reply.get("cut", False),
            raw=reply.get("raw"),
        )
        for reply, answer, reward in zip(
            messages[::2], messages[1::2], row["rewards"], strict=False
        )
    ]
    return PrefixSource(
        input=number,
        id=row["id"],
        task_id=row["task_id"],
        prompt_seed=row["prompt_seed"],
        task=row["messages"][first - 1]["content"] if first else "",
        reward=row["reward"],
        turns=tuple(turns),
    )


def _paths(row: Row, number: int, observation_prefix: str) -> Iterator[PrefixSource]:
    """One source for each end of an attempt: a terminal node without children. What came before
    the tree's root belongs to all of its paths."""
    given = row.get("prefix", ())
    before = tuple(_node_turn(turn, observation_prefix) for turn in given)
    nodes = {node["id"]: node for node in row["nodes"]}
    children: dict[int | None, list[int]] = defaultdict(list)
    for node in row["nodes"]:
        children[node["parent"]].append(node["id"])
    for leaf in row["nodes"]:
        if not leaf["terminal"] or children[leaf["id"]]:
            continue
        path: list[Row] = []
        node = leaf
        while node["parent"] is not None:
            path.insert(0, node)
            node = nodes[node["parent"]]
        yield PrefixSource(
            input=number,
            id=f"{row['id']}@{leaf['id']}",
            task_id=row["task_id"],
            prompt_seed=row["prompt_seed"],
            task=row["messages"][-1]["content"],
            reward=leaf["reward"],
            turns=(*before, *(_node_turn(node, observation_prefix) for node in path)),
            tree=row["id"],
            # Turns before the root are numbered as no node is.
            nodes=(*range(-len(before), 0), *(node["id"] for node in path)),
        )


def _node_turn(node: Row, observation_prefix: str) -> PrefixTurn:
    return PrefixTurn(
        reply=node["reply"],
        answer=observation_prefix + node["observation"],
        actions=(node["action"],) if node["action"] else (),
        score=node["reward"],
        cut=node.get("cut", False),
    )


SameState: TypeAlias = Literal["observation", "reward"]
"""What must be equal when actions are carried out again; `reward` leaves the texts out."""

_SAME = 1e-6
"""Rewards that differ by less are equal: sums of floats differ by rounding."""

EPISODE_OVER = "the episode is over there"


def task_difference(source: PrefixSource, shown: str, same: SameState) -> str | None:
    """A sentence where the environment's first text is none of the source's task."""
    task = shown.split()
    if same == "reward" or source.task.split()[-len(task) :] == task:
        return None
    return f"the task {source.task_id!r} reads differently than in {source.id!r}"


def missing_action(turn: PrefixTurn, told: str) -> str | None:
    """The same for a reply in which no action is found, where the agent would be `told` so."""
    if told.split() == turn.answer.split():
        return None
    return "no action can be read from its reply, which led to " + repr(_short(turn.answer))


def answer_difference(
    turn: PrefixTurn, told: str, reward: float, score: float, same: SameState
) -> str | None:
    """The same for the answer to a turn's action: what the agent was `told`, the `reward` of the
    step, and the `score` of the episode so far."""
    if same == "observation" and told.split() != turn.answer.split():
        return f"{_short(told)!r} was {_short(turn.answer)!r}"
    if turn.reward is not None and abs(reward - turn.reward) > _SAME:
        return f"a reward of {reward:g} was {turn.reward:g}"
    if turn.score is not None and abs(score - turn.score) > _SAME:
        return f"a reward so far of {score:g} was {turn.score:g}"
    return None


def at_turn(number: int, source: PrefixSource, wrong: str) -> str:
    """A difference with the place where it was found; turns count from 1."""
    return f"turn {number} of {source.id!r}: {wrong}"


def _short(text: str) -> str:
    return text if len(text) <= 120 else text[:117] + "..."


def job_prefixes(
    job: Job,
    observation_prefix: str,
    tasks: Sequence[str],
    settings: PrefixSettings,
    seed: int,
    longest: int,
) -> list[Prefix]:
    """The prefixes of the job's input, by place of the task; none is longer than `longest` where
    its turns are counted. Raises FatalError where there is none."""
    inputs = [_sources(folder) for folder in job.inputs("prefixes")]
    sources, left_out = read_sources(inputs, observation_prefix)
    most = longest if settings.counted else None
    cuts = CutRules(**asdict(settings), seed=seed, most=most)
    prefixes = cut_sources(sources, cuts, tasks, left_out)
    counts = {name: count for name, count in sorted(left_out.items()) if count}
    job.facts(prefixes=len(prefixes), prefixes_left_out=counts)
    if not prefixes:
        raise FatalError(
            f"not one of {sum(map(len, inputs))} trajectories or trees has a prefix to continue "
            f"from; left out: {counts}. `prefix` says which are cut, and where"
        )
    return prefixes


@dataclass(slots=True)
class Divergences:
    """Prefixes that led elsewhere when they were played again, of `total`; `allowed` of them are
    within the error budget."""

    total: int
    error_budget: float
    _met: list[str] = field(default_factory=list)

    def check(self, row: Row) -> Row:
        """The row itself. Raises FatalError where it is one too many: another run would meet the
        same."""
        if row.get("diverged"):
            self._met.append(row["error"])
            allowed = int(self.error_budget * self.total + 1e-9)
            if len(self._met) > allowed:
                raise FatalError(self._too_many(allowed))
        return row

    def _too_many(self, allowed: int) -> str:
        return (
            f"{len(self._met)} of {self.total} prefixes led elsewhere when they were played again; "
            f"error_budget allows {allowed}. The last one: {self._met[-1]}. Environment, prompt "
            "and the rules for actions must be those of the trajectories; where an environment's "
            "texts vary by nature, set `same_state: reward`"
        )


def prefix_facts(rows: Sequence[Row], given: Callable[[Row], int]) -> dict[str, Any]:
    """What a manifest says of prefixes; `given` counts the turns of a row that were played
    again."""
    return {
        "prefix_turns": sum(map(given, rows)),
        "diverged": sum("diverged" in row for row in rows),
    }


def _sources(folder: Path) -> list[Row]:
    names = (TRAJECTORIES_FILE, TREES_FILE)
    return read_rows(next(folder / name for name in names if (folder / name).exists()))
