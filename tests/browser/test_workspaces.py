"""What a person does, from signing in to a cell's output, on real nodes."""

from __future__ import annotations

import json

from playwright.sync_api import expect

from tests.browser.conftest import SignIn
from tests.browser.pages import HubPages, LabPages
from tests.demo.hub import NAMESPACE, Hub
from tests.demo.users import ADA, VERA, User
from tests.devcluster.waiting import until

DEVICE = 'import os; print(os.environ["NVIDIA_VISIBLE_DEVICES"])'
KEEP = 'print(open("/home/jovyan/kept.txt", "w").write("kept"))'
READ = 'print(open("/home/jovyan/kept.txt").read())'


def start(pages: HubPages, title: str, **choices: str) -> LabPages:
    lab = pages.start(title, choices)
    lab.new_notebook()
    return lab


def node_of(hub: Hub, user: User) -> str:
    """Name of the node that a user's workspace runs on."""
    selector = f"hub.jupyter.org/username={user.name}"
    pods = json.loads(
        hub.cluster.kubectl(
            "get", "pods", f"--namespace={NAMESPACE}", f"--selector={selector}", "--output=json"
        )
    )
    (pod,) = pods["items"]
    return str(pod["spec"]["nodeName"])


def test_mig_slice_and_a_home_that_stays(hub: Hub, sign_in: SignIn) -> None:
    pages = sign_in(ADA)
    lab = start(pages, "GPU slice", Size="3/7 of the card, 71 GB")
    assert node_of(hub, ADA) == "h200-mig-1"
    assert lab.run(DEVICE).startswith("MIG-")
    assert lab.run(KEEP) == "4"

    pages.stop()
    pages.open_spawn_page()  # what was started last is chosen
    expect(pages.profile("GPU slice")).to_be_checked()
    expect(pages.card("GPU slice").get_by_label("Size")).to_have_value("large")
    lab = start(pages, "Notebook without GPU")
    assert node_of(hub, ADA) == "cpu-1"
    assert lab.run(DEVICE) == "void"
    assert lab.run(READ) == "kept"


def test_time_sliced_share(hub: Hub, sign_in: SignIn) -> None:
    title = "Shared GPU for small experiments"
    other = sign_in(ADA)

    def told(*words: str) -> str | None:
        other.open_spawn_page()
        card = other.card(title).inner_text()
        return None if all(one in card for one in words) else card

    until(lambda: told("4 free now"), what="all shares to be free", check=hub.check)
    lab = start(sign_in(VERA), title)
    assert node_of(hub, VERA) == "l40s-1"
    assert lab.run(DEVICE).startswith("GPU-")
    what = "one share less, on a node that has the image"
    until(lambda: told("3 free now", "warm start"), what=what, check=hub.check)


def test_refusal_is_the_same_on_the_page_after_the_form_and_by_rest(sign_in: SignIn) -> None:
    pages = sign_in(VERA)
    pages.open_spawn_page()
    assert pages.profile("One full card").is_disabled()
    told = pages.refusal("One full card")
    assert told

    assert told in pages.force_form("One full card")
    status, message = pages.start_by_rest({"profile": "full-gpu"})
    assert status == 403
    assert told in message
