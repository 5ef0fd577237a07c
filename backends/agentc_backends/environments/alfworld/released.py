"""Where ALFWorld's games were published, and the hashes by which the packed ones are known.

The hashes are of all 4,027 solvable games as `job_pack.py` writes them. The archive's size is the
one that its users report; its own hash is not checked, the games in it are.
"""

from __future__ import annotations

from agentc.backend_api import DataSet, DataSource

GAMES = DataSet(
    name="alfworld",
    doc="ALFWorld's 4,027 games: train 3553, valid_train 200, valid_seen 140, valid_unseen 134.",
    licence="MIT (ALFWorld; made from ALFRED, MIT)",
    sources=(
        DataSource(
            name="json_2.1.3_tw-pddl.zip",
            url="https://github.com/alfworld/alfworld/releases/download/0.4.2/"
            "json_2.1.3_tw-pddl.zip",
            size=36_507_267,
        ),
    ),
    unpacked_size=350_000_000,
    program=("-m", "agentc_backends.environments.alfworld.job_pack"),
    contents={
        "train.jsonl": "b490ab5e2be373705abfb3dc7f0a160245c8301ad142a1dc77abb9351193502f",
        "valid_train.jsonl": "4a821eab9382645a3cb1a5fd35c562a99969feb0b624a89c2519836431127119",
        "valid_seen.jsonl": "492471ce8b908f88401b43cdfbf9f9ad79eefac2f2fdff5ca4021f7593544432",
        "valid_unseen.jsonl": "db935157d1f493cc5b0eef48798934c0952305f94cba6dc4e56dec9f55ca3e5a",
    },
    use="`games: {path}` under an environment with `backend: alfworld`",
)
