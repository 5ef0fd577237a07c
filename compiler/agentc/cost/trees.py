"""Workloads of Agent-R's and SWEET-RL's stages: searched trees, revisions, prefixes, data of them,
and candidates of single turns.
"""

from __future__ import annotations

from dataclasses import replace

from agentc.cost.amounts import (
    Guesses,
    Rows,
    Workload,
    environment_of,
    first_prompt,
    row_bytes,
    row_tokens,
)
from agentc.cost.parameters import ModelShape
from agentc.cost.past import Traits
from agentc.cost.quantities import Quantity, prior, sum_in_step, total, value
from agentc.cost.subject import JobProfile
from agentc.kinds.artifacts import CHECKPOINT
from agentc.kinds.interaction import PREFIXES

_FAILURES = Quantity(0.6, 0.5)
"""Share of trajectories that `prefix.max_reward` leaves, before anything is known of them."""
_LEFT = Quantity(0.6, 0.3)
"""Share of an episode's turns that lies behind its prefix."""


def prefixes_of(guesses: Guesses, subject: JobProfile) -> Quantity | None:
    """The prefixes of a job; None where its episodes begin at their start."""
    sources = guesses.rows_of(subject, PREFIXES.name)
    if not sources:
        return None
    each = []
    for rows in sources:
        # A tree has a trajectory for each of its leaves.
        count = rows.count.times(rows.leaves) if rows.leaves.median else rows.count
        each.append(count.times(rows.turns) if subject.setting("prefix.cut") == "every" else count)
    found = sum_in_step(each)
    return found if subject.setting("prefix.max_reward") is None else found.times(_FAILURES)


def turns_left(turns: Quantity) -> Quantity:
    """Replies of an episode's policy behind its prefix."""
    return turns.times(_LEFT)


# Workloads of Agent-R's stages: trees that are searched, revisions that are judged, and data that
# is taken from outside and mixed.


def forecast_search(guesses: Guesses, subject: JobProfile) -> Workload:
    """Replies of a tree: iterations x nodes on a path x children, less what descents share; never
    more than iterations x (depth + 1) x children."""
    tasks, label, _ = guesses.tasks_of(subject)
    prefixes = prefixes_of(guesses, subject)
    trees = prefixes or tasks
    model = guesses.model_of(subject, "model")
    raw = model is not None and not model.trained
    children, iterations = subject.number("children", 4), subject.number("iterations", 8)
    deepest = subject.number("depth", 20) + 1
    longest = subject.number("decode.max_tokens", 500)
    environment = environment_of(subject)
    traits: Traits = {
        "environment": label,
        "policy": "unknown" if model is None else "raw" if raw else "trained",
    }
    share = Quantity(0.9, 0.15) if raw else prior("turn_share")
    path = share.times(deepest)
    if prefixes is not None:
        traits = {**traits, "begins": "behind a prefix"}
        path = turns_left(path)
    replies = path.times(prior("tree_share")).times(iterations * children)
    replies = guesses.settle(subject, "tree_replies", environment, replies, traits)
    most = iterations * deepest * children
    replies = Quantity(min(replies.median, most), replies.spread)
    reply = Quantity(0.7 * longest, 0.5) if raw else prior("reply_tokens")
    reply = Quantity(min(reply.median, longest), reply.spread)
    words: Traits = {**traits, "max_tokens": longest}
    reply = guesses.settle(subject, "reply", environment, reply, words)
    talk = guesses.talk_of(subject)
    each = total([reply, talk.observation])
    context = total([first_prompt(subject, talk), each.times(max(0.0, (path.median - 1) / 2))])
    context = guesses.settle(subject, "context", environment, context, traits)
    leaves = prior("tree_leaves").times(iterations)
    leaves = guesses.settle(subject, "tree_leaves", environment, leaves, traits)
    everything = trees.times(replies)
    nodes = everything.times(row_bytes(each))
    return Workload(
        rows=trees,
        turns=everything,
        replied=everything.times(reply),
        context=context,
        tokens=everything.times(total([context, reply])),
        model=model,
        output=Rows(
            count=trees,
            turns=path,
            tokens=row_tokens(subject, talk, path, reply),
            label=f"policy {label}",
            leaves=leaves,
        ),
        disk=total([nodes, trees.times(prior("row_bytes"))]),
    )


def forecast_revise(guesses: Guesses, subject: JobProfile) -> Workload:
    """Rows from leaves: with a share g of good ones among L, a tree has L g (1 - g) L pairs and L g
    good trajectories. A bad leaf is judged once (`once_per: path`), or in each of its pairs."""
    trees = guesses.rows_of(subject, "trees")
    label = trees[0].label if trees else ""
    count = sum_in_step(rows.count for rows in trees)
    leaves = trees[0].leaves if trees else prior("tree_leaves")
    turns = trees[0].turns if trees else Quantity(5, 0.7)
    tokens = trees[0].tokens if trees else prior("prompt_tokens")
    model = guesses.model_of(subject, "model")
    parts = subject.setting("parts")
    parts = [str(part) for part in parts] if isinstance(parts, list) else []
    good = value("good_leaves")
    pairs = leaves.times(leaves).times(good * (1 - good)).widened(prior("good_leaves").spread)
    pairs = _capped(pairs, subject, "max_pairs_per_tree", 1.0)
    spliced = "revision" in parts or "direct" in parts
    whole = "good" in parts or "optimal" in parts
    # The caps hold for all trees together.
    made = [_capped(pairs, subject, "max_revision", count.median)] if spliced else []
    kept = leaves.times(prior("good_leaves"))
    made += [_capped(kept, subject, "max_good", count.median)] if whole else []
    traits: Traits = {"data": label}
    rows = guesses.settle(subject, "revised", subject.backend, total(made), traits)
    output = Rows(
        count=count.times(rows), turns=turns, tokens=tokens.times(1.3), label=f"revised {label}"
    )
    disk = output.count.times(row_bytes(output.tokens))
    if "revision" not in parts:
        return Workload(rows=output.count, output=output, disk=disk)
    judged = pairs if subject.setting("judge.once_per") == "pair" else leaves.times(1 - good)
    asked = judged.times(turns).times(prior("judged_share"))
    asked = guesses.settle(subject, "judged", subject.backend, asked, traits)
    longest = subject.number("judge.max_tokens", 500)
    reply = Quantity(min(prior("judge_tokens").median, longest), prior("judge_tokens").spread)
    words: Traits = {**traits, "max_tokens": longest}
    reply = guesses.settle(subject, "judge_reply", subject.backend, reply, words)
    context = total([tokens.times(0.5), prior("judge_question")])
    context = guesses.settle(subject, "judge_context", subject.backend, context, traits)
    everything = count.times(asked)
    return Workload(
        rows=output.count,
        turns=everything,
        replied=everything.times(reply),
        context=context,
        tokens=everything.times(total([context, reply])),
        model=model,
        output=output,
        disk=disk,
    )


def forecast_dataset(subject: JobProfile) -> Workload:
    """Conversations from outside: those of a local file were counted, of others nothing is known
    but how many are drawn."""
    limit, counted = subject.setting("limit"), subject.expected.get("rows")
    rows = Quantity(float(counted)) if isinstance(counted, int) else prior("dataset_rows")
    if isinstance(limit, int):
        rows = Quantity(float(limit if counted is None else min(limit, counted)))
    tokens = prior("dataset_tokens")
    if characters := subject.expected.get("characters"):
        each = prior("characters_per_token")
        tokens = Quantity(characters / each.median, each.spread)
    label = str(subject.config.get("repo") or subject.config.get("path") or "")
    output = Rows(count=rows, turns=Quantity(3, 0.5), tokens=tokens, label=f"data {label}")
    return Workload(rows=rows, output=output, disk=rows.times(row_bytes(tokens)))


def forecast_script(guesses: Guesses, subject: JobProfile) -> Workload:
    """Whatever a script does, it is taken to hand on what it reads; how long it takes is not known
    before it has run."""
    read = guesses.rows_of(subject)
    rows = sum_in_step(each.count for each in read).widened(0.7)
    output: Rows | ModelShape | None = None
    disk = rows.times(1000).widened(1.0)
    if subject.config.get("output") == CHECKPOINT.name:
        models = (guesses.model_of(subject, role) for role in subject.inputs)
        output = next((model for model in models if model is not None), None)
        disk = disk if output is None else output.parameters.times(4)
    elif read:
        output = replace(read[0], count=rows, label=f"script of {read[0].label}")
        disk = rows.times(row_bytes(output.tokens))
    return Workload(rows=rows, output=output, disk=disk)


def forecast_mix(guesses: Guesses, subject: JobProfile) -> Workload:
    """All agent rows, and the share of general ones."""
    agent, general = guesses.rows_of(subject, "agent"), guesses.rows_of(subject, "general")
    ours = sum_in_step(rows.count for rows in agent)
    there = sum_in_step(rows.count for rows in general)
    share = subject.number("general_share", 0.5)
    of_agent = share if subject.setting("share_of") == "agent" else share / max(1 - share, 0.01)
    drawn = ours.times(of_agent)
    if subject.setting("on_shortage") == "fewer" and drawn.median > there.median:
        drawn = there
    rows = sum_in_step([ours, drawn])
    tokens = sum_in_step(
        [
            *(each.count.times(each.tokens) for each in agent),
            *(drawn.times(each.tokens) for each in general[:1]),
        ]
    )
    each = Quantity(tokens.median / rows.median, tokens.spread) if rows.median else Quantity(400, 1)
    output = Rows(
        count=rows,
        turns=agent[0].turns if agent else Quantity(3, 0.5),
        tokens=each,
        label=f"mixed {agent[0].label if agent else ''}",
    )
    return Workload(rows=rows, output=output, disk=rows.times(row_bytes(each)))


def _capped(rows: Quantity, subject: JobProfile, cap: str, per: float) -> Quantity:
    """Rows of a tree under a cap that holds for `per` trees; at the cap their number is known."""
    most = subject.setting(cap)
    if not isinstance(most, int) or most / max(per, 1.0) > rows.median:
        return rows
    return Quantity(most / max(per, 1.0), rows.spread / 3)


# Workloads of stages on single turns: candidates that are drawn, and pairs that are made of them.

_TOKEN_ID_BYTES = 6.0
"""Of a token's id in a row, with its comma."""


def forecast_candidates(guesses: Guesses, subject: JobProfile) -> Workload:
    """A reply for each candidate of each turn that is taken; a turn's context is about half of its
    episode."""
    episodes = guesses.rows_of(subject, "rollouts")
    count = sum_in_step(rows.count for rows in episodes).times(subject.number("fraction", 1))
    limit = subject.setting("limit")
    if isinstance(limit, int) and limit <= count.median:
        count = Quantity(float(limit))
    turns = episodes[0].turns if episodes else Quantity(5, 0.7)
    first = subject.setting("turns")
    if isinstance(first, int) and first < turns.median:
        turns = Quantity(float(first))
    tokens = episodes[0].tokens if episodes else prior("prompt_tokens")
    label = episodes[0].label if episodes else ""
    model = guesses.model_of(subject, "model")
    each = subject.number("candidates", 16)
    taken = count.times(turns)
    replies = taken.times(each)
    longest = subject.number("decode.max_tokens", 1024)
    usual = prior("reply_tokens")
    reply = Quantity(min(usual.median, longest), usual.spread)
    traits: Traits = {"data": label, "max_tokens": longest}
    reply = guesses.settle(subject, "reply", subject.backend, reply, traits)
    context = guesses.settle(subject, "context", subject.backend, tokens.times(0.5), traits)
    drawn = total([context, reply.times(each)])
    output = Rows(count=taken, turns=Quantity(each), tokens=drawn, label=f"candidates of {label}")
    disk = taken.times(row_bytes(drawn)).widened(0.2)
    return Workload(
        rows=taken,
        turns=replies,
        replied=replies.times(reply),
        context=context,
        tokens=replies.times(total([context, reply])),
        model=model,
        output=output,
        disk=total([disk, replies.times(reply).times(_TOKEN_ID_BYTES)]),
    )


def forecast_scores(guesses: Guesses, subject: JobProfile) -> Workload:
    """Every candidate of every turn goes through the model once, behind its prompt."""
    turns = guesses.rows_of(subject, "candidates")
    count = sum_in_step(rows.count for rows in turns)
    each = turns[0].turns if turns else Quantity(16, 0.3)
    drawn = turns[0].tokens if turns else prior("prompt_tokens")
    label = turns[0].label if turns else ""
    role = "reference" if "reference" in subject.inputs else "critic"
    reply = prior("reply_tokens")
    prompt = Quantity(max(1.0, drawn.median - each.median * reply.median), drawn.spread)
    scores = count.times(each)
    row = guesses.settle(
        subject, "scored", subject.backend, total([prompt, reply]), {"data": label}
    )
    output = Rows(count=count, turns=each, tokens=drawn, label=label)
    return Workload(
        rows=count,
        turns=scores,
        context=row,
        tokens=scores.times(row),
        model=guesses.model_of(subject, role),
        output=output,
        disk=scores.times(2 * prior("row_bytes").median).widened(1.0),
    )


def forecast_ranked_pairs(guesses: Guesses, subject: JobProfile) -> Workload:
    """Pairs of turns: so many of each, less those that are drawn twice."""
    turns = guesses.rows_of(subject, "turns")
    count = sum_in_step(rows.count for rows in turns)
    each = 1.0 if subject.setting("draw") == "best_worst" else subject.number("pairs_per_turn", 4)
    label = turns[0].label if turns else ""
    kept = Quantity(0.8, 0.3)
    share = guesses.settle(subject, "kept_draws", subject.backend, kept, {"data": label})
    pairs = count.times(each).times(share)
    tokens = turns[0].tokens if turns else prior("prompt_tokens")
    candidates = turns[0].turns if turns else Quantity(16, 0.0)
    reply = prior("reply_tokens")
    # Of a turn's tokens all but those of its candidates are the prompt, which both sides have.
    context = max(0.0, tokens.median - candidates.median * reply.median)
    both = total([Quantity(2 * context, tokens.spread), reply.times(2)])
    output = Rows(count=pairs, turns=Quantity(2), tokens=both, label=f"pairs of {label}")
    return Workload(rows=count, output=output, disk=pairs.times(row_bytes(both)))
