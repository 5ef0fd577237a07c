"""Diagnostic codes of layers 5 and 6: types of inputs, backends, what they honour, values by
round.
"""

from __future__ import annotations

from agentc.diagnostics.codes.code import Code

SETTINGS: tuple[Code, ...] = (
    Code(
        "AGC501",
        "an input of the wrong type",
        "Stages are joined by typed artifacts: trajectories, pairs, checkpoints, metrics. The "
        "stage takes another type than the one that the named stage produces; "
        "`agentc explain KIND` shows what a kind takes and produces.",
    ),
    Code(
        "AGC502",
        "an input is missing",
        "The stage cannot work without this input.",
        "A spec gets AGC202 or AGC205 for it first; this is for modules that were made otherwise.",
    ),
)


# Diagnostic codes of layer 6: backends and what they honour.

BACKENDS: tuple[Code, ...] = (
    Code(
        "AGC601",
        "unknown backend",
        "No installed backend of that name does this kind of work. A backend is named by its id "
        "(`trl.sft`) or by the part of it that is not the kind (`trl`); `agentc explain "
        "--list backends` prints those that are installed.",
    ),
    Code(
        "AGC602",
        "a setting without effect",
        "The spec sets it, but the chosen backend does not read it, either at all or "
        "together with the other settings here. Nothing is ignored in silence; the message "
        "names installed backends that would honour it.",
    ),
    Code(
        "AGC603",
        "a setting that the backend cannot honour",
        "The backend knows the setting and says why it cannot do this.",
    ),
    Code(
        "AGC604",
        "no backend for this kind",
        "`backend: auto` found no installed backend that does this kind of work.",
    ),
    Code(
        "AGC605",
        "a backend that fails",
        "Lowering raised an exception. No spec should be able to cause that: it is a bug of "
        "the backend.",
    ),
    Code(
        "AGC606",
        "an environment, server, prompt or input without effect",
        "The stage names one, but its backend never requests it, so that naming another would "
        "change nothing. Remove it, or choose a backend that uses it. Of inputs it is a warning, "
        "and none is given for those that a template wires: a setting beside `use` may make them "
        "idle, and cannot take them out.",
    ),
    Code(
        "AGC607",
        "an environment that cannot run yet",
        "The environment is declared, so that specs check and plan, but its distribution holds "
        "no server for it.",
        no_example="Every environment of this release runs; it takes another distribution's.",
    ),
    Code(
        "AGC608",
        "a default without effect on a stage",
        "A value under `defaults:` is meant for every stage that has such a setting, but "
        "the backend of this stage can never read it.",
    ),
    Code(
        "AGC758",
        "code that nobody has allowed",
        "`backends:` names Python files that agentc would have to import to know what the spec may "
        "say. So they are loaded only from folders that you trust (`agentc trust FOLDER`, once), "
        "or that `--allow-code` or AGENTC_ALLOW_CODE names, wherever the spec lies; "
        "`--allow-path`, which lets files be read, does not.",
    ),
    Code(
        "AGC759",
        "code that gives no backends",
        "A file or package of `backends:` cannot be imported, or declares nothing that could be "
        "used; the message says why.",
        no_example="It takes a directory that is allowed.",
    ),
    Code(
        "AGC609",
        "an installed backend that cannot be used",
        "A distribution announces a backend that the spec requests, or that does the work of one "
        "of its stages, but it cannot be imported, is none, or has a name that another one has or "
        "without its kind. The rest works; `backend: auto` may choose otherwise than where it is "
        "whole.",
    ),
    Code(
        "AGC670",
        "a Python that this machine does not have",
        "The lock of a software stack demands another version of Python than the one that "
        "runs agentc, and no interpreter of that version was found. `agentc run` says so before "
        "its first job. docs/software.md says where interpreters are looked for.",
        no_example="It takes a machine without that version of Python.",
    ),
    Code(
        "AGC671",
        "a lock that cannot be read",
        "A line `# agentc: ...` in the lock of a software stack is not one of those that "
        "exist, or makes no sense. docs/software.md lists them.",
    ),
    Code(
        "AGC672",
        "a container that this machine cannot run",
        "The lock of a software stack names a container image, and neither apptainer nor "
        "singularity is on PATH. `agentc run` says so before its first job.",
        no_example="It takes a machine without apptainer.",
    ),
    Code(
        "AGC673",
        "another lock for a software stack that is not used",
        "`software:` puts a lock of the spec in the place of one that a backend brings along. No "
        "backend of this experiment uses a software stack of that name, so the entry would "
        "be without effect.",
    ),
    Code(
        "AGC674",
        "a lock that is not there",
        "`software:` names a file that cannot be read. Paths start at the spec.",
    ),
    Code(
        "AGC675",
        "a lock without hashes",
        "A lock names each file that may be installed by its hash, so that no index or mirror can "
        "put another one in its place. `agentc software hash LOCK` adds them and changes no "
        "version. What has no hash, a folder or a git revision, is let through by name: "
        "`# agentc: unverified NAME`.",
    ),
    Code(
        "AGC676",
        "a lock for other hardware",
        "A backend has builds of its software for several kinds of hardware, each in a software "
        "stack of its own, and placement says which a job runs in. `software:` puts "
        "a lock of one build in the place of another, whose programs would not start, or would "
        "not use the devices that they were given.",
    ),
)


# The diagnostic code of values for each round (layer 6).

ROUNDS: tuple[Code, ...] = (
    Code(
        "AGC657",
        "more values than rounds",
        "`per_round:` gives values for rounds that the repeat does not have. Where the number of "
        "rounds is an expression, spare values are for other choices of it, and there is no "
        "message.",
    ),
)
