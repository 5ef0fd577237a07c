"""The lists that papers shipped, named by a spec: `agentc check` finds what they share and what
they hold twice, and says how to mend it. Lists that are not here are skipped."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from tests.support.model_folder import write_model_folder

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec

SHARED = Path(os.environ.get("AGENTC_SHARED", Path(__file__).parents[3] / "shared")) / "data"
SPEC = """\
agentc: 1
name: lists
environments:
  world: {{{settings}}}
models:
  base: {{backend: path, path: model}}
servers:
  local: {{backend: scripted}}
prompts:
  react: {{instruction: Act.}}
stages:
  score: {{kind: evaluate, model: base, environment: world, split: test}}
"""
SCIWORLD = "backend: sciworld, splits: "
AGENTGYM = "backend: agentgym, url: 'http://127.0.0.1:36008', server: "
ALFWORLD = "backend: alfworld, games: alfworld, splits: "
THOUSAND = "backend: webshop, catalogue: items.json.gz, attributes: known.json, splits: "
PEOPLES = (
    "backend: webshop, catalogue: people.json, instructions: told.json, human_goals: true, "
    "products: null, splits: "
)

# What the spec says, what is found (nothing: the lists are sound), and the remedy that is named.
CASES = {
    # ETO: 54 of its 194 seen variations are trained on; its training list has 357 of the 1796
    # that the simulator itself calls dev.
    "eto-sciworld": (SCIWORLD + "{train: {list: eto}, test: {list: eto}, dev: {list: eto}}",
        "`train` and `dev` share 54 variations", "`except: [train]` in `dev`"),
    "eto-sciworld-files": (SCIWORLD + "{train: {file: eto_train_indices.json, format: eto}, "
        "test: {file: eto_dev_indices.json, format: eto}}",
        "share 54 variations", "`except: [train]` in `test`"),
    "eto-sciworld-mended": (SCIWORLD + "{train: {list: eto}, test: {list: eto}, "
        "dev: {list: eto, except: [train]}}", "", ""),
    "eto-sciworld-own-dev": (SCIWORLD + "{train: {list: eto}, test: {own: dev}}",
        "share 357 variations", "except"),
    # Agent-R's test list numbers ScienceWorld's tasks without 2-3. Read as AgentGym's server
    # numbers them, 66 of the 200 are variations of the simulator's training split.
    "agent_r-sciworld": (SCIWORLD + "{train: {list: agent_r}, test: {list: agent_r}}",
        "share 2 variations", "except"),
    "agent_r-sciworld-numbers": (SCIWORLD + "{train: {own: train}, test: {file: "
        "agentr_sciworld_test.json, format: agentgym}}", "share 66 variations", "except"),
    "agent_r-sciworld-numbers-dev": (SCIWORLD + "{dev: {own: dev}, test: {file: "
        "agentr_sciworld_test.json, format: agentgym}}", "share 27 variations", "except"),
    "agent_r-sciworld-sound": (SCIWORLD + "{train: {own: train}, dev: {own: dev}, test: {file: "
        "agentr_sciworld_test.json, format: agentgym_without_2_3}}", "", ""),
    # ETO: one training goal twice, 21 of its 200 test goals trained on.
    "eto-webshop": (PEOPLES + "{train: {file: eto_webshop_train_indices.json}, "
        "test: {file: eto_webshop_test_indices.json}}",
        "`train` holds goal 4116 twice", "`repeated: drop`"),
    "eto-webshop-once": (PEOPLES + "{train: {file: eto_webshop_train_indices.json, repeated: drop},"
        " test: {file: eto_webshop_test_indices.json}}",
        "share 21 goals", "`except: [test]` in `train`"),
    "eto-webshop-mended": (PEOPLES + "{train: {file: eto_webshop_train_indices.json, repeated: "
        "drop, except: [test]}, test: {file: eto_webshop_test_indices.json}}", "", ""),
    "eto-webshop-500": (PEOPLES + "{train: {file: eto_webshop_train_indices.json, repeated: drop}, "
        "test: {file: eto_webshop_test_indices_500.json}}", "", ""),
    "eto-webshop-both-tests": (PEOPLES + "{dev: {file: eto_webshop_test_indices_500.json}, "
        "test: {file: eto_webshop_test_indices.json}}", "share 7 goals", "except"),
    "eto-webshop-elsewhere": (THOUSAND + "{train: {file: eto_webshop_train_indices.json, repeated: "
        "drop}, test: {own: test}}", "catalogue gives 0 to 6909", "goals that people wrote"),
    "eto-webshop-agentgym": (AGENTGYM + "webshop, splits: {train: {file: "
        "eto_webshop_train_indices.json}, test: {range: [0, 9]}}",
        "holds task 4116 twice", "`repeated: drop`"),
    # Agent-R's lists share no number and no goal.
    "agent_r-webshop": (THOUSAND + "{train: {file: agentr_webshop_train_clean.json}, "
        "test: {file: agentr_webshop_test.json}}", "", ""),
    "agent_r-webshop-agentgym": (AGENTGYM + "webshop, splits: {train: {file: "
        "agentr_webshop_train_clean.json}, test: {file: agentr_webshop_test.json}}", "", ""),
    "agent_r-webshop-range": (THOUSAND + "{train: {range: [200, 6910]}, "
        "test: {file: agentr_webshop_test.json}}",
        "share 197 goals", "`except: [test]` in `train`"),
    "agent_r-textcraft": (AGENTGYM + "textcraft, splits: {train: {file: "
        "agentr_textcraft_train_clean.json}, test: {file: agentr_textcraft_test.json}}", "", ""),
    "agent_r-textcraft-all": (AGENTGYM + "textcraft, splits: {train: {range: [0, 544]}, "
        "test: {file: agentr_textcraft_test.json}}",
        "share 100 tasks (0-30,140-180,420-444,533-535)", "`except: [train]` in `test`"),
    # AgentGym tests on the 200 games of valid_train.
    "agentgym-alfworld": (ALFWORLD + "{train: {part: train, list: "
        "agentgym_alfworld_mappings_train.json, missing: drop}, test: {part: valid_train, list: "
        "agentgym_alfworld_mappings_test.json}}", "", ""),
    "agentgym-alfworld-beside": (ALFWORLD + "{train: {part: valid_train}, test: {part: "
        "valid_train, list: agentgym_alfworld_mappings_test.json}}",
        "share some of their games", "except"),
    "agentgym-alfworld-both": (ALFWORLD + "{dev: {part: valid_train, list: "
        "agentgym_alfworld_mappings_test.json}, test: {part: valid_train, list: "
        "agentgym_alfworld_mappings_test.json}}", "share 200 of their games", "except"),
    "eto-alfworld": (ALFWORLD + "{train: {part: train}, dev: {part: valid_seen}, "
        "test: {part: valid_unseen, list: eto_alfworld_gamefile_id.txt}}", "", ""),
    "eto-alfworld-beside": (ALFWORLD + "{dev: {part: valid_unseen}, "
        "test: {part: valid_unseen, list: eto_alfworld_gamefile_id.txt}}",
        "share some of their games", "except"),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A spec's folder with every list in it, and catalogues that they are lists of."""
    if not (SHARED / "splits").is_dir():
        pytest.skip(f"the published lists are not in {SHARED}; set AGENTC_SHARED")
    place = tmp_path_factory.mktemp("lists")
    for path in (*(SHARED / "splits").iterdir(), *(SHARED / "sciworld").glob("eto_*_indices.json")):
        shutil.copy(path, place)
    webshop = SHARED / "webshop"
    shutil.copy(webshop / "items_shuffle_1000.reconstructed.json.gz", place / "items.json.gz")
    shutil.copy(webshop / "items_ins_v2_1000.json", place / "known.json")
    (place / "alfworld").symlink_to(SHARED / "alfworld")
    # The catalogue of ETO's goals is not to be had; what people wrote about it is.
    texts = json.loads((webshop / "human_goals.json").read_text())
    assert len(texts) == 12_087
    told = {
        f"A{number}": [
            {"instruction": text, "instruction_attributes": ["x"], "instruction_options": []}
        ]
        for number, text in enumerate(texts)
    }
    plain = {"full_description": "", "small_description": [], "category": "x", "query": "x",
             "product_category": "x", "pricing": "$5"}  # fmt: skip
    rows = [{"asin": asin, "name": asin, **plain} for asin in told]
    (place / "people.json").write_text(json.dumps(rows))
    (place / "told.json").write_text(json.dumps(told))
    write_model_folder(place / "model")
    return place


@pytest.mark.parametrize("name", CASES)
def test_what_a_published_list_shares_is_found(name: str, folder: Path) -> None:
    settings, found, remedy = CASES[name]
    spec = folder / "spec.yaml"
    spec.write_text(SPEC.format(settings=settings))
    compilation = compile_spec(spec, {}, load_backends(), allowed=(SHARED,))
    said = "\n".join(str(each) for each in compilation.diagnostics)
    assert compilation.has_errors == bool(found), said
    assert found in said
    assert remedy in said
