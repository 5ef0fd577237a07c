"""Retry, rate and routing policies without a network."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentc_backends.clients.request_policy import Bucket, RetryPolicy, rank_replicas, retry_after


@given(st.integers(1, 30), st.integers(0, 2**32))
def test_waits_lie_under_a_doubling_capped_bound(tries: int, seed: int) -> None:
    policy = RetryPolicy(attempts=31, base_s=0.5, cap_s=8.0, source=random.Random(seed))
    wait = policy.wait(tries, None, 0.0)
    assert wait is not None
    assert 0.0 <= wait <= min(8.0, 0.5 * 2 ** (tries - 1))


def test_waits_of_many_clients_are_spread() -> None:
    policy = RetryPolicy(source=random.Random(0), base_s=1.0)
    waits = [policy.wait(1, None, 0.0) or 0.0 for _ in range(1000)]
    assert min(waits) < 0.05
    assert max(waits) > 0.95


def test_it_is_over_after_the_attempts_or_the_deadline() -> None:
    policy = RetryPolicy(attempts=3, deadline_s=10.0)
    assert policy.wait(3, None, 0.0) is None
    assert policy.wait(1, None, 10.1) is None
    assert policy.wait(1, 60.0, 0.0) is None
    assert (policy.wait(1, 5.0, 0.0) or 0.0) >= 5.0


def test_retry_after_is_read_in_both_forms() -> None:
    soon = datetime.now(timezone.utc) + timedelta(seconds=30)
    assert retry_after({"retry-after": "2.5"}) == 2.5
    assert retry_after({"retry-after": format_datetime(soon, usegmt=True)}) == pytest.approx(
        30, abs=2
    )
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({}) is None


@given(st.lists(st.floats(0.0, 5.0), min_size=1, max_size=80))
def test_a_bucket_never_lets_more_through_than_its_rate(pauses: list[float]) -> None:
    now = 0.0
    bucket = Bucket(60.0, burst_s=4.0, clock=lambda: now)
    passed: list[float] = []
    for pause in pauses:
        now += pause
        passed.append(now + bucket.take(1.0))
    for i, start in enumerate(passed):
        for j in range(i, len(passed)):
            # One a second, and four that may have been saved up.
            assert j - i + 1 <= (passed[j] - start) + 4.0 + 1e-6


def test_what_was_charged_too_much_comes_back() -> None:
    bucket = Bucket(60.0, burst_s=10.0, clock=lambda: 0.0)
    assert bucket.take(10.0) == 0.0
    bucket.refund(8.0)
    assert bucket.take(8.0) == 0.0
    assert bucket.take(3.0) == pytest.approx(3.0)


def test_a_lost_replica_moves_only_its_own_keys() -> None:
    urls = [f"http://h{i}" for i in range(5)]
    keys = [f"task-{i}" for i in range(500)]
    before = {key: rank_replicas(urls, key)[0] for key in keys}
    after = {key: rank_replicas(urls[:-1], key)[0] for key in keys}
    moved = {key for key in keys if before[key] != after[key]}
    assert moved == {key for key in keys if before[key] == urls[-1]}
    shares = [list(before.values()).count(url) for url in urls]
    assert min(shares) > 60
    assert all(rank_replicas(urls, key)[0] == rank_replicas(urls[::-1], key)[0] for key in keys)
