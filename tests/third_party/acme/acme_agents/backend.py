"""Declares `acme.pair` and `env.guess`. Imported when a spec requests them: nothing heavy here."""

from importlib import resources

from agentc.backend_api import (
    EnvironmentBackend,
    JobDraft,
    LeaseDraft,
    LowerContext,
    OptionView,
    Software,
    StageBackend,
    StageView,
)
from agentc.kinds.artifacts import PREFERENCE_PAIRS
from agentc.kinds.field import boolean, integer
from agentc_backends.software import LIGHT

ACME = Software(
    name="acme",
    lock=resources.files("acme_agents").joinpath("acme.lock").read_text(encoding="utf-8"),
)


def lower(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """One job. What is not read here cannot be set: the compiler says so, by name."""
    if view.text("sources") != "self":
        view.refuse(
            "sources",
            "acme.pair pairs explored trajectories with each other",
            capability="expert",
            fix="set `sources: self`",
        )
    rollouts = view.inputs.get("rollouts", ())
    if not rollouts:
        view.refuse("rollouts", "acme.pair pairs rollouts, and there are none")
    return (
        JobDraft(
            kind="pair",
            backend=PAIR.id,
            version=PAIR.version,
            software=ACME,
            program=("-m", "acme_agents.job_pair"),
            view=view,
            config={
                "margin": view.number("margin"),
                "shortest_first": view.flag("shortest_first"),
            },
            inputs={"rollouts": rollouts},
            produces=PREFERENCE_PAIRS.name,
        ),
    )


PAIR = StageBackend(
    id="acme.pair",
    kind="pair",
    version=1,
    doc="The best attempt at each task against its worst.",
    software=ACME,
    lower=lower,
    capabilities=frozenset({"self"}),
    inputs=("rollouts",),
    options=(
        boolean("shortest_first", "Of equally good attempts take the one with fewer turns.", True),
    ),
)


def lease(options: OptionView) -> LeaseDraft:
    """The server of the game; it writes its address into the ready file."""
    highest = options.integer("highest")
    program = ("-m", "acme_agents.job_guess", "--die-with-parent", "--port", "0")
    return LeaseDraft(
        role="environment",
        backend=GUESS.id,
        version=GUESS.version,
        software=LIGHT,
        program=(*program, "--ready-file", "{ready_file}", "--highest", str(highest)),
        identity=options.identity(),
        identity_check="environment",
        expect={"name": "guess", "highest": highest},
    )


GUESS = EnvironmentBackend(
    id="env.guess",
    version=1,
    doc="Guess a number; the game says whether it is higher or lower.",
    software=LIGHT,
    lease=lease,
    fields=(integer("highest", "The numbers are 1 to this one.", 8, minimum=4),),
    splits=("train", "test"),
    max_turns=8,
    capabilities=frozenset({"expert", "fork", "snapshot"}),
)
