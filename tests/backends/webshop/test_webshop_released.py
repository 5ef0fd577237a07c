"""A catalogue in canonical form is read as the same shop; WebShop's own is known by its hashes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agentc_backends.environments.webshop.invented import invent
from agentc_backends.environments.webshop.job_canonical import main
from agentc_backends.environments.webshop.settings import ShopOptions
from agentc_backends.environments.webshop.shop import Shop, open_shop

DATA = Path(__file__).parents[4] / "shared" / "data" / "webshop"
CATALOGUE = DATA / "items_shuffle_1000.reconstructed.json.gz"
ATTRIBUTES = DATA / "items_ins_v2_1000.json"


def shop_in(catalogue: Path, attributes: Path) -> Shop:
    options = ShopOptions(catalogue=str(catalogue), attributes=str(attributes), products=None)
    return open_shop(options, lambda path: Path(path).read_bytes())


def test_the_canonical_form_gives_the_same_shop(tmp_path: Path) -> None:
    rows, known = invent(60, 3)
    fetched, out = tmp_path / "fetched", tmp_path / "out"
    (fetched / "inner").mkdir(parents=True)
    rows[0] |= {"images": ["x"], "pricing": "", "small_description": "One.", "seller_name": "S"}
    (fetched / "inner" / "items_shuffle_60.json").write_text(json.dumps(rows))
    (fetched / "items_ins_v2_60.json").write_text(json.dumps(known))
    assert main([str(fetched), str(out)]) == 0
    one = shop_in(fetched / "inner" / "items_shuffle_60.json", fetched / "items_ins_v2_60.json")
    two = shop_in(out / "products.json.gz", out / "attributes.json.gz")
    assert one.goals_digest == two.goals_digest
    assert one.prices == two.prices
    for first, second in zip(one.products, two.products, strict=True):
        fields = ("asin", "title", "description", "bullets", "options", "levels", "attributes")
        assert [getattr(first, f) for f in fields] == [getattr(second, f) for f in fields]


def test_what_cannot_be_made_canonical(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), str(tmp_path / "out")]) == 1
    assert "expected one items_shuffle*.json, found none" in capsys.readouterr().err


def test_the_released_products_are_known_by_their_hashes(tmp_path: Path) -> None:
    if not (CATALOGUE.exists() and ATTRIBUTES.exists()):
        pytest.skip("WebShop's files are not here; their texts are not part of this project")
    given = [f"items_shuffle_1000.json={CATALOGUE}", f"items_ins_v2_1000.json={ATTRIBUTES}"]
    words = ["fetch", "webshop-1000", "--to", tmp_path / "shop", "--from", given[0]]
    done = data(*words, "--from", given[1])
    assert done.returncode == 0, done.stderr
    assert data("verify", "webshop-1000", tmp_path / "shop").returncode == 0
    fetched = shop_in(tmp_path / "shop/products.json.gz", tmp_path / "shop/attributes.json.gz")
    assert len(fetched.goals) == 6910
    assert fetched.goals_digest == shop_in(CATALOGUE, ATTRIBUTES).goals_digest


def data(*words: object) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("agentc")), "data", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)
