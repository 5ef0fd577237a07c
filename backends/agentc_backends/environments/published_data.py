"""Data sets that papers published and that several environments use: lists of tasks, dialogues,
catalogues, trajectories. Where a publisher states no hash, the first download is pinned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from agentc.backend_api import DataSet, DataSource

_RAW = "https://raw.githubusercontent.com"
_ETO = f"{_RAW}/Yifan-Song793/ETO/a2fc5da38f8d00cfaf3f9b6370d586eebaf72904/eval_agent/data"
_AGENT_R = f"{_RAW}/bytedance/Agent-R/dd8bd1eb799e78ab229a6c1c77304f81b262980b/mcts_utils"
_AGENTGYM = f"{_RAW}/WooooDyy/AgentGym/3ef9235d23e68e7c2920c5422ad957dc8ced5c6c"
_ARCHER = f"{_RAW}/YifeiZhou02/ArCHer/7c771a7610cb34e54ba53d69d1fb7337103e5648"
_HUB = "https://huggingface.co/datasets"
_DRIVE = "https://drive.usercontent.google.com/download?export=download&confirm=t&id="
_COPY = ("-m", "agentc_backends.environments.server.job_copy")


def fetch_command(data_set: DataSet, folder: PurePosixPath) -> str:
    """The command that fills a folder that a spec names; a relative one starts at the spec."""
    where = "" if folder.is_absolute() else "in the folder of the spec: "
    return f"{where}`agentc data fetch {data_set.name} --to {folder}`"


def fetch_advice(data_sets: Sequence[DataSet], unreadable: Iterable[str]) -> str | None:
    """The command for the first unreadable file whose folder has the name of a data set."""
    names = {data_set.name: data_set for data_set in data_sets}
    for path in unreadable:
        folder = PurePosixPath(path).parent
        if folder.name in names:
            return fetch_command(names[folder.name], folder)
    return None


def _data_set(
    name: str,
    doc: str,
    licence: str,
    use: str,
    files: dict[str, tuple[str, int, str | None]],
) -> DataSet:
    """Files that are used as they were published: by name their address, bytes and SHA-256."""
    return DataSet(
        name=name,
        doc=doc,
        licence=licence,
        sources=tuple(
            DataSource(name=file, url=url, size=size) for file, (url, size, _) in files.items()
        ),
        unpacked_size=sum(size for _, size, _ in files.values()),
        program=(*_COPY, *files),
        contents={file: digest for file, (_, _, digest) in files.items()},
        use=use,
    )


ETO_WEBSHOP_LISTS = _data_set(
    "eto-webshop-lists",
    "ETO's training and test goals of WebShop, as numbers of goals that people wrote.",
    "none is stated",
    "`splits: {{train: {{file: {path}/train_indices.json, repeated: drop, except: [test]}}, "
    "test: {{file: {path}/test_indices.json}}}}` under an environment with `backend: webshop`",
    {
        "train_indices.json": (
            f"{_ETO}/webshop/train_indices.json",
            10_796,
            "15f44b4a5ca1e8c2f2a7f2e1849d7ebe1d93e5020426d80408b5f21f0a3a6202",
        ),
        "test_indices.json": (
            f"{_ETO}/webshop/test_indices.json",
            1_223,
            "0e7fa2b9646a8800761a29fe9bdfff757235bdec7597e3211525230434e2ea66",
        ),
    },
)

WEBSHOP_FULL = _data_set(
    "webshop-full",
    "WebShop's 1.18 million products, their attributes, and the instructions that people wrote.",
    "the code is MIT; the texts are sellers', scraped from a shop",
    "`products: null`, `human_goals: true`, `catalogue: {path}/items_shuffle.json`, `attributes: "
    "{path}/items_ins_v2.json` and `instructions: {path}/items_human_ins.json` under an "
    "environment with `backend: webshop`",
    {
        "items_shuffle.json": (f"{_DRIVE}1A2whVgOO0euk5O13n2iYDM0bQRkkRduB", 5_500_000_000, None),
        "items_ins_v2.json": (f"{_DRIVE}1s2j6NgHljiZzQNL3veZaAiyW_qDEgBNi", 200_000_000, None),
        "items_human_ins.json": (f"{_DRIVE}14Kb5SPBk_jfdLZ_CDBNitW98QLDlKR5O", 6_000_000, None),
    },
)

AGENT_R_LISTS = _data_set(
    "agent-r-lists",
    "Agent-R's lists of tasks: WebShop and TextCraft (training, test), ScienceWorld (test).",
    "Apache-2.0",
    "`splits: {{train: {{file: {path}/webshop_train_clean.json, except: [test]}}, test: "
    "{{file: {path}/webshop_test.json}}}}`, and the same for the other environments",
    {
        "webshop_train_clean.json": (
            f"{_AGENT_R}/webshop/webshop_train_clean.json",
            58_285,
            "b33e0f45ee1d6735431ede2aa9e57217861894020d585e25e159c80c855a8c45",
        ),
        "webshop_test.json": (
            f"{_AGENT_R}/webshop/webshop_test.json",
            9_368,
            "baf26d8a4f0bfb82b135c55c61bbc0afe182aa06ee7f46501379f68edf9a8449",
        ),
        "textcraft_train_clean.json": (
            f"{_AGENT_R}/textcraft/textcraft_train_clean.json",
            5_329,
            "94118aafc4e76403f95680488f31b9f6aa4234b02c454cedb4203497408a3e14",
        ),
        "textcraft_test.json": (
            f"{_AGENT_R}/textcraft/textcraft_test.json",
            4_761,
            "18b3c5ce267779f5a6202d884e3692ff7a522c96d6f59518276fc1b270dd2d4b",
        ),
        "sciworld_test.json": (
            f"{_AGENT_R}/sciworld/sciworld_test.json",
            9_576,
            "78fbe5ed7ba545f1a2ee08397a5e740f622872b6a3ee70315d349c4287675c79",
        ),
    },
)

AGENTGYM_ALFWORLD = _data_set(
    "agentgym-alfworld",
    "AgentGym's lists of ALFWorld games: 2420 for training, 200 for testing.",
    "MIT",
    "`splits: {{train: {{file: {path}/mappings_train.json, missing: drop}}, test: "
    "{{file: {path}/mappings_test.json}}}}` under an environment with `backend: alfworld`",
    {
        "mappings_train.json": (
            f"{_AGENTGYM}/agentenv-alfworld/configs/mappings_train.json",
            407_842,
            "d146383d5c9dfcdc18e67459b60cf15d9d1a6d6c5fa23d9003cc2d91880314f1",
        ),
        "mappings_test.json": (
            f"{_AGENTGYM}/agentenv-alfworld/configs/mappings_test.json",
            32_816,
            "fd24a8525a4c0464fd1fae130763cd736d326d6a687dcb7d48bda40d93e83c00",
        ),
    },
)

GUESS_MY_CITY = _data_set(
    "guess-my-city",
    "950 dialogues of Guess My City that ArCHer's authors released.",
    "MIT",
    "`oracle: recorded` and `dialogues: {path}/guess_my_city.json` under an environment with "
    "`backend: guess_my_city`",
    {
        "guess_my_city.json": (
            f"{_ARCHER}/dataset/guess_my_city.json",
            3_315_839,
            "310c6075d5d6aed3ee7db9667ad2ff3e3568ae2dd93115fea9420def4667fa25",
        )
    },
)

_TRAJECTORIES = (
    f"{_HUB}/agent-eto/eto-sft-trajectory/resolve/a8f745ef799a5201d2288b9c2a47e40a0ff70a4c/data"
)
ETO_TRAJECTORIES = _data_set(
    "eto-trajectories",
    "ETO's expert trajectories: 1824 of WebShop, 1483 of ScienceWorld, 3119 of ALFWorld.",
    "Apache-2.0",
    "`{{kind: dataset, backend: path, path: {path}/webshop_sft.json, format: sharegpt, task_ids: "
    "eto_webshop, prompt_length: 3}}` as the stage `expert`; the same for sciworld and alfworld",
    {
        f"{task}_sft.json": (f"{_TRAJECTORIES}/{task}_sft.json", 40_000_000, None)
        for task in ("webshop", "sciworld", "alfworld")
    },
)

COLBENCH_BACKEND = _data_set(
    "colbench-backend",
    "ColBench's tasks of backend programming; the first 1,000 of the test file are the paper's.",
    "CC-BY-NC, and the terms of Llama 3.1",
    "`-p data=published` of specs/sweet_rl/backend.yaml, in data/colbench-backend beside it; "
    "elsewhere `-p tasks={path}/train.jsonl -p test_tasks={path}/test.jsonl`",
    {
        name: (
            f"{_HUB}/facebook/collaborative_agent_bench/resolve/main/backend_tasks/{name}",
            130_000_000,
            None,
        )
        for name in ("train.jsonl", "test.jsonl")
    },
)
