"""Our search beside Lucene's, through Anserini: `python -m benchmarks.webshop_lucene`.

AGENTC_ANSERINI names Anserini's jar (in the wheel of `pyserini==0.22.1`),
AGENTC_WEBSHOP_DATA the folder of WebShop's data; `java` runs it. The index and the search are made
with the commands and settings of the release: BM25, 50 hits, ties by the product's number.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

from agentc_backends.environments.webshop.pages import MOST_RESULTS
from agentc_backends.environments.webshop.shop import Shop, searched_text
from benchmarks.webshop_upstream.engine import files_in


def queries_of(shop: Shop, data: Path, number: int) -> dict[str, list[str]]:
    """By kind: titles, generated instructions, and where the files are there, people's words."""
    random = Random(0)
    kinds = {
        "titles": [product.title for product in shop.products],
        "generated instructions": [goal.instruction for goal in shop.goals],
    }
    for title, name in (
        ("people's instructions", "human_goals.json"),
        ("people's searches", "goal_query_map.json"),
    ):
        path = data / name
        if path.is_file():
            kinds[title] = _texts(json.loads(path.read_text(encoding="utf-8")))
    found = {}
    for kind, texts in kinds.items():
        # Of people's searches some are empty.
        plain = sorted({" ".join(text.lower().split()) for text in texts} - {""})
        found[kind] = random.sample(plain, min(number, len(plain)))
    return found


def by_lucene(
    jar: Path, documents: Mapping[str, str], queries: Sequence[str], folder: Path
) -> list[list[str]]:
    """The products that Anserini finds for each query, best first."""
    collection, index = folder / "collection", folder / "index"
    collection.mkdir()
    rows = (json.dumps({"id": key, "contents": text}) for key, text in documents.items())
    (collection / "documents.jsonl").write_text("\n".join(rows), encoding="utf-8")
    topics = folder / "queries.tsv"
    lines = "\n".join(f"{number}\t{query}" for number, query in enumerate(queries))
    topics.write_text(lines, encoding="utf-8")
    run = folder / "run.txt"
    _java(jar, "io.anserini.index.IndexCollection", "-collection", "JsonCollection",
          "-input", str(collection), "-index", str(index),
          "-generator", "DefaultLuceneDocumentGenerator", "-threads", "1")  # fmt: skip
    _java(jar, "io.anserini.search.SearchCollection", "-index", str(index),
          "-topics", str(topics), "-topicreader", "TsvInt", "-output", str(run),
          "-bm25", "-hits", str(MOST_RESULTS))  # fmt: skip
    found: dict[int, list[str]] = defaultdict(list)
    for line in run.read_text(encoding="utf-8").splitlines():
        query, _, asin, *_ = line.split()
        found[int(query)].append(asin)
    return [found[number] for number in range(len(queries))]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.webshop_lucene", description=__doc__)
    parser.add_argument("--queries", type=int, default=500, help="of each kind")
    parser.add_argument("--show", type=int, default=0, help="this many queries that differ")
    options = parser.parse_args(arguments)
    jar, data = (os.environ.get(name) for name in ("AGENTC_ANSERINI", "AGENTC_WEBSHOP_DATA"))
    if not jar or not data:
        parser.error("set AGENTC_ANSERINI (the jar) and AGENTC_WEBSHOP_DATA (WebShop's data)")
    shop = files_in(Path(data)).shop()
    kinds = queries_of(shop, Path(data), options.queries)
    everything = [query for queries in kinds.values() for query in queries]
    documents = {product.asin: searched_text(product) for product in shop.products}
    with tempfile.TemporaryDirectory() as folder:
        theirs = iter(by_lucene(Path(jar), documents, everything, Path(folder)))
    print("| queries | number | first 10 the same, in order | all 50 the same, in order | "
          "share of the first 10 found by both |\n|---|---|---|---|---|")  # fmt: skip
    for kind, queries in kinds.items():
        ten = fifty = 0
        shared = 0.0
        for query in queries:
            lucene, ours = next(theirs), [product.asin for product in shop.search(query)]
            ten += lucene[:10] == ours[:10]
            fifty += lucene == ours
            shared += len({*lucene[:10]} & {*ours[:10]}) / max(1, len(lucene[:10]))
            if lucene != ours and options.show > 0:
                options.show -= 1
                place = next((n for n, pair in enumerate(zip(lucene, ours, strict=False))
                              if pair[0] != pair[1]), -1)  # fmt: skip
                print(query, place, lucene[place : place + 3], ours[place : place + 3])
        print(f"| {kind} | {len(queries)} | {ten} | {fifty} | {shared / len(queries):.4f} |")
    return 0


def _java(jar: Path, *argv: str) -> None:
    done = subprocess.run(
        ["java", "-Xmx1g", "-cp", str(jar), *argv], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{argv[0]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def _texts(loaded: object) -> list[str]:
    """Queries of a list of texts, or of a mapping from goals to lists of them."""
    if isinstance(loaded, dict):
        return [text for texts in loaded.values()
                for text in ([texts] if isinstance(texts, str) else texts)]  # fmt: skip
    assert isinstance(loaded, list)
    return [str(text) for text in loaded]


if __name__ == "__main__":
    raise SystemExit(main())
