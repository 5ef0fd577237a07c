"""What an agent sees and may click, from the first page to the purchase."""

from __future__ import annotations

import pytest
from tests.backends.webshop.webshop_products import asked, environment_of, row, shop_of

from agentc_backends.environments.server.environment import EpisodeError
from agentc_backends.environments.webshop.environment import WebShopEnvironment

ROWS = [
    row(
        "B0LAMP0000",
        name="Plain Desk Lamp",
        full_description="A lamp.",
        small_description=["Sheds light.", "Stands."],
        options={"Color": ["Black", "Oak/White"]},
        pricing="$10.5 to $12",
    ),
    *(row(f"B0LAMP{number:04}", name=f"Desk Lamp {number}") for number in range(1, 24)),
]
SHOP = shop_of(ROWS, {"B0LAMP0000": asked("glass shade")})
ASKED = SHOP.goals[0].instruction


@pytest.fixture
def shopper() -> WebShopEnvironment:
    environment = environment_of(SHOP)
    environment.reset("webshop_0")
    return environment


def does(environment: WebShopEnvironment, *actions: str) -> str:
    for action in actions:
        observation = environment.step(action)[0]
    return observation


def test_first_page() -> None:
    opening, _ = environment_of(SHOP).reset("webshop_0")
    assert opening == f"WebShop [SEP] Instruction: [SEP] {ASKED} [SEP] Search"
    assert ASKED.startswith("Find me glass shade desk lamps with color: ")
    assert ", and price lower than " in ASKED


def test_results_have_pages_of_ten(shopper: WebShopEnvironment) -> None:
    first = does(shopper, "search[Plain desk lamp]")
    head = f"Instruction: [SEP] {ASKED} [SEP] Back to Search [SEP] Page "
    assert first.startswith(
        head + "1 (Total results: 24) [SEP] Next > [SEP] B0LAMP0000 [SEP] Plain Desk Lamp [SEP] "
        "$10.5 to $12.0 [SEP] "
    )
    assert first.count("B0LAMP") == 10
    second = does(shopper, "click[next >]")
    assert second.startswith(head + "2 (Total results: 24) [SEP] < Prev [SEP] Next > [SEP] B0LAMP")
    last = does(shopper, "click[Next >]")
    assert last.startswith(head + "3 (Total results: 24) [SEP] < Prev [SEP] Next > [SEP] B0LAMP")
    assert last.count("B0LAMP") == 4
    beyond = does(shopper, "click[next >]")
    assert beyond == head + "4 (Total results: 24) [SEP] < Prev [SEP] Next >", "as released"
    assert does(shopper, "click[< prev]", "click[< prev]", "click[< prev]") == first
    kept = shopper.snapshot()
    does(shopper, *["click[next >]"] * 9)
    twin = environment_of(SHOP)
    twin.restore(shopper.snapshot())
    assert does(twin, "click[< prev]") == does(shopper, "click[< prev]")
    twin.restore(kept)
    assert does(twin, "look") == first


def test_pages_can_be_shorter_and_without_the_instruction() -> None:
    shopper = environment_of(SHOP, page_size=5, repeat_instruction=False)
    opening, _ = shopper.reset("webshop_0")
    assert ASKED in opening
    first = does(shopper, "search[Plain desk lamp]")
    assert first.startswith("Back to Search [SEP] Page 1 (Total results: 24) [SEP] Next > [SEP] B0")
    assert first.count("B0LAMP") == 5
    last = does(shopper, *["click[next >]"] * 4)
    head = "Back to Search [SEP] Page 5 (Total results: 24) [SEP] < Prev [SEP] Next > [SEP] B0"
    assert last.startswith(head)
    assert last.count("B0LAMP") == 4
    other = environment_of(SHOP, page_size=5, repeat_instruction=False)
    other.restore(shopper.snapshot())
    assert does(other, "click[< prev]") == does(shopper, "click[< prev]")
    item = does(shopper, "click[< prev]", "click[< prev]", "click[< prev]", "click[b0lamp0000]")
    assert item.startswith("Back to Search [SEP] < Prev [SEP] color [SEP] ")


def test_a_product_and_its_details(shopper: WebShopEnvironment) -> None:
    results = does(shopper, "search[plain]")
    item = does(shopper, "click[b0lamp0000]")
    head = f"Instruction: [SEP] {ASKED} [SEP] Back to Search [SEP] < Prev [SEP] "
    assert item == head + (
        "color [SEP] black [SEP] oak | white [SEP] Plain Desk Lamp [SEP] Price: $10.5 to $12.0 "
        "[SEP] Rating: N.A. [SEP] Description [SEP] Features [SEP] Reviews [SEP] Buy Now"
    )
    assert does(shopper, "click[black]") == item, "choosing shows nowhere"
    assert does(shopper, "click[description]") == head + "A lamp."
    assert does(shopper, "click[features]") == item.split(" [SEP] color")[0] + " [SEP] A lamp."
    assert does(shopper, "click[< prev]", "click[Features]") == head + "Sheds light. [SEP] Stands."
    assert does(shopper, "click[< prev]", "click[< prev]") == results
    assert does(shopper, "click[back to search]").startswith("WebShop [SEP] ")


def test_what_a_product_lacks_shows_nowhere() -> None:
    """Read as the released page is: no text is no part of it, blank lines are none, spaces one."""
    bare = row(
        "B0BARE0000",
        name="Bare Lamp",
        small_description=["", "First.", "\n", " Second. "],
        options={"color": ["red", ""], "": ["odd"]},
    )
    environment = environment_of(shop_of([bare], {"B0BARE0000": asked("glass")}))
    environment.reset("webshop_0")
    head = f"{environment.step('search[bare]')[0].split(' [SEP] Page')[0]} [SEP] < Prev"
    item = does(environment, "click[B0BARE0000]")
    assert item.startswith(f"{head} [SEP] color [SEP] red [SEP] odd [SEP] Bare Lamp [SEP] Price: ")
    assert does(environment, "click[description]") == head
    assert does(environment, "click[< prev]", "click[features]") == (
        f"{head} [SEP]  [SEP] First. [SEP] Second."
    )
    assert does(environment, "click[< prev]", "click[reviews]") == head


def test_what_can_be_clicked(shopper: WebShopEnvironment) -> None:
    assert shopper.clickables() == ()
    does(shopper, "search[plain]")
    assert shopper.clickables() == ("back to search", "next >", "b0lamp0000")
    does(shopper, "click[b0lamp0000]")
    assert set(shopper.clickables()) == {
        "back to search", "< prev", "description", "features", "reviews", "buy now", "black",
        "oak | white",
    }  # fmt: skip
    does(shopper, "click[reviews]")
    assert shopper.clickables() == ("back to search", "< prev")


@pytest.mark.parametrize(
    "action",
    ["buy", "click[buy now]", "click[b0lamp0000]", "click[search]", "search[]", "look", "",
     " search[lamp]", "Search[lamp]", "search[a[b]", "click[back to search",
     "search[lamp] [red]"],
)  # fmt: skip
def test_other_actions_change_nothing(shopper: WebShopEnvironment, action: str) -> None:
    opening = shopper.reset("webshop_0")[0]
    assert shopper.step(action) == (opening, 0.0, False, False, {})


def test_buying_ends_and_counts_what_was_chosen_last(shopper: WebShopEnvironment) -> None:
    wanted = dict(SHOP.goals[0].options)["color"]
    other = "black" if wanted != "black" else "oak | white"
    does(shopper, "search[plain]", "click[b0lamp0000]", f"click[{other}]", f"click[{wanted}]")
    text, reward, done, cut, _ = shopper.step("click[buy now]")
    assert (reward, done, cut) == (1.0, True, False)
    assert text.startswith("Thank you for shopping with us! [SEP] ")
    assert text.endswith(" [SEP] 1.0")
    assert shopper.step("search[lamp]")[:3] == (text, 1.0, True)


def test_going_back_forgets_what_was_chosen(shopper: WebShopEnvironment) -> None:
    wanted = dict(SHOP.goals[0].options)["color"]
    does(shopper, "search[plain]", "click[b0lamp0000]", f"click[{wanted}]", "click[< prev]")
    does(shopper, "click[b0lamp0000]")
    assert shopper.step("click[buy now]")[1] == pytest.approx(2 / 3)


def test_a_step_needs_a_reset() -> None:
    with pytest.raises(EpisodeError, match="reset"):
        environment_of(SHOP).step("search[lamp]")
    with pytest.raises(EpisodeError, match="webshop_99"):
        environment_of(SHOP).reset("webshop_99")
