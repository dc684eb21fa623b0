"""Reservations: nothing is promised twice, nothing promised is forgotten, nothing is held for ever."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hub_ext.quota.arithmetic import Resources
from hub_ext.quota.ledger import SETTLE, Ledger, State
from hub_ext.quota.policy import Limit
from hub_ext.quota.usage import Holding, Observed, Owner
from hub_ext.quota.verdicts import Reason, Scope

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
GPU = "nvidia.com/gpu"
ALICE = Owner(user="alice", team="nlp")
TWO = [Limit(scope=Scope.USER, bound={GPU: 2})]


def holding(server: str = "", gpus: int = 1, owner: Owner = ALICE) -> Holding:
    taken = Resources({GPU: gpus, "servers": 1})
    return Holding(key=f"hub/{owner.user}/{server}", owner=owner, taken=taken)


def reserve(ledger: Ledger, one: Holding, observed: Observed | None = None) -> Ledger:
    after, refusal = ledger.reserve(one, observed or Observed(), TWO, now=NOW)
    assert refusal is None
    return after


def test_two_starts_in_the_same_instant_with_room_for_one() -> None:
    ledger = reserve(Ledger(), holding("a"))
    ledger = reserve(ledger, holding("b"))
    after, refusal = ledger.reserve(holding("c"), Observed(), TWO, now=NOW)
    assert after is ledger
    assert refusal is not None
    assert refusal.reason is Reason.USER_LIMIT


def test_a_pending_start_counts_before_its_pod_exists_and_is_given_back_when_it_fails() -> None:
    observed = Observed([("1", holding())])
    ledger = reserve(Ledger(), holding("a"), observed)
    assert ledger.reserve(holding("b"), observed, TWO, now=NOW)[1] is not None
    assert ledger.release(holding("a").key).reserve(holding("b"), observed, TWO, now=NOW)[1] is None


def test_a_pod_and_its_promise_count_once() -> None:
    ledger = reserve(Ledger(), holding("a"))
    observed = Observed([("1", holding("a"))])
    assert ledger.usage(observed, ALICE).user[GPU] == 1


def test_a_start_counts_while_its_pod_is_deleted_and_made_again() -> None:
    ledger = reserve(Ledger(), holding("a"))
    gone = ledger.reconcile(Observed(), now=NOW + timedelta(hours=1))
    assert gone.usage(Observed(), ALICE).user[GPU] == 1


def test_a_settled_promise_ends_when_the_cluster_shows_its_pod() -> None:
    ledger = reserve(Ledger(), holding("a")).settle(holding("a").key, now=NOW, uid="new")
    old = Observed([("old", holding("a"))])
    assert ledger.reconcile(old, now=NOW).promises, "the old pod of the server is not the new one"
    shown = Observed([("new", holding("a"))])
    assert not ledger.reconcile(shown, now=NOW).promises


def test_a_promise_without_a_pod_ends_after_a_while_and_not_before() -> None:
    ledger = reserve(Ledger(), holding("a")).settle(holding("a").key, now=NOW)
    almost = NOW + SETTLE - timedelta(seconds=1)
    assert ledger.reconcile(Observed(), now=almost).usage(Observed(), ALICE).user[GPU] == 1
    assert not ledger.reconcile(Observed(), now=NOW + SETTLE).promises


def test_a_server_that_starts_again_replaces_itself() -> None:
    observed = Observed([("1", holding("a", gpus=2))])
    ledger = reserve(Ledger(), holding("a", gpus=2), observed)
    ledger = reserve(ledger, holding("a", gpus=1), observed)
    assert ledger.usage(observed, ALICE).user[GPU] == 2, "the old pod is still there"
    settled = ledger.settle(holding("a").key, now=NOW, uid="2")
    assert settled.usage(Observed(), ALICE).user[GPU] == 1


def test_a_start_that_created_nothing_leaves_what_the_one_before_may_have_left() -> None:
    key = holding("a").key
    ledger = reserve(Ledger(), holding("a", gpus=2)).settle(key, now=NOW)
    ledger = reserve(ledger, holding("a", gpus=1))
    assert ledger.usage(Observed(), ALICE).user[GPU] == 2
    ledger = ledger.withdraw(key, now=NOW)
    assert ledger.usage(Observed(), ALICE).user[GPU] == 2
    assert not ledger.reconcile(Observed(), now=NOW + SETTLE).promises
    assert not ledger.release(key).promises


def test_a_promise_beyond_the_pod_that_is_shown_counts_in_full() -> None:
    ledger = reserve(Ledger(), holding("a", gpus=2))
    assert ledger.usage(Observed([("1", holding("a", gpus=1))]), ALICE).user[GPU] == 2


def test_a_server_that_moves_to_another_team_counts_in_both_until_the_old_pod_is_gone() -> None:
    old = Observed([("1", holding("a", owner=Owner(user="alice", team="vision")))])
    ledger = reserve(Ledger(), holding("a"))
    assert ledger.usage(old, ALICE).team[GPU] == 1
    assert ledger.usage(old, Owner(user="alice", team="vision")).team[GPU] == 1


def test_a_promise_becomes_what_the_pod_really_takes() -> None:
    ledger = reserve(Ledger(), holding("a", gpus=1))
    more, refusal = ledger.adjust(holding("a", gpus=2), Observed(), TWO)
    assert refusal is None
    assert more.usage(Observed(), ALICE).user[GPU] == 2
    too_much, refusal = more.adjust(holding("a", gpus=3), Observed(), TWO)
    assert (refusal and refusal.reason, too_much) == (Reason.USER_LIMIT, more)
    less, refusal = more.adjust(holding("a", gpus=1), Observed(), TWO)
    assert refusal is None
    assert less.usage(Observed(), ALICE).user[GPU] == 1


def test_what_is_as_promised_is_not_asked_for_again() -> None:
    """The limit may be used up by then: what was promised stays promised."""
    ledger = reserve(Ledger(), holding("a", gpus=2))
    full = Observed([("1", holding("b", gpus=2))])
    same, refusal = ledger.adjust(holding("a", gpus=2), full, TWO)
    assert refusal is None
    assert same.usage(full, ALICE).user[GPU] == 4


def test_only_what_was_promised_can_be_adjusted() -> None:
    with pytest.raises(KeyError):
        Ledger().adjust(holding("a"), Observed(), TWO)


def test_settling_and_releasing_what_is_not_there_changes_nothing() -> None:
    ledger = Ledger()
    assert ledger.settle("x", now=NOW) is ledger
    assert ledger.release("x") is ledger
    assert ledger.withdraw("x", now=NOW) is ledger
    settled = reserve(ledger, holding()).settle(holding().key, now=NOW, uid="1")
    assert settled.settle(holding().key, now=NOW + SETTLE) is settled
    assert settled.promises[holding().key].state is State.SETTLING


# Interleavings -------------------------------------------------------------------------------------------

OWNERS = [ALICE, Owner(user="bob", team="nlp"), Owner(user="carol", team="vision")]
LIMITS = [
    Limit(scope=Scope.USER, bound={GPU: 3, "servers": 2}),
    Limit(scope=Scope.TEAM, bound={GPU: 4}),
    Limit(scope=Scope.CLUSTER, bound={GPU: 5}),
]


@dataclass
class Pod:
    uid: str
    holding: Holding


@dataclass
class Start:
    """One spawn of the hub: the request to create its pod may be on the way, answered, or given up."""

    holding: Holding
    sent: bool = False
    pod: Pod | None = None


@dataclass
class News:
    """A change of the cluster that the watch has not delivered yet."""

    due: datetime
    uid: str
    holding: Holding | None


@dataclass
class World:
    """The cluster as it is, which the hub sees late."""

    now: datetime = NOW
    pods: dict[str, Pod] = field(default_factory=dict)
    news: list[News] = field(default_factory=list)
    made: int = 0

    def create(self, one: Holding) -> Pod | None:
        """Create a pod; None if one of that name is still there."""
        if any(pod.holding.key == one.key for pod in self.pods.values()):
            return None
        self.made += 1
        pod = Pod(f"uid-{self.made}", one)
        self.pods[pod.uid] = pod
        self._tell(pod.uid, one)
        return pod

    def delete(self, uid: str) -> None:
        del self.pods[uid]
        self._tell(uid, None)

    def _tell(self, uid: str, one: Holding | None) -> None:
        self.news.append(News(self.now + SETTLE * 0.9, uid, one))

    def used(self) -> Observed:
        return Observed((pod.uid, pod.holding) for pod in self.pods.values())


PICK = st.integers(0, 1000)
"""Which of those that are there: the remainder by their number."""


def picked(names: Iterable[str], pick: int) -> str:
    ordered = sorted(names)
    return ordered[pick % len(ordered)]


class Interleavings(RuleBasedStateMachine):
    """A hub, a cluster and a late watch, in any order of steps, with restarts of the hub between."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.starts: dict[str, Start] = {}
        self.ledger = Ledger()
        self.observed = Observed()

    # The hub

    @rule(owner=st.sampled_from(OWNERS), server=st.sampled_from(["", "a"]), gpus=st.integers(0, 3))
    def start(self, owner: Owner, server: str, gpus: int) -> None:
        one = holding(server, gpus, owner)
        if one.key in self.starts:
            return
        self.ledger, refusal = self.ledger.reserve(one, self.observed, LIMITS, now=self.world.now)
        if refusal is None:
            self.starts[one.key] = Start(one)

    @rule(owner=st.sampled_from(OWNERS[:2]), gpus=st.integers(1, 2))
    def start_at_once(self, owner: Owner, gpus: int) -> None:
        """A whole start without anything between, the common case."""
        self.start(owner, "", gpus)
        key = holding("", gpus, owner).key
        if one := self.starts.pop(key, None):
            one.pod = one.pod or self.world.create(one.holding)
            uid = one.pod.uid if one.pod else ""
            self.ledger = self.ledger.settle(key, now=self.world.now, uid=uid)

    @precondition(lambda self: self.starts)
    @rule(pick=PICK, gpus=st.integers(0, 3))
    def adjust(self, pick: int, gpus: int) -> None:
        """The pod of a start turns out to ask for something else; if that does not fit, the start ends."""
        key = picked(self.starts, pick)
        one = self.starts[key]
        if one.sent:
            return
        taken = Resources({GPU: gpus, "servers": 1})
        other = Holding(key=key, owner=one.holding.owner, taken=taken)
        self.ledger, refusal = self.ledger.adjust(other, self.observed, LIMITS)
        if refusal is None:
            one.holding = other
        else:
            del self.starts[key]
            self.ledger = self.ledger.withdraw(key, now=self.world.now)

    @precondition(lambda self: self.starts)
    @rule(pick=PICK)
    def send_create(self, pick: int) -> None:
        one = self.starts[picked(self.starts, pick)]
        if not one.sent and (pod := self.world.create(one.holding)):
            one.sent, one.pod = True, pod

    @precondition(lambda self: self.starts)
    @rule(pick=PICK, answered=st.booleans())
    def finish(self, pick: int, answered: bool) -> None:
        """A start is over: its pod runs, nothing was created, or nobody knows."""
        key = picked(self.starts, pick)
        one = self.starts.pop(key)
        if one.pod is None and answered:
            self.ledger = self.ledger.withdraw(key, now=self.world.now)
        else:
            uid = one.pod.uid if one.pod and answered else ""
            self.ledger = self.ledger.settle(key, now=self.world.now, uid=uid)

    @precondition(lambda self: self.starts)
    @rule(pick=PICK)
    def remake(self, pick: int) -> None:
        """A start deletes the pod that it made and makes another one."""
        one = self.starts[picked(self.starts, pick)]
        if one.pod and one.pod.uid in self.world.pods:
            self.world.delete(one.pod.uid)
            one.pod = self.world.create(one.holding)

    @rule()
    def restart(self) -> None:
        """The hub dies with all it knew and loads the cluster as it is."""
        self.starts.clear()
        self.ledger = Ledger()
        self.world.news.clear()
        self.observed = self.world.used()

    @rule()
    def reconcile(self) -> None:
        self.ledger = self.ledger.reconcile(self.observed, now=self.world.now)

    # The cluster

    @precondition(lambda self: self.world.pods)
    @rule(pick=PICK)
    def pod_goes(self, pick: int) -> None:
        """A pod is stopped, evicted or deleted by hand."""
        self.world.delete(picked(self.world.pods, pick))

    @precondition(lambda self: self.world.news)
    @rule()
    def deliver(self) -> None:
        news = self.world.news.pop(0)
        self.observed.put(news.uid, news.holding)

    @rule(seconds=st.integers(0, 40))
    def wait(self, seconds: int) -> None:
        """Time passes; what is due by then is delivered."""
        self.world.now += timedelta(seconds=seconds)
        while self.world.news and self.world.news[0].due <= self.world.now:
            self.deliver()

    # What always holds

    @initialize()
    def begin(self) -> None:
        self.restart()

    @invariant()
    def nothing_overshoots(self) -> None:
        truth = self.world.used()
        for owner in OWNERS:
            usage = truth.usage(owner)
            for limit in LIMITS:
                for name, most in limit.bound.items():
                    assert usage.within(limit.scope)[name] <= most

    @invariant()
    def no_promise_is_lost(self) -> None:
        counted = self.ledger.usage(self.observed, ALICE).cluster[GPU]
        pods = {pod.holding.key: pod.holding.taken[GPU] for pod in self.world.pods.values()}
        starting = {key: one.holding.taken[GPU] for key, one in self.starts.items()}
        assert counted >= sum(max(pods.get(key, 0), starting.get(key, 0)) for key in {*pods, *starting})

    def teardown(self) -> None:
        """When all is quiet, the books and the cluster agree and nothing is held for nobody."""
        for key in list(self.starts):
            self.ledger = self.ledger.settle(key, now=self.world.now)
        self.wait(int(SETTLE.total_seconds()) + 1)
        self.reconcile()
        assert not self.ledger.promises
        for owner in OWNERS:
            assert self.ledger.usage(self.observed, owner) == self.world.used().usage(owner)


@pytest.mark.timeout(300)
class TestInterleavings(Interleavings.TestCase):  # type: ignore[name-defined,misc]
    settings = settings(
        max_examples=80,
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )


def _if_started(step: Callable[[Interleavings, Random], None]) -> Callable[[Interleavings, Random], None]:
    return lambda machine, chance: step(machine, chance) if machine.starts else None


STEPS: list[Callable[[Interleavings, Random], None]] = [
    lambda m, c: m.start(owner=c.choice(OWNERS), server=c.choice(["", "a"]), gpus=c.randint(0, 3)),
    lambda m, c: m.start_at_once(owner=c.choice(OWNERS[:2]), gpus=c.randint(1, 2)),
    _if_started(lambda m, c: m.adjust(pick=c.randint(0, 99), gpus=c.randint(0, 3))),
    _if_started(lambda m, c: m.send_create(pick=c.randint(0, 99))),
    _if_started(lambda m, c: m.finish(pick=c.randint(0, 99), answered=c.random() < 0.6)),
    _if_started(lambda m, c: m.remake(pick=c.randint(0, 99))),
    lambda m, c: m.pod_goes(pick=c.randint(0, 99)) if m.world.pods else None,
    lambda m, _: m.deliver() if m.world.news else None,
    lambda m, c: m.wait(seconds=c.randint(0, 40)),
    lambda m, _: m.reconcile(),
    lambda m, c: m.restart() if c.random() < 0.3 else None,
]


@pytest.mark.parametrize("block", range(4))
def test_thousands_of_interleavings(block: int) -> None:
    """The same steps by plain chance, many more of them; the seed is in the message of a failure."""
    for seed in range(block * 300, (block + 1) * 300):
        chance, machine = Random(seed), Interleavings()
        machine.begin()
        try:
            for _ in range(40):
                chance.choice(STEPS)(machine, chance)
                machine.nothing_overshoots()
                machine.no_promise_is_lost()
            machine.teardown()
        except AssertionError as error:
            error.add_note(f"seed {seed}")
            raise


@pytest.mark.parametrize("number", [1, 64, 200])
def test_of_many_starts_at_once_exactly_as_many_win_as_there_is_room(number: int) -> None:
    ledger, won = Ledger(), 0
    for index in range(number):
        one = holding("", 1, Owner(user=f"user-{index}", team="nlp"))
        ledger, refusal = ledger.reserve(one, Observed(), LIMITS, now=NOW)
        won += refusal is None
    assert won == min(number, 4)
