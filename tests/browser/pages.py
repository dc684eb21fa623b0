"""What a person sees and does, by the words on the page.

Shell: drives a browser.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from playwright.sync_api import Locator, Page, Response, WebSocket, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

from tests.demo.users import User
from tests.devcluster.waiting import PATIENCE_SECONDS, until

PATIENCE_MILLISECONDS = PATIENCE_SECONDS * 1000
SCRIPT_MILLISECONDS = 20_000
"""After this, a page whose script did not come is loaded again, as a person would."""
READY = "window._jupyterhub_page_loaded === true"
"""JupyterHub's pages say so when their script has bound their buttons and events."""
LAB = re.compile(r"/user/[^/]+/lab")
SERVERS = """async () => {
    const headers = {"X-XSRFToken": window.jhdata.xsrf_token};
    const answer = await fetch(`${window.jhdata.base_url}api/users/${window.jhdata.user}`, {headers});
    return answer.ok ? Object.keys((await answer.json()).servers) : [`HTTP ${answer.status}`];
}"""
"""Names of the user's servers that have not ended; of an answer that is none, its status."""


class HubPages:
    """The hub's pages, as one signed-in user."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self._url = page, url

    def sign_in(self, user: User) -> None:
        """Sign in; ends where the hub sends its user then."""
        self.page.goto(self._url)
        self.page.get_by_label("Username").fill(user.name)
        self.page.get_by_label("Password").fill(user.password)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url(lambda url: "/hub/login" not in url)

    def profile(self, title: str | re.Pattern[str]) -> Locator:
        """The button that chooses a workspace."""
        return self.page.get_by_role("radio", name=title)

    def card(self, title: str) -> Locator:
        """All that is said about a workspace."""
        return self.page.locator(".gw-card").filter(has=self.profile(title))

    def open_spawn_page(self) -> None:
        """Go where workspaces are chosen."""
        self.page.goto(f"{self._url}/hub/spawn")

    def refusal(self, title: str) -> str:
        """Why a workspace cannot be chosen, as its card says."""
        return self.card(title).locator(".gw-refusal").inner_text()

    def force_form(self, title: str) -> str:
        """Send the form with a choice that the page does not allow; returns what the hub answers."""
        self.profile(title).evaluate("radio => { radio.disabled = false; radio.checked = true; }")
        with self.page.expect_navigation():
            self.page.get_by_role("button", name=re.compile("^Start")).click()
        return self.page.locator("body").inner_text()

    def start_by_rest(self, options: Mapping[str, object]) -> tuple[int, str]:
        """Ask the hub's API for a workspace; returns the status and the message of the answer."""
        answer = self.page.evaluate(
            """async options => {
                const user = window.jhdata.user, token = window.jhdata.xsrf_token;
                const answer = await fetch(`${window.jhdata.base_url}api/users/${user}/server`, {
                    method: "POST",
                    headers: {"Content-Type": "application/json", "X-XSRFToken": token},
                    body: JSON.stringify(options),
                });
                return [answer.status, (await answer.json()).message];
            }""",
            options,
        )
        return int(answer[0]), str(answer[1])

    def begin(self, profile: str) -> WaitPage:
        """Start a workspace by its link, as it is filled in; ends when its wait is shown."""
        self.open_link(profile)
        self.press_start()
        self.page.wait_for_url(re.compile("/hub/spawn-pending/"))
        return WaitPage(self.page)

    def start_in_vain(self, profile: str) -> str:
        """Start what cannot start; returns why, as the form says it or, if that took longer, the wait."""
        self.open_link(profile)
        self.press_start()
        told = self.page.locator(".spawn-error-msg, .gw-failed").first
        expect(told).to_be_visible()
        return told.inner_text().removeprefix("Error: ")

    def open_link(self, profile: str) -> None:
        """Follow a link that somebody sent: the page with this workspace chosen."""
        self.page.goto(f"{self._url}/hub/spawn?profile={profile}")

    def choose(self, title: str) -> None:
        """Choose a workspace by its title."""
        self.card(title).get_by_text(title, exact=True).first.click()  # the title stands before all texts
        expect(self.profile(title)).to_be_checked()

    def press_start(self) -> None:
        """Start what is chosen."""
        self.page.get_by_role("button", name=re.compile("^Start")).click()

    def start(self, title: str, choices: Mapping[str, str] | None = None) -> LabPages:
        """Choose a workspace and start it; ends when JupyterLab is there."""
        self.open_spawn_page()
        self.choose(title)
        for label, option in (choices or {}).items():
            select = self.card(title).get_by_label(label)
            # Its text may go on with what the option costs.
            select.select_option(value=select.locator("option", has_text=option).get_attribute("value"))
        self.press_start()
        self._follow_start()
        return LabPages(self.page)

    def stop(self) -> None:
        """Stop the workspace; ends when the hub offers to start one again.

        Raises `AssertionError` with the hub's answer if it did not want to.
        """
        self._open_home()
        with self.page.expect_response(_stops_a_server) as answered:
            self._stop_button.click()
        answer = answered.value
        assert answer.ok, f"the hub did not stop the workspace: HTTP {answer.status} {answer.text()}"

        def missing() -> str | None:
            left = self.page.evaluate(SERVERS)
            return f"there are still {left}" if left else None

        until(missing, what="the workspace to be gone")  # a slow stop goes on after the answer
        self._open_home()
        expect(self.page.get_by_role("button", name="Start My Server")).to_be_visible()

    def stop_if_running(self) -> None:
        """Stop the workspace if there is one."""
        self._open_home()
        if self._stop_button.is_visible():
            self.stop()

    def _open_home(self) -> None:
        """Go to the user's own page; ends when its buttons do something."""
        for _ in range(PATIENCE_MILLISECONDS // SCRIPT_MILLISECONDS):
            self.page.goto(f"{self._url}/hub/home")
            if self._script_came():
                return
        raise AssertionError("the script of the hub's home page never came")

    def _follow_start(self) -> None:
        """Wait for JupyterLab; the page in between goes on by its script."""
        for _ in range(PATIENCE_MILLISECONDS // SCRIPT_MILLISECONDS):
            try:
                self.page.wait_for_url(LAB, timeout=SCRIPT_MILLISECONDS)
            except PlaywrightTimeoutError:
                if "/hub/spawn-pending/" in self.page.url and not self._script_came():
                    self.page.reload()
            else:
                return
        raise AssertionError(
            f"no JupyterLab; {self.page.url} says:\n{self.page.locator('body').inner_text()}"
        )

    def _script_came(self) -> bool:
        """Whether the page's script has run; a browser's loader gives a late one up for good."""
        try:
            self.page.wait_for_function(READY, timeout=SCRIPT_MILLISECONDS)
        except PlaywrightTimeoutError:
            return False
        return True

    @property
    def _stop_button(self) -> Locator:
        return self.page.get_by_role("button", name="Stop My Server")


def _stops_a_server(response: Response) -> bool:
    return response.request.method == "DELETE" and response.url.partition("?")[0].endswith("/server")


class WaitPage:
    """What is shown while a workspace starts."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.title = page.get_by_role("heading", level=1)
        self.now = page.locator("#gw-now")
        """What it waits for, or why it did not start."""
        self.step = page.locator("[aria-current=step] .gw-step")
        """The step that it is at."""
        self.again = page.get_by_role("link", name="Choose a workspace")

    def expect_told(self, text: str | re.Pattern[str], *, step: str) -> None:
        """Wait until it says so at this step."""
        expect(self.now).to_contain_text(text)
        expect(self.step).to_have_text(step)

    def cancel(self) -> None:
        """Give the start up; ends where another one can be chosen."""
        self.page.get_by_role("button", name="Cancel the start").click()
        expect(self.page.get_by_role("heading", name="Choose a workspace")).to_be_visible()

    def expect_failed(self, title: str) -> str:
        """Wait until it gives up; returns why, and checks that a visit later says the same."""
        expect(self.title).to_have_text(f"{title} did not start")
        expect(self.now).to_have_attribute("role", "alert")
        expect(self.again).to_be_visible()
        told = self.now.inner_text()
        self.page.reload()
        expect(self.title).to_have_text("The workspace did not start")
        expect(self.page.locator("body")).to_contain_text(told)
        return told


class LabPages:
    """JupyterLab."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def reset(self) -> None:
        """Close all that was open last, and the questions that come with it."""
        self.page.goto(f"{self.page.url.partition('?')[0]}?reset")

    def new_notebook(self) -> None:
        """Open a notebook from the launcher; ends when its kernel is idle."""
        self.reset()
        heard: list[str] = []

        def listen(socket: WebSocket) -> None:
            if "/channels" in socket.url:
                socket.on("framereceived", lambda _: heard.append(socket.url))

        def missing() -> str | None:
            self.page.title()  # lets the browser tell what it has received
            return None if heard else "it says nothing"

        self.page.on("websocket", listen)
        self.page.locator(".jp-LauncherCard[data-category=Notebook]").first.click()
        # Before its first word a kernel counts as idle too, and what is run then is lost.
        until(missing, what="the kernel's first word")
        self.page.remove_listener("websocket", listen)
        idle = self.page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]")
        expect(idle).to_be_visible()

    def run(self, code: str) -> str:
        """Run code in the notebook's last cell and return what it printed."""
        cells = self.page.locator(".jp-Notebook .jp-CodeCell")
        cell = cells.nth(cells.count() - 1)  # running it adds another one
        cell.locator(".cm-content").click()
        self.page.keyboard.insert_text(code)
        self.page.keyboard.press("Shift+Enter")
        output = cell.locator(".jp-OutputArea-output")
        expect(output).to_be_visible()
        return output.inner_text().strip()
