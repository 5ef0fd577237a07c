"""Splits of a shop's goals: agentc's own, ranges, lists or files of goal numbers.

Goals are told apart by what they ask of which product, never by number alone: splits that share
one are refused. Resolved while a spec is compiled, so that keys follow the goals themselves.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from agentc_backends.environments.server.splits import (
    ReadFile,
    SplitError,
    check_disjoint,
    check_names,
    content_of,
    fold_numbers,
    others_left_out,
    unfold_numbers,
)

if TYPE_CHECKING:
    from agentc_backends.environments.webshop.shop import Shop

Numbers: TypeAlias = tuple[int, ...]

OWN = ("train", "dev", "test")
DEFAULT: Mapping[str, Any] = {name: {"own": name} for name in OWN}
_ITEM = re.compile(r"(?:webshop_|fixed_)?([0-9]{1,9})")
_OWN_LINE = re.compile(r"own (train|dev|test) \(([0-9]+)\)")


def read_splits(written: Mapping[str, Any], shop: Shop, read_file: ReadFile) -> dict[str, str]:
    """A line for each split: `own train (5502)` or numbers, `0-13,20`. Raises SplitError."""
    check_names(written)
    found = {name: _read(name, value, shop, read_file) for name, value in written.items()}
    for name, value in written.items():
        others = others_left_out(name, value, found)
        left_out = {shop.identities[n] for other in others for n in found[other]}
        found[name] = tuple(n for n in found[name] if shop.identities[n] not in left_out)
        if not found[name]:
            raise SplitError(f"the split `{name}` holds no goal")
    check_disjoint(
        found,
        lambda shared: f"{len(shared)} goals, such as {shared[0]}",
        shop.identities.__getitem__,
    )
    return {name: _line(value, found[name]) for name, value in written.items()}


def numbers_of(line: str, shop: Shop) -> Numbers:
    """The goals of a line that `read_splits` made."""
    if match := _OWN_LINE.fullmatch(line):
        return shop.own_splits[match[1]]
    return unfold_numbers(line)


def size(line: str) -> int:
    match = _OWN_LINE.fullmatch(line)
    return int(match[2]) if match else len(unfold_numbers(line))


def task_id(number: int) -> str:
    """As published lists write it."""
    return f"webshop_{number}"


def _read(name: str, value: Any, shop: Shop, read_file: ReadFile) -> Numbers:
    total = len(shop.goals)
    match value:
        case {"own": str(own), **rest} if own in OWN:
            numbers = shop.own_splits[own]
        case {"range": [int(first), int(end)], **rest} if 0 <= first < end:
            numbers = tuple(range(first, min(end, total + 1)))
        case {"ids": list(ids), **rest} if ids:
            numbers = tuple(_number(name, "ids", each) for each in ids)
        case {"file": str(path), **rest}:
            numbers = _of_file(name, path, read_file)
        case _:
            raise SplitError(
                f"the split `{name}` is {json.dumps(value)[:80]}; expected `{{own: train|dev|"
                "test}`, `{range: [first, end]}` (the end is left out), `{ids: [...]}` or "
                "`{file: path}`"
            )
    if unknown := [key for key in rest if key not in ("except", "repeated")]:
        raise SplitError(f"the split `{name}` has an unknown key `{unknown[0]}`")
    if rest.get("repeated", "drop") != "drop":
        raise SplitError(f"the split `{name}`: `repeated` can only be `drop`")
    if beyond := [number for number in numbers if number >= total]:
        others = f" and {len(beyond) - 1} others beyond" if beyond[1:] else ""
        raise SplitError(
            f"the split `{name}` holds goal {beyond[0]}{others}, but the catalogue gives 0 to "
            f"{total - 1}: is the list of goals that people wrote, over another catalogue?"
        )
    if "repeated" in rest:
        return tuple(dict.fromkeys(numbers))
    if repeated := [number for number, count in Counter(numbers).items() if count > 1]:
        more = f" and {len(repeated) - 1} others" if repeated[1:] else ""
        raise SplitError(
            f"the split `{name}` holds goal {repeated[0]}{more} twice: write `repeated: drop` in "
            "it to take each once"
        )
    return numbers


def _of_file(name: str, path: str, read_file: ReadFile) -> Numbers:
    content = content_of(name, path, read_file)
    try:
        items = json.loads(content)
    except (ValueError, RecursionError):
        raise SplitError(f"the split `{name}`: {path} is no JSON") from None
    if not isinstance(items, (list, dict)) or not items:
        raise SplitError(f"the split `{name}`: {path} is no list of goals")
    return tuple(_number(name, path, each) for each in items)


def _number(name: str, place: str, item: Any) -> int:
    written = item.get("item_id") if isinstance(item, dict) else item
    match = _ITEM.fullmatch(str(written))
    if match is None:
        raise SplitError(
            f"the split `{name}`: {json.dumps(item)[:60]} in {place} is no goal's number, such as "
            "31 or webshop_31"
        )
    return int(match[1])


def _line(value: Mapping[str, Any], numbers: Numbers) -> str:
    own = value.get("own")
    whole = own is not None and "except" not in value
    return f"own {own} ({len(numbers)})" if whole else fold_numbers(numbers)
