"""At no moment are more pulls under way than the limits say, whatever becomes of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from services.prepuller.pods import PullPod, Step
from services.prepuller.reasons import BLAMES, Reason, State
from services.prepuller.settings import Settings
from services.prepuller.wants import Desired, desire
from tests.unit.prepuller import world

STEP = timedelta(seconds=5)
IMAGES = {f"i{number}": world.ref(f"i{number}", "abcdef"[number]) for number in range(6)}
# Two registries, three pools, one of which overlaps with another.
IMAGES |= {"i4": IMAGES["i4"].replace(world.REGISTRY, "other.example.org")}


@dataclass
class Fate:
    """What becomes of a pull."""

    seconds: int
    reason: Reason | None
    lingers: int
    """Seconds that its node does not let go of the pod after it was deleted."""


@dataclass
class Play:
    """The cluster over time: pods begin, end, fail, and go some time after they were deleted."""

    cluster: world.Cluster
    desired: Desired
    settings: Settings
    fates: list[Fate]
    created: int = 0
    ends: dict[str, datetime] = field(default_factory=dict)
    goes: dict[str, datetime] = field(default_factory=dict)
    fate_of: dict[str, Fate] = field(default_factory=dict)

    def turn(self) -> None:
        now = self.cluster.now
        for name, pod in list(self.cluster.pods.items()):
            if name in self.goes and now >= self.goes[name]:
                del self.cluster.pods[name], self.goes[name]
            elif pod.step is Step.PULLING and now >= self.ends[name]:
                fate = self.fate_of[name]
                step = Step.FAILED if fate.reason else Step.DONE
                self.cluster.pods[name] = replace(pod, step=step, reason=fate.reason, since=now)
        made = self.cluster.plan(self.desired, self.settings)
        for drop in made.drops:
            fate = self.fate_of[drop.pod.name]
            self.goes[drop.pod.name] = now + timedelta(seconds=fate.lingers)
            self.cluster.pods[drop.pod.name] = replace(self.cluster.pods[drop.pod.name], ending=True)
        for one in made.fetches:
            self._create(one.want.id, one.want.image, one.node)
        self.check()
        self.cluster.now = now + STEP

    def _create(self, want: str, image: str, node: str) -> None:
        name = f"{want}/{node}"
        assert name not in self.cluster.pods, "a second pod of one image on one node"
        fate = self.fates[self.created % len(self.fates)]
        self.created += 1
        now = self.cluster.now
        self.fate_of[name], self.ends[name] = fate, now + timedelta(seconds=fate.seconds)
        self.cluster.pods[name] = PullPod(
            uid=f"uid-{self.created}",
            name=name,
            node=node,
            want=want,
            image=image,
            step=Step.PULLING,
            since=now,
            created=now,
        )

    def check(self) -> None:
        limits = self.settings.limits
        flying = [pod for pod in self.cluster.pods.values() if pod.in_flight]
        layout = self.cluster.picture_now.layout
        pools = Counter(pool for pod in flying for pool in layout.pools_of.get(pod.node, ()))
        registries = Counter(self.desired.wants[pod.want].registry for pod in flying)
        nodes = Counter(pod.node for pod in flying)
        assert len(flying) <= limits.total
        assert max(nodes.values(), default=0) <= 1
        assert max(pools.values(), default=0) <= limits.per_pool
        assert all(number <= limits.of_registry(host) for host, number in registries.items())
        assert len(self.cluster.pods) <= limits.pins


FATES = st.lists(
    st.builds(
        Fate,
        seconds=st.integers(0, 120),
        reason=st.one_of(st.none(), st.none(), st.sampled_from(list(BLAMES))),
        lingers=st.integers(0, 60),
    ),
    min_size=1,
    max_size=12,
)


def make_play(fates: list[Fate], limits: dict[str, object], nodes: int = 9) -> Play:
    pools = {
        "a": {"nodeSelector": {"pool": "a"}},
        "b": {"nodeSelector": {"pool": "b"}},
        "all": {"nodeSelector": {"part": "one"}},
    }
    catalog = world.make_catalog(
        world.make_profile("one", ["i0", "i1", "i2"], pool="a"),
        world.make_profile("two", ["i2", "i3"], pool="b"),
        world.make_profile("three", ["i4", "i5"], pool="all"),
        images=IMAGES,
        pools=pools,
    )
    machines = [
        world.make_node(f"n{number}", labels={"pool": "ab"[number % 2], "part": "one"})
        for number in range(nodes)
    ]
    chosen = world.settings(limits={"firstRetry": "10s", "longestRetry": "1m", **limits})
    return Play(world.Cluster(*machines), desire(catalog, chosen, today=world.TODAY), chosen, fates)


@settings(max_examples=20, deadline=None)
@given(
    fates=FATES,
    total=st.integers(1, 8),
    pool=st.integers(1, 6),
    registry=st.integers(1, 6),
    canary=st.booleans(),
    pins=st.integers(5, 60),
)
def test_limits_hold_whatever_becomes_of_pulls(
    fates: list[Fate], total: int, pool: int, registry: int, canary: bool, pins: int
) -> None:
    limits = {
        "total": total,
        "perPool": pool,
        "perRegistry": registry,
        "registries": {"other.example.org": 1},
        "canary": canary,
        "pins": pins,
    }
    play = make_play(fates, limits)
    for _ in range(40):
        play.turn()


def test_all_becomes_warm_in_the_end_though_every_other_pull_fails() -> None:
    failing = [reason for reason in BLAMES if reason is not Reason.EVICTED]
    fates = [fate for reason in failing for fate in (Fate(7, reason, 3), Fate(20, None, 0))]
    play = make_play(fates, {})
    for _ in range(2000):
        play.turn()
        states = {sight.state for sight in play.cluster.picture_now.sights.values()}
        if states == {State.PULLED}:
            return
    raise AssertionError(f"after {2000 * STEP} there are still {states}")


def test_a_restart_in_the_middle_makes_no_second_pod() -> None:
    """The second service knows nothing but the pods; `_create` refuses doubles as the API server does."""
    play = make_play([Fate(60, None, 0)], {"total": 5})
    for turn in range(200):
        if turn % 7 == 0:
            play.cluster.troubles = type(play.cluster.troubles)()
            play.cluster.unneeded = {}
        play.turn()
    assert play.created == len(play.cluster.picture_now.layout.places) > 20
