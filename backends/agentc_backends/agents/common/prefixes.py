"""Prefixes: the first turns of trajectories, or of the paths of search trees, with which episodes
begin (docs/design/prefixes.md).

Pure: rows in; prefixes and counts out, in the order of the inputs. `tasks.py` makes attempts of
them, `rollout/prefix_replay.py` carries them out again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from agentc_backends.agents.common.seeds import drawn_length

Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixTurn:
    """A turn as its source has it: the reply, and what the agent was told then.

    `actions` are what the environment was given, none or one; None where that has to be read from
    the reply. `reward` is what the step paid, `score` that of the episode so far; a source knows
    one of them. `cut`: the reply ran into its limit. `raw` is the whole text of a reply of which
    only part was seen.
    """

    reply: str
    told: str
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
class CutRules:
    """The fields of `prefix` in `agentc.kinds.interaction`, by the same names. `most` is the
    longest prefix that leaves a turn to the policy; None where its turns do not count."""

    cut: Literal["random", "every"]
    shortest: int
    longest: int | None
    max_reward: float | None
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
    return [drawn_length(rules.seed, source.input, source.id, lengths)]


def _trajectory(row: Row, number: int) -> PrefixSource:
    first = row["prompt_length"]
    messages = [*row["messages"][first:], {"content": row.get("last_observation") or ""}]
    turns = [
        PrefixTurn(
            reply=reply["content"],
            told=told["content"],
            reward=reward,
            cut=reply.get("cut", False),
            raw=reply.get("raw"),
        )
        for reply, told, reward in zip(messages[::2], messages[1::2], row["rewards"], strict=False)
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
        told=observation_prefix + node["observation"],
        actions=(node["action"],) if node["action"] else (),
        score=node["reward"],
        cut=node.get("cut", False),
    )
