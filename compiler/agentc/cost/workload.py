"""Workload: what a job has to do, counted from its settings and inputs before it runs.

`Forecaster` goes through jobs in topological order. What is unknown comes from the prior, refined
by the past; what the store has measured replaces it (`measured.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any

from agentc.cost.amounts import (
    CHOSEN_PASSES,
    Piece,
    Rows,
    Settled,
    Talk,
    Workload,
    candidates_of,
    environment_of,
    expected_talk,
    first_prompt,
    longest_row,
    measured,
    measured_fact,
    row_bytes,
    row_tokens,
    split_of,
    turns_expected,
    turns_in_prompt,
    with_simulator,
)
from agentc.cost.learning import forecast_experience, forecast_reinforcement
from agentc.cost.parameters import (
    ModelShape,
    cached_size,
    shape_of_count,
    shape_of_encoder,
    shape_of_folder,
    shape_of_name,
    shape_of_settings,
    shape_of_text_encoder,
)
from agentc.cost.past import Past, Traits
from agentc.cost.quantities import Quantity, prior, sum_in_step, total
from agentc.cost.statements import Stated
from agentc.cost.subject import JobProfile
from agentc.cost.trees import (
    forecast_candidates,
    forecast_dataset,
    forecast_mix,
    forecast_ranked_pairs,
    forecast_revise,
    forecast_scores,
    forecast_script,
    forecast_search,
    prefixes_of,
    turns_left,
)
from agentc.kinds.table import ACTING


class Forecaster:
    """Workloads of subjects. `find` gives the subject that makes an object, from the store or
    from the plan; `correct` settles what a guess becomes (default: as the past has it)."""

    def __init__(
        self,
        find: Callable[[str], JobProfile | None],
        past: Past,
        stated: Stated,
        correct: Callable[[JobProfile, Piece], Settled] | None = None,
    ) -> None:
        self._find = find
        self._past = past
        self._correct = correct or self._from_past
        self._stated = stated
        self._done: dict[str, Workload] = {}
        self._alike: dict[Hashable, Workload] = {}
        self._like = 0

    def workload(self, subject: JobProfile) -> Workload:
        """What a subject has to do; what it did, where it was measured."""
        work = self._done.get(subject.object)
        if work is None:
            if subject.likeness is None:
                work = self.forecast(subject)
                work = measured(subject, work) if subject.measured else work
            else:
                work = self._forecast_once(subject)
            self._done[subject.object] = work
        return work

    def _forecast_once(self, subject: JobProfile) -> Workload:
        """The same for all jobs that are alike and whose inputs are expected to be."""
        given = tuple((role, *map(self._output, names)) for role, names in subject.inputs.items())
        ground = (subject.likeness, given)
        work = self._alike.get(ground)
        if work is None:
            work = self._alike[ground] = self.forecast(subject)
        return work

    def _output(self, name: str) -> Rows | ModelShape | None:
        """What is expected of an object: all that a forecast knows of an input."""
        source = self._find(name)
        return None if source is None else self.workload(source).output

    def forecast(self, subject: JobProfile) -> Workload:
        """What it would have been said to do, whatever was measured of the job itself."""
        # Inputs first: what they rest on is theirs.
        for name in subject.all_inputs():
            source = self._find(name)
            if source is not None and source.object not in self._done:
                self.workload(source)
        sources = (self._done.get(name) for name in subject.all_inputs())
        self._like = max((work.like for work in sources if work is not None), default=0)
        match subject.forecast:
            case "weights":
                work = self._model(subject)
            case "demonstrations":
                work = self._expert(subject)
            case "texts":
                tasks, _, _ = self.tasks_of(subject)
                work = Workload(rows=tasks, disk=tasks.times(1000).widened(1.0))
            case "episodes":
                work = self._rollout(subject)
            case "trees":
                work = forecast_search(self, subject)
            case "revisions":
                work = forecast_revise(self, subject)
            case "conversations":
                work = forecast_dataset(subject)
            case "mixture":
                work = forecast_mix(self, subject)
            case "candidates":
                work = forecast_candidates(self, subject)
            case "scores":
                work = forecast_scores(self, subject)
            case "pairs" if subject.inputs.get("turns"):
                work = forecast_ranked_pairs(self, subject)
            case "pairs":
                work = self._pair(subject)
            case "training":
                work = self._training(subject)
            case "reinforcement":
                work = forecast_reinforcement(self, subject)
            case "experience":
                work = forecast_experience(self, subject)
            case "unknown":
                work = forecast_script(self, subject)
            case "rows":
                rows = sum_in_step(rows.count for rows in self.rows_of(subject))
                work = Workload(rows=rows, disk=rows.times(10).widened(1.0))
        work = with_simulator(self, subject, work)
        disk = self.settle(subject, "disk", subject.backend, work.disk, {})
        return replace(work, disk=disk, like=self._like)

    def settle(
        self, subject: JobProfile, name: str, backend: str, guess: Quantity, traits: Traits
    ) -> Quantity:
        """A guess of the prior, corrected."""
        piece = Piece(name=name, backend=backend, prior=guess, traits=traits)
        actual = measured_fact(name, subject)
        # Even of a finished job not everything was measured; what follows from a guess that was
        # should follow from the truth.
        corrected = self._correct(subject, piece)
        if actual is not None:
            return Quantity(actual)
        if name != "disk":
            self._like = max(self._like, corrected.like)
        return corrected.quantity

    def _from_past(self, subject: JobProfile, piece: Piece) -> Settled:
        refined = self._past.refined(piece.name, piece.backend, piece.prior, piece.traits)
        return Settled(refined.quantity, refined.like)

    def _model(self, subject: JobProfile) -> Workload:
        config = subject.config
        if subject.model_size.get("parameters"):
            shape = shape_of_folder(subject.model_size)
        elif "intermediate_size" in config:
            shape = shape_of_settings(config)
        elif "hidden_size" in config:
            shape = shape_of_text_encoder(config)
        elif "patch_size" in config:
            shape = shape_of_encoder(config)
        else:
            shape = self._downloaded(config)
        rows = sum_in_step(rows.count.times(rows.tokens) for rows in self.rows_of(subject))
        # A hub model of a billion weights and more is stored in 16 bits.
        width = 4 if shape.parameters.median < 1e9 else 2
        files = subject.model_size.get("file_bytes")
        stored = Quantity(float(files)) if files else shape.parameters.times(width)
        disk = total([stored, Quantity(5e4, 0.5)])
        return Workload(tokens=rows, model=shape, output=shape, disk=disk)

    def _downloaded(self, config: Mapping[str, Any]) -> ModelShape:
        """A model of the hub: as the store or the hub's cache has it, else by its name."""
        repo, revision = str(config.get("repo") or ""), str(config.get("revision") or "")
        seen = self._past.parameters.get((repo, revision))
        if seen is not None:
            return shape_of_count(Quantity(seen))
        named = shape_of_name(repo or str(config.get("path") or config.get("file") or ""))
        if named.parameters.spread == 0 or not repo:
            return named
        cached = cached_size(repo, revision)
        return named if cached is None else shape_of_folder(cached)

    def _expert(self, subject: JobProfile) -> Workload:
        tasks, label, limit = self.tasks_of(subject)
        episodes = tasks.times(subject.number("attempts", 1))
        talk = self.talk_of(subject)
        turns = talk.turns or prior("expert_share").times(limit)
        traits: Traits = {"environment": label}
        turns = self.settle(subject, "expert_turns", environment_of(subject), turns, traits)
        tokens = row_tokens(subject, talk, turns, talk.reply)
        output = Rows(count=episodes, turns=turns, tokens=tokens, label=f"expert {label}")
        disk = episodes.times(row_bytes(tokens))
        return Workload(rows=episodes, turns=episodes.times(turns), output=output, disk=disk)

    def _rollout(self, subject: JobProfile) -> Workload:
        tasks, label, limit = self.tasks_of(subject)
        prefixes = prefixes_of(self, subject)
        episodes = (prefixes or tasks).times(subject.number("attempts", 1))
        model = self.model_of(subject, "model")
        raw = model is not None and not model.trained
        longest = subject.number("decode.max_tokens", 512)
        environment = environment_of(subject)
        talk = self.talk_of(subject)
        traits: Traits = {
            "environment": label,
            "policy": "unknown" if model is None else "raw" if raw else "trained",
            "max_turns": limit,
        }
        expected = Quantity(0.9 * limit, 0.15) if raw else turns_expected(talk, limit)
        if prefixes is not None:
            traits = {**traits, "begins": "behind a prefix"}
            expected = turns_left(expected)
        turns = self.settle(
            subject, "turns", environment, expected, {**traits, "split": split_of(subject)}
        )
        # Random weights seldom end a reply.
        # A policy replies as the expert does, give or take what makes replies differ.
        usual = Quantity(talk.reply.median, prior("reply_tokens").spread)
        reply = Quantity(0.7 * longest, 0.5) if raw else usual
        reply = Quantity(min(reply.median, longest), reply.spread)
        words = {**traits, "max_tokens": longest}
        reply = self.settle(subject, "reply", environment, reply, words)
        first = first_prompt(subject, talk)
        turn = total([reply, talk.observation])
        context = total([first, turn.times(turns_in_prompt(subject, turns))])
        context = self.settle(subject, "context", environment, context, traits)
        all_turns = episodes.times(turns)
        tokens = row_tokens(subject, talk, turns, reply)
        # Each candidate is drawn, and goes through critic and reference behind its prompt.
        drawn = all_turns.times(candidates_of(subject))
        passes = CHOSEN_PASSES if candidates_of(subject) > 1 else 1
        return Workload(
            rows=episodes,
            turns=all_turns,
            replied=drawn.times(reply),
            context=context,
            tokens=drawn.times(total([context, reply])).times(passes),
            model=model,
            output=Rows(count=episodes, turns=turns, tokens=tokens, label=f"policy {label}"),
            disk=episodes.times(row_bytes(tokens)),
        )

    def _pair(self, subject: JobProfile) -> Workload:
        explored = self.rows_of(subject, "rollouts")
        inputs = sum_in_step(rows.count for rows in self.rows_of(subject))
        episodes = sum_in_step(rows.count for rows in explored)
        share = self.settle(subject, "paired", subject.backend, prior("paired"), {})
        pairs = self._within_tasks(subject, episodes.times(share))
        tokens = explored[0].tokens if explored else prior("prompt_tokens")
        turns = explored[0].turns if explored else Quantity(5, 0.7)
        label = explored[0].label if explored else ""
        both = tokens.times(prior("side_turns").times(2))
        output = Rows(count=pairs, turns=turns.times(2), tokens=both, label=f"pairs of {label}")
        return Workload(rows=inputs, output=output, disk=pairs.times(row_bytes(both)))

    def _within_tasks(self, subject: JobProfile, pairs: Quantity) -> Quantity:
        """No more than `max_per_task` pairs of each task of the rollouts."""
        most, tasks = subject.setting("max_per_task"), 0.0
        for name in subject.inputs.get("rollouts", ()):
            source, rows = self._find(name), self._output(name)
            if source is not None and isinstance(rows, Rows):
                tasks += rows.count.median / max(1.0, source.number("attempts", 1))
        if not isinstance(most, int) or not tasks or pairs.median <= most * tasks:
            return pairs
        return Quantity(most * tasks, pairs.spread)

    def _training(self, subject: JobProfile) -> Workload:
        start = self.model_of(subject, "model")
        model = start or shape_of_name("")
        data = [_trained_rows(part, subject) for part in self.rows_of(subject, "data")]
        rows = sum_in_step(part.count for part in data)
        label = data[0].label if data else ""
        # Lengths of rows go together: they rest on the same guesses.
        tokens = Quantity(400, 1.0)
        if rows.median:
            whole = sum_in_step(part.count.times(part.tokens.median) for part in data)
            widest = max(part.tokens.spread for part in data)
            tokens = Quantity(whole.median / rows.median, widest)
        tokens = self.settle(subject, "row_tokens", subject.kind, tokens, {"data": label})
        tokens = Quantity(min(tokens.median, longest_row(subject)), tokens.spread)
        batch = max(1.0, subject.number("global_batch", 32))
        most = subject.setting("max_steps")
        if isinstance(most, int):
            steps = Quantity(float(most))
            passed = Quantity(most * batch)
        else:
            epochs = subject.number("epochs", 1)
            passed = rows.times(epochs)
            steps = Quantity(max(1.0, passed.median / batch), passed.spread)
        shape = replace(model, trained=True)
        adapters = subject.config.get("lora") is not None or subject.setting("lora") is not None
        saved_as = subject.setting("save_dtype")
        width = self._stated.weight_bytes(subject.backend, adapters, saved_as)
        disk = total([model.parameters.times(width), Quantity(1e5, 0.5)])
        return Workload(
            rows=rows,
            steps=steps,
            tokens=passed.times(tokens),
            context=tokens,
            model=None if start is None and subject.measured else shape,
            output=shape,
            disk=disk,
        )

    def tasks_of(self, subject: JobProfile) -> tuple[Quantity, str, float]:
        """Tasks of the split within `limit`, a label of the environment, its step limit."""
        server = subject.servers.get("environment")
        backend, identity = (server.backend, server.identity) if server else ("", "{}")
        split = split_of(subject)
        seen = self._past.tasks_of(backend, identity, split)
        # Of files an identity has the digest, in place of the settings that name them.
        digests = server is not None and '_sha256"' in identity
        settings = server.settings if server is not None and digests else identity
        tasks = Quantity(seen) if seen is not None else self._stated.tasks(backend, settings, split)
        tasks = tasks or prior("tasks")
        limit = subject.setting("limit")
        if isinstance(limit, int) and limit < tasks.high:
            tasks = (
                Quantity(float(limit))
                if limit <= tasks.low
                else Quantity(min(float(limit), tasks.median), tasks.spread / 2)
            )
        # `max_turns` of an expert leaves tasks out; it ends no episode.
        given = (
            (subject.setting("max_turns") or subject.config.get("max_turns"))
            if subject.kind in ACTING
            else None
        )
        turns = float(given) if isinstance(given, int) else float(self._stated.max_turns(backend))
        return tasks, f"{backend} {identity}", turns

    def talk_of(self, subject: JobProfile) -> Talk:
        """What is said in its environment."""
        server = subject.servers.get("environment")
        if server is None:
            return expected_talk(None)
        return expected_talk(self._stated.expert(server.backend, server.identity))

    def rows_of(self, subject: JobProfile, role: str | None = None) -> list[Rows]:
        names = subject.all_inputs() if role is None else subject.inputs.get(role, ())
        outputs = []
        for name in names:
            output = self._output(name)
            if isinstance(output, Rows):
                outputs.append(output)
        return outputs

    def model_of(self, subject: JobProfile, role: str) -> ModelShape | None:
        for name in subject.inputs.get(role, ()):
            output = self._output(name)
            if isinstance(output, ModelShape):
                return output
        return None


def _trained_rows(rows: Rows, subject: JobProfile) -> Rows:
    """The rows that a training takes: of a policy's episodes those that are good enough."""
    if subject.setting("min_reward") is None or not rows.label.startswith("policy"):
        return rows
    return replace(rows, count=rows.count.times(prior("good_episodes")))
