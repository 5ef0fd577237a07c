"""The program of Optuna: proposes values, keeps the study, says whether a trial is worth going on.

One line of JSON is asked on standard input, one answered (`agentc.searching.study` has them).
What is drawn for a trial depends on the seed, the trial's number and the trials before it alone: a
study that was cut off goes on as if it had not been.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.pruners import BasePruner, MedianPruner, NopPruner, SuccessiveHalvingPruner
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial, Trial, TrialState

_STATES = {
    "complete": TrialState.COMPLETE,
    "pruned": TrialState.PRUNED,
    "failed": TrialState.FAIL,
}
_WORDS = {state: word for word, state in _STATES.items()}
_APART = 100_003
"""Seeds of two trials differ by it, so that those of two near seeds are not the same ones."""


class OpenStudy:
    """A study in its file, made where it is not there yet. `asked` is the opening request."""

    def __init__(self, asked: Mapping[str, Any]) -> None:
        self._asked = asked
        self._space = {name: _distribution(axis) for name, axis in asked["axes"].items()}
        self._study = optuna.create_study(
            storage="sqlite:///" + asked["file"],
            study_name=asked["name"],
            direction=asked["direction"],
            pruner=_pruner(asked["pruner"], asked["startup_trials"]),
            load_if_exists=True,
        )
        self._open: dict[int, Trial] = {}

    def ask(self) -> dict[str, Any]:
        """The trial that was cut off, else a new one: its number, params, values by round."""
        cut_off = self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        number = cut_off[0].number if cut_off else len(self._study.get_trials(deepcopy=False))
        self._study.sampler = self._sampler(number)
        if cut_off:
            # Of a trial that was cut off while it was drawn, the rest is drawn now.
            trial = Trial(self._study, cut_off[0]._trial_id)
            for name, distribution in self._space.items():
                _draw(trial, name, distribution)
        else:
            trial = self._study.ask(fixed_distributions=self._space)
        self._open[trial.number] = trial
        return {"number": trial.number, "params": trial.params}

    def report(self, number: int, step: int, value: float) -> dict[str, Any]:
        """Keep the value after a round. Whether the pruner would end the trial there."""
        trial = self._open[number]
        if step not in self._study.trials[number].intermediate_values:
            trial.report(value, step)
        return {"prune": bool(trial.should_prune())}  # some pruners say it as numpy does

    def tell(self, number: int, state: str, value: float | None, why: str) -> dict[str, Any]:
        """End a trial."""
        trial = self._open.pop(number)
        trial.set_user_attr("why", why)
        self._study.tell(trial, value if state == "complete" else None, _STATES[state])
        return self.trials()

    def trials(self) -> dict[str, Any]:
        """All trials in order."""
        return {"trials": [_trial_record(trial) for trial in self._study.trials]}

    def _sampler(self, number: int) -> BaseSampler:
        seed = (self._asked["seed"] * _APART + number) % 2**32
        if self._asked["sampler"] == "random":
            return RandomSampler(seed=seed)
        return TPESampler(seed=seed, n_startup_trials=self._asked["startup_trials"])


def _pruner(name: str, startup_trials: int) -> BasePruner:
    if name == "median":
        return MedianPruner(n_startup_trials=startup_trials)
    if name == "halving":
        return SuccessiveHalvingPruner(min_resource=1, reduction_factor=2)
    return NopPruner()


def _distribution(axis: Mapping[str, Any]) -> BaseDistribution:
    if axis["choices"]:
        return CategoricalDistribution(axis["choices"])
    if axis["integer"]:
        step = 1 if axis["step"] is None else int(axis["step"])
        return IntDistribution(int(axis["low"]), int(axis["high"]), log=axis["log"], step=step)
    return FloatDistribution(axis["low"], axis["high"], log=axis["log"], step=axis["step"])


def _draw(trial: Trial, name: str, of: BaseDistribution) -> None:
    if isinstance(of, CategoricalDistribution):
        trial.suggest_categorical(name, of.choices)
    elif isinstance(of, IntDistribution):
        trial.suggest_int(name, of.low, of.high, step=of.step, log=of.log)
    elif isinstance(of, FloatDistribution):
        trial.suggest_float(name, of.low, of.high, step=of.step, log=of.log)


def _trial_record(trial: FrozenTrial) -> dict[str, Any]:
    steps = trial.intermediate_values
    value = trial.value
    if trial.state is TrialState.PRUNED and steps:
        value = steps[max(steps)]
    return {
        "number": trial.number,
        "params": trial.params,
        "state": _WORDS.get(trial.state, "running"),
        "value": value,
        "steps": {str(step): steps[step] for step in sorted(steps)},
        "why": trial.user_attrs.get("why", ""),
    }


def main() -> int:
    """Answer until the input ends."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study: OpenStudy | None = None
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        words: list[Any] = asked.get("with") or []
        if study is None:
            study = OpenStudy(asked)
            answer = study.trials()
        else:
            methods: dict[str, Callable[..., dict[str, Any]]] = {
                "ask": study.ask,
                "report": study.report,
                "tell": study.tell,
            }
            answer = methods[asked["do"]](*words)
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
