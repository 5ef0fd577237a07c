"""Diagnostic codes of layer 6: backends and what they honour."""

from agentc.diagnostics.codes.code import Code

BACKENDS: tuple[Code, ...] = (
    Code(
        "AGC601",
        "unknown backend",
        "No installed backend of that name does this kind of work. A backend is named by its id "
        "(`trl.sft`) or by the part of it that is not the kind (`trl`); docs/reference/backends.md "
        "lists those that come with agentc, `agentc schema` all that are installed.",
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
        "an environment, server or prompt without effect",
        "The stage names one, but its backend never asks for it, so that naming another would "
        "change nothing. Remove it, or choose a backend that uses it.",
    ),
    Code(
        "AGC607",
        "an environment that cannot run yet",
        "The environment is declared, so that specs check and plan, but no server for it is "
        "part of this release.",
    ),
    Code(
        "AGC608",
        "a default without effect on a stage",
        "A value under `defaults:` is meant for every stage that has such a setting, but "
        "the backend of this stage can never read it.",
    ),
    Code(
        "AGC609",
        "an installed backend that cannot be used",
        "A distribution announces a backend, but it cannot be imported, is none, or claims a name "
        "that another one has. The rest works; `backend: auto` may choose otherwise than where it "
        "is whole.",
    ),
)
