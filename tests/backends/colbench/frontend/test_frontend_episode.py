"""Episodes over pages: rounds, which page counts, the reward, what leaves the environment."""

from __future__ import annotations

import json

import pytest
from tests.backends.colbench.frontend.conftest import OTHER, SECRET, TASK, WANTED, OpenedPages

from agentc.runtime.browser.render import Rendered
from agentc_backends.environments.colbench.frontend.environment import PageDialogue
from agentc_backends.environments.colbench.frontend.human import NO_PAGE, NOT_SHOWN
from agentc_backends.environments.colbench.frontend.pages import PageTask
from agentc_backends.environments.colbench.frontend.settings import FrontendSettings

MARKER = "I WANT TO ANSWER:"
FIRST = WANTED.replace(SECRET, "mine").replace("blue", "red")
USES = "".join(f'<g id="g{n}">' + f'<use href="#g{n - 1}"/>' * 10 + "</g>" for n in range(1, 9))
HEAVY = f'<html><body><svg><rect id="g0"/>{USES}<use href="#g8"/></svg></body></html>'


def test_a_page_is_seen_corrected_and_rewarded(opened_pages: OpenedPages) -> None:
    world = opened_pages(TASK)
    assert world.reset(TASK.id) == ("A page for a bakery.", {"step_limit": 10})
    assert world.step("What do you want?")[:3] == (NO_PAGE, 0.0, False)
    said = world.step(f"Like this? {FIRST}")[0]
    assert said == 'Behind "Oak Bakery" the colour should be blue (#2563eb).'
    _, reward, done, _, info = world.step(f"{MARKER}\n{FIRST.replace('red', 'blue')}")
    report = info["report"]
    assert (reward, done) == (1.0, True)
    assert report["parts"] == dict.fromkeys(("ssim", "histogram", "phash", "blocks"), 1.0)
    assert (report["render"], report["renders"], report["answer_from"]) == ("ok", 2, "last")
    assert report["human"] == {"replies": 2, "unknown": 0, "cut": 0, "code_like": 0}
    assert set(report["pictures"]) == {"wanted", "made"}
    assert world.step("more")[1:3] == (0.0, True)


def test_of_several_pages_of_a_reply_the_first_counts_as_released() -> None:
    dialogue = PageDialogue(TASK, FrontendSettings())
    assert dialogue.take_action(f"{FIRST} {MARKER} {WANTED}") == (True, True)
    assert dialogue.html == FIRST


def test_without_another_page_the_last_one_counts(opened_pages: OpenedPages) -> None:
    world = opened_pages(TASK, rounds=3)
    world.reset(TASK.id)
    world.step(WANTED)
    world.step(f"{WANTED} again")
    _, reward, done, _, info = world.step("I have no more.")
    report = info["report"]
    assert (reward, done) == (1.0, True)
    assert (report["renders"], report["answer_from"]) == (1, "earlier")


def test_no_page_and_one_that_is_cut_off_are_worth_nothing(opened_pages: OpenedPages) -> None:
    world = opened_pages(TASK, rounds=1, pictures=False)
    for reply in ("No.", WANTED[:-20], f"{MARKER} {WANTED[:-30]}"):
        world.reset(TASK.id)
        _, reward, done, _, info = world.step(reply)
        assert (reward, done, info["report"]["render"]) == (0.0, True, "no_html")
        assert (info["report"]["html_sha256"], info["report"]["parts"]) == (None, {})
        assert "pictures" not in info["report"]


def test_a_hostile_page_is_worth_nothing_and_hurts_no_other_episode(
    opened_pages: OpenedPages,
) -> None:
    world, beside = opened_pages(TASK, rounds=2), opened_pages(OTHER)
    world.reset(TASK.id)
    beside.reset(OTHER.id)
    assert world.step(HEAVY)[0] == NOT_SHOWN
    _, reward, done, _, info = world.step(HEAVY)
    assert (reward, done, info["report"]["render"]) == (0.0, True, "timeout")
    assert beside.step(f"{MARKER} {OTHER.reference}")[1] == 1.0


def test_what_a_page_asked_for_is_counted(opened_pages: OpenedPages) -> None:
    world = opened_pages(TASK)
    world.reset(TASK.id)
    asks = '<img src="https://picsum.photos/id/48/60/40"><img src="http://spy.example/?x=1">'
    info = world.step(f"{MARKER} {WANTED.replace('</main>', asks + '</main>')}")[4]
    assert info["report"]["blocked"] == {"spy.example": 1}


def test_nothing_of_the_wanted_page_s_source_leaves(opened_pages: OpenedPages) -> None:
    world = opened_pages(TASK)
    told = [world.reset(TASK.id)]
    for reply in ("Which?", f"<html><body>{MARKER[:5]}</body></html>", FIRST):
        told.append(world.step(reply))
        told.append(world.snapshot())
    told.append(world.step(f"{MARKER} {FIRST}"))
    whole = json.dumps([*told, world.identity(), world.facts()])
    assert SECRET not in whole
    assert world.hidden_text(TASK.id) == (WANTED, "text/html")


def test_the_expert_of_invented_pages(opened_pages: OpenedPages) -> None:
    world = opened_pages(invented_tasks=12)
    (task, *_), done, reward = world.tasks("all"), False, 0.0
    world.reset(task)
    for action in world.expert_steps(task, seed=3):
        assert not done
        _, reward, done, _, _ = world.step(action.action)
    assert (reward, done) == (1.0, True)


def test_a_careless_expert_leaves_what_it_guessed(opened_pages: OpenedPages) -> None:
    careful, careless = opened_pages(invented_tasks=12), opened_pages(invented_tasks=12, careless=1)
    short = opened_pages(invented_tasks=12, rounds=2)
    answers = {}
    for name, world in (("careful", careful), ("careless", careless)):
        last = {task: world.expert_steps(task, seed=3)[-1].action for task in world.tasks("all")}
        answers[name] = sum(careful.hidden_text(task).text in last[task] for task in last)
        assert all(each.startswith(MARKER) for each in last.values())
        assert len({len(careless.expert_steps(task, seed=3)) for task in last}) == 1
    assert answers["careful"] == 12
    assert answers["careless"] < 6
    assert max(len(short.expert_steps(task, seed=3)) for task in short.tasks("all")) == 2


class _Blabber:
    """Says the page's source, and something else when asked again."""

    def reply(
        self, task: PageTask, round_: int, wanted: Rendered, made: Rendered | None, *, again: bool
    ) -> str:
        return "Make it blue." if again else f"Write {task.reference[:200]}"


@pytest.mark.parametrize(
    ("guard", "said"),
    [("count", f"Write {WANTED[:200]}"), ("cut", "Write"), ("refuse", "Make it blue.")],
)
def test_the_human_s_replies_are_guarded(opened_pages: OpenedPages, guard: str, said: str) -> None:
    world = opened_pages(TASK, human=_Blabber(), guard=guard)
    world.reset(TASK.id)
    assert world.step("Tell me.")[0] == said
    assert world.snapshot()["counts"]["code_like"] == 1
