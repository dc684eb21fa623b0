"""All tests here share one demo: a cluster, its hub and proxy, and a headless Chromium."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser import trouble
from tests.browser.pages import PATIENCE_MILLISECONDS, HubPages
from tests.demo.hub import Hub, running_hub
from tests.demo.preparation import CLUSTER, prepare
from tests.demo.users import User
from tests.devcluster.addons.registry import Registry
from tests.devcluster.build import ensure_tools
from tests.devcluster.client import running
from tests.devcluster.spec import load

FOLDER = Path(__file__).parent
ARTIFACTS = FOLDER.parents[1] / "artifacts" / "browser"
TIMEOUT_SECONDS = 1200
"""The first test waits for the cluster, and its start pulls the image."""
CHROMIUM_OPTIONS = (
    "--no-sandbox",  # root may not use it
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
FAILED = pytest.StashKey[bool]()

SignIn = Callable[[User], HubPages]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(FOLDER) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_SECONDS))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "call":
        item.stash[FAILED] = report.failed
    return report


@pytest.fixture(scope="session")
def hub(request: pytest.FixtureRequest) -> Iterator[Hub]:
    _, spec = load(CLUSTER)
    # They take minutes to build, and only their own tests need them.
    tried = any(item.path.stem == "test_images" for item in request.session.items)
    prepare(spec, *(["image:hub", "image:services"] if tried else []))
    with (
        running(CLUSTER) as cluster,
        running_hub(cluster, more=trouble.catalog_parts(Registry(cluster))) as running_one,
    ):
        yield running_one


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = ensure_tools(["chromium"])["chromium"]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=CHROMIUM_OPTIONS)
        yield chromium
        chromium.close()


@pytest.fixture
def sign_in(request: pytest.FixtureRequest, browser: Browser, hub: Hub) -> Iterator[SignIn]:
    """Signs a user in, in a browser of their own. Afterwards their workspace is stopped.

    What a failed test saw last is kept in `artifacts/browser`.
    """
    opened: dict[User, HubPages] = {}

    def sign_in(user: User) -> HubPages:
        # Colors that fade would be measured on their way.
        context = browser.new_context(viewport={"width": 1280, "height": 1000}, reduced_motion="reduce")
        context.set_default_timeout(PATIENCE_MILLISECONDS)  # else half a minute decides
        expect.set_options(timeout=PATIENCE_MILLISECONDS)
        opened[user] = HubPages(context.new_page(), hub.url)
        opened[user].sign_in(user)
        return opened[user]

    yield sign_in
    for user, pages in opened.items():
        if request.node.stash.get(FAILED, True):
            ARTIFACTS.mkdir(parents=True, exist_ok=True)
            picture = ARTIFACTS / f"{request.node.name}-{user.name}.png"
            pages.page.screenshot(path=picture, full_page=True)
            request.node.add_report_section("call", "screenshot", str(picture))
        pages.stop_if_running()
        pages.page.context.close()
