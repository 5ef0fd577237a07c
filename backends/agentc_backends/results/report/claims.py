"""Claims of a report: the paper's interval and ours on one scale, and the verdict. No markup."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentc.runtime.health import verdict_words
from agentc_backends.results.report.collect import Collection
from agentc_backends.results.report.tables import anchor

_CLASSES = {"reproduced": "good", "not reproduced": "bad", "within noise": "open"}
_MARGIN = 0.06
"""Room beside the outermost mark, as a share of the scale."""


def claim_tables(collection: Collection) -> list[dict[str, Any]]:
    """The claims.json of each judge, each claim with what its row shows."""
    found = []
    for node in collection.of_type("Verdicts"):
        document = node.document("claims.json")
        rows = [_row(claim) for claim in document["claims"]]
        counts: dict[str, int] = {}
        for row in rows:
            counts[row["verdict"]] = counts.get(row["verdict"], 0) + 1
        found.append(
            {
                "name": node.name,
                "anchor": anchor(node),
                "rows": rows,
                "counts": [(word, counts[word], _CLASSES.get(word, "none")) for word in counts],
                "confidence": document["confidence"],
                "scale": document.get("scale"),
                # A hypothesis of one's own has no paper.
                "printed": any(r["relation"] == "value" or r["table"] for r in rows),
            }
        )
    return found


def _row(claim: Mapping[str, Any]) -> dict[str, Any]:
    factor, digits = (100.0, 1) if claim["percent"] else (1.0, 3)
    paper, observed, band = claim["paper"], claim["observed"], claim["band"]
    value = claim["value"]
    ends = [value, *(band or ())]
    ends += [each[k] for each in (paper, observed) if each for k in ("low", "mean", "high")]
    ends = [end for end in ends if end is not None]
    reach = (max(ends) - min(ends)) * _MARGIN or 0.05
    verdict = verdict_words(claim["verdict"], observed or {})
    measured = claim["stage"]
    if claim["difference_from"] is not None:
        other = claim.get("difference_metric")
        over = " over " if claim["metric"] == "win_rate" else " − "
        measured += over + (f"{other} of " if other else "") + claim["difference_from"]
    if claim.get("reach") is not None:
        measured = measured.replace(" − ", " / ") + f", return of {claim['reach']:g}"
    if observed and "bound" in observed:
        observed = _of_a_curve(observed, max(ends) + reach)
        digits = 0 if claim["difference_from"] is None else 3
    return {
        "name": claim["name"],
        "what": claim["what"],
        "table": claim["table"],
        "measured": f"{claim['metric']} of {measured}",
        "verdict": verdict,
        "class": _CLASSES.get(verdict, "none"),
        "gate": claim["gate"],
        "because": claim["because"],
        "relation": claim["relation"],
        "seeds": claim["seeds"],
        "n": claim["n"],
        "value": value,
        "paper": paper,
        "observed": observed,
        "band": band,
        "scale": (min(ends) - reach, max(ends) + reach),
        "factor": factor,
        "digits": digits,
    }


def _of_a_curve(observed: Mapping[str, Any], right: float) -> dict[str, Any]:
    """A number that may be a bound, its interval drawn to the `right` end where it is open; it is
    counted in runs."""
    runs = "1 run" if observed["n"] == 1 else f"{observed['n']} runs"
    sign = {"above": "≥ ", "below": "≤ "}.get(observed["bound"], "")
    drawn = {**observed, "sign": sign, "counted": runs}
    return drawn if observed["high"] is not None else {**drawn, "high": right, "open": True}
