"""What a person sees and does, by the words on the page.

Shell: drives a browser.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from playwright.sync_api import Locator, Page, expect

from tests.demo.users import User

START_MILLISECONDS = 180_000
"""A first start pulls the image."""
LAB_MILLISECONDS = 60_000


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

    def start(self, title: str, choices: Mapping[str, str] | None = None) -> LabPages:
        """Choose a workspace and start it; ends when JupyterLab is there."""
        self.open_spawn_page()
        self.card(title).get_by_text(title, exact=True).first.click()  # the title stands before all texts
        expect(self.profile(title)).to_be_checked()
        for label, option in (choices or {}).items():
            select = self.card(title).get_by_label(label)
            # Its text may go on with what the option costs.
            select.select_option(value=select.locator("option", has_text=option).get_attribute("value"))
        self.page.get_by_role("button", name=re.compile("^Start")).click()
        self.page.wait_for_url(re.compile(r"/user/[^/]+/lab"), timeout=START_MILLISECONDS)
        return LabPages(self.page)

    def stop(self) -> None:
        """Stop the workspace; ends when the hub offers to start one again."""
        self.page.goto(f"{self._url}/hub/home")
        self._stop_button.click()
        expect(self.page.get_by_role("button", name="Start My Server")).to_be_visible(
            timeout=LAB_MILLISECONDS
        )

    def stop_if_running(self) -> None:
        """Stop the workspace if there is one."""
        self.page.goto(f"{self._url}/hub/home")
        if self._stop_button.is_visible():
            self.stop()

    @property
    def _stop_button(self) -> Locator:
        return self.page.get_by_role("button", name="Stop My Server")


class LabPages:
    """JupyterLab."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def new_notebook(self) -> None:
        """Open a notebook from the launcher; ends when its kernel is idle."""
        self.page.goto(f"{self.page.url.partition('?')[0]}?reset")  # else it opens what was open last
        card = self.page.locator(".jp-LauncherCard[data-category=Notebook]").first
        with self.page.expect_websocket(
            lambda socket: "/channels" in socket.url, timeout=LAB_MILLISECONDS
        ) as kernel:
            card.click(timeout=LAB_MILLISECONDS)
        # Before its first word a kernel counts as idle too, and what is run then is lost.
        kernel.value.wait_for_event("framereceived", timeout=LAB_MILLISECONDS)
        idle = self.page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]")
        expect(idle).to_be_visible(timeout=LAB_MILLISECONDS)

    def run(self, code: str) -> str:
        """Run code in the notebook's last cell and return what it printed."""
        cells = self.page.locator(".jp-Notebook .jp-CodeCell")
        cell = cells.nth(cells.count() - 1)  # running it adds another one
        cell.locator(".cm-content").click()
        self.page.keyboard.insert_text(code)
        self.page.keyboard.press("Shift+Enter")
        output = cell.locator(".jp-OutputArea-output")
        expect(output).to_be_visible(timeout=LAB_MILLISECONDS)
        return output.inner_text().strip()
