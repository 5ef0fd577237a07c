"""Rewards of purchases, worked out by hand from the formula."""

from __future__ import annotations

import pytest
from tests.backends.webshop.webshop_products import asked, row, shop_of

from agentc_backends.environments.webshop.catalogue import Goal
from agentc_backends.environments.webshop.reward import (
    COLOURS,
    alike,
    goal_option,
    plain_colour,
    score,
    title_words,
    token_set_ratio,
    type_factor,
)

LAMP = row("LAMP", options={"color": ["black", "white"], "size": ["small", "large"]})
OTHER = row("OTHER", name="Round Desk Lamp", full_description="It is easy to clean.")
FAR = row("FAR", name="Green Tea", query="teas", product_category="Grocery › Tea")
KNOWN = {
    "LAMP": asked("glass shade", "easy clean"),
    "OTHER": {"attributes": ["shade of glass"]},
    "FAR": {"attributes": ["glass shade", "easy clean"]},
}
SHOP = shop_of([LAMP, OTHER, FAR], KNOWN)


def goal(**options: str) -> Goal:
    wanted = tuple(sorted(options.items()))
    return next(each for each in SHOP.goals if each.options == wanted)


def worth(asin: str, chosen: dict[str, str], price: float = 24.0) -> float:
    wanted = goal(color="black", size="small")
    return score(wanted, SHOP.by_asin[asin], chosen, price).reward


def test_the_product_asked_for_is_worth_one() -> None:
    assert worth("LAMP", {"color": "black", "size": "small"}) == 1.0


@pytest.mark.parametrize(
    ("chosen", "price", "hits"),
    [
        ({}, 24.0, 2 + 0 + 1),
        ({"color": "black"}, 24.0, 2 + 1 + 1),
        ({"color": "white", "size": "small"}, 24.0, 2 + 1 + 1),
        ({"color": "black", "size": "small"}, 10_000.0, 2 + 2 + 0),
        ({}, 10_000.0, 2),
    ],
)
def test_each_miss_costs_a_fifth(chosen: dict[str, str], price: float, hits: int) -> None:
    """Two attributes, two options and the price are asked for: five in all."""
    assert worth("LAMP", chosen, price) == pytest.approx(hits / 5)


def test_attributes_count_by_words_or_as_a_text() -> None:
    """`shade of glass` holds the words of `glass shade`; `easy clean` stands nowhere in OTHER,
    whose description says `easy to clean`. So one attribute and the price of five."""
    assert worth("OTHER", {}) == pytest.approx(2 / 5)


def test_another_type_of_product_is_worth_nothing() -> None:
    assert worth("FAR", {}) == 0.0


@pytest.mark.parametrize(
    ("title", "query", "levels", "factor"),
    [
        ("Plain Desk Lamp", "other", "A › B", 1.0),  # all words of the title
        ("Plain Chair", "desk lamps", "A › B", 1.0),  # the query
        ("Plain Chair", "other", "Home › Lighting", 1.0),  # two levels
        ("Chair", "desk lamps", "Home › Lighting", 0.0),  # no word of the title
    ],
)
def test_type_of_a_product(title: str, query: str, levels: str, factor: float) -> None:
    bought = row("BOUGHT", name=title, query=query, product_category=levels)
    shop = shop_of([LAMP, bought], KNOWN)
    assert type_factor(shop.by_asin["LAMP"], shop.by_asin["BOUGHT"]) == factor


@pytest.mark.parametrize(("words", "factor"), [(3, 1.0), (2, 0.5), (1, 0.5), (0, 0.0)])
def test_titles_alone_need_over_a_fifth(words: int, factor: float) -> None:
    """Of ten words: three are above a fifth, two and one are not, and one is a tenth."""
    names = ["oak", "elm", "ash", "yew", "fir", "box", "bay", "fig", "gum", "nut"]
    wanted = row("WANTED", name=" ".join(names))
    bought = row("BOUGHT", name=" ".join([*names[:words], "stone"]), query="q",
                 product_category="A › B")  # fmt: skip
    shop = shop_of([wanted, bought], {"WANTED": asked("glass shade")})
    assert type_factor(shop.by_asin["WANTED"], shop.by_asin["BOUGHT"]) == factor


def test_a_twentieth_of_a_title_is_worth_a_tenth() -> None:
    names = [f"{first}{second}a" for first in "bcdf" for second in "aeiou"]
    wanted = row("WANTED", name=" ".join(names))
    bought = row("BOUGHT", name=names[0])
    shop = shop_of([wanted, bought], {"WANTED": asked("glass shade")})
    assert type_factor(shop.by_asin["WANTED"], shop.by_asin["BOUGHT"]) == 0.1


def test_options_are_alike_by_their_words_and_colours_by_their_names() -> None:
    known = {"A": asked("glass shade")}
    options = {"size": ["small", "small wide"], "color": ["navy blue", "blue"]}
    shop = shop_of([row("A", options=options)], known)
    wanted = next(g for g in shop.goals if g.options == (("color", "blue"), ("size", "small")))
    of = shop.by_asin["A"]
    assert score(wanted, of, {"size": "small wide"}, 24.0).options == 0
    assert score(wanted, of, {"color": "navy blue"}, 24.0).options == 1


def test_a_chosen_value_may_be_of_any_option() -> None:
    """Released: values are compared with values, and a goal's option counts once."""
    wanted = goal(color="black", size="small")
    chosen = {"finish": "black", "color": "black"}
    assert score(wanted, SHOP.by_asin["LAMP"], chosen, 24.0).options == 1


def test_options_that_nobody_asked_for_count_nothing() -> None:
    lamp = row("A", options={})
    brass = row("B", name="Brass Desk Lamp", options={"finish": ["brass"]})
    shop = shop_of([lamp, brass], {"A": asked("glass shade"), "B": {"attributes": ["glass shade"]}})
    found = score(shop.goals[0], shop.by_asin["B"], {"finish": "brass"}, 24.0)
    assert (found.attributes, found.options, found.price, found.asked) == (1, 0, True, 2)
    assert found.reward == 1.0


@pytest.mark.parametrize(
    ("name", "value", "compared"),
    [
        ("color", "black", "black"),
        ("color", "jet black", "('color', 'jet black')"),
        ("", "jet black", "black"),
        ("size", "6 x 9", "('size', '6 x 9')"),
        ("", "6 x 9", "6 x 9"),
        # Colours hide in other words, as released: `large` is none, `charcoal` is one, `ash` too.
        ("", "x-large", "x-large"),
        ("", "washable", "ash"),
    ],
)
def test_what_an_option_is_compared_as(name: str, value: str, compared: str) -> None:
    assert goal_option(name, value) == compared


def test_words_of_titles() -> None:
    assert title_words("Women's T-Shirt, 2 Pack of RL38 (Slim-Fit)") == (
        "women", "t", "shirt", "pack", "rl38", "slim", "fit",
    )  # fmt: skip


def test_a_title_that_repeats_itself_is_harder_to_match() -> None:
    """One of six words, five of them the same, is under a fifth: another type at half a price."""
    wanted = row("WANTED", name="oak oak oak oak oak elm")
    bought = row("BOUGHT", name="elm stone", query="q", product_category="A › B")
    shop = shop_of([wanted, bought], {"WANTED": asked("glass shade")})
    assert type_factor(shop.by_asin["WANTED"], shop.by_asin["BOUGHT"]) == 0.5


@pytest.mark.parametrize(
    ("first", "second", "ratio"),
    [
        ("easy clean", "clean, EASY!", 100),
        ("easy clean", "easy to clean", 100),
        ("", "easy", 0),
        # No word in common: 2 * 4 of 11 letters lie in the longest common subsequence.
        ("clean", "clears", round(100 * 8 / 11)),
        # `easy` is shared: 1 - (9 - 4) / (9 + 4) and 1 - 2 / 20 are what it may be.
        ("easy clear", "easy clean", 90),
    ],
)
def test_likeness_of_words(first: str, second: str, ratio: int) -> None:
    assert token_set_ratio(first, second) == token_set_ratio(second, first) == ratio


def test_alike_is_a_ratio_above_85() -> None:
    """Also where lengths alone would have told the two apart."""
    texts = ["easy clean", "easy to clean", "clean", "cleaned", "machine washable", "easy cleam"]
    for first in texts:
        for second in texts:
            assert alike(first, second) == (token_set_ratio(first, second) > 85)


def test_letters_beyond_ascii_count_in_part() -> None:
    """As released: those of Latin 1 are left out before words are compared, others are not."""
    assert token_set_ratio("crème", "crme") == 100
    assert token_set_ratio("snake_case", "snake case") < 100


def test_colours_are_made_plain() -> None:
    assert list(COLOURS) == sorted(set(COLOURS))
    assert plain_colour("deep navy stripe") == "navy"
    assert plain_colour("six pack") == "six pack"
