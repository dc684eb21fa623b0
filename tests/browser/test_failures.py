"""What goes wrong on real nodes, through the real hub: each ends in its own text, and the hub stays up."""

from __future__ import annotations

from tests.browser import trouble
from tests.browser.conftest import SignIn
from tests.browser.test_workspaces import DEVICE, start
from tests.demo.hub import Hub
from tests.demo.users import ADA, VERA
from tests.devcluster.control import Verb
from tests.devcluster.gpu.node import GpuNode
from tests.devcluster.waiting import until

FALLEN_OFF_THE_BUS = 79
"""Xid that makes the plugin give a card up; NVIDIA's "Xid Errors" table."""
WHOLE = "nvidia.com/gpu"


def test_more_than_one_share_is_refused_by_the_node_s_plugin(sign_in: SignIn) -> None:
    told = sign_in(VERA).start_in_vain(trouble.GREEDY)
    assert told.startswith("This workspace asks for more than one share of a GPU (2)")
    assert "two would not be twice the GPU" in told


def test_a_registry_that_hangs_is_named_when_the_time_is_over(hub: Hub, sign_in: SignIn) -> None:
    pages = sign_in(ADA)
    log = hub.cluster.logs_dir / "hub.log"

    before = len(log.read_text(errors="replace"))

    def missing() -> str | None:
        said = log.read_text(errors="replace")[before:]
        return None if "reason=pulling" in said else "the hub still waits"

    with trouble.hanging_registry(hub.cluster):
        wait = pages.begin(trouble.HANGING)
        until(missing, what="the end of the start", check=hub.check)
    told = wait.expect_failed("Image that never comes")  # once its pod is gone, which waits for the pull
    assert told.startswith("The workspace did not start in time. Fetching the software of the workspace")


def test_a_webhook_that_is_down_is_named_meanwhile_and_in_the_end(hub: Hub, sign_in: SignIn) -> None:
    pages = sign_in(VERA)
    with trouble.absent_webhook(hub.cluster, trouble.WATCHED) as name:
        wait = pages.begin(trouble.WATCHED)
        wait.expect_told(f"({name}) does not answer", step="Place in the cluster")
        told = wait.expect_failed("Approved by nobody")
    assert f"({name}) does not answer" in told
    hub.check()


def test_a_card_with_a_fault_is_named_and_a_healthy_one_is_given(hub: Hub, sign_in: SignIn) -> None:
    node = GpuNode(hub.cluster, hub.cluster.node("h200-1"))
    pages = sign_in(ADA)

    def offers(number: int) -> None:
        def missing() -> str | None:
            seen = node.allocatable()[WHOLE]
            return None if seen == number else f"it offers {seen}, not {number}"

        until(missing, what="the cards of h200-1", check=hub.check)

    cards = node.cards(node.setup)
    try:
        for card in cards:
            node.machine.report_xid(card.index, FALLEN_OFF_THE_BUS)
        offers(0)
        wait = pages.begin("full-gpu")
        wait.expect_told("has a fault and is not given out", step="Place in the cluster")
        wait.cancel()
    finally:
        node.control(Verb.START)
        offers(len(cards))
    assert start(pages, "One full card").run(DEVICE) in {card.uuid for card in cards}
