"""From a notebook in JupyterLab to an executed notebook back in the home, while the workspace was stopped."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import SignIn
from tests.browser.test_lab_session import (
    PROFILE,
    expect_warning,
    press,
    type_into_notebook,
    wait_until_stopped,
)
from tests.demo.hub import Hub
from tests.demo.users import ADA

CODE = (
    "import pathlib; pathlib.Path('outputs/answer.txt').write_text(str(6 * 7)); print('the answer is', 6 * 7)"
)
BUTTON = '[data-command="gpu-workspaces:run-as-job"]'


def test_a_notebook_is_handed_off_and_comes_back_executed(sign_in: SignIn, hub: Hub) -> None:
    pages = sign_in(ADA)
    lab = pages.start(PROFILE)
    lab.new_notebook()
    name = type_into_notebook(lab, CODE)  # handing it off saves it

    with lab.page.context.expect_page() as opened:
        lab.page.locator(f".jp-NotebookPanel-toolbar {BUTTON}").first.click()
    form = opened.value
    expect(form.get_by_role("heading", name="New run")).to_be_visible()
    form.get_by_label("Notebook without GPU").check()
    form.get_by_role("button", name="Would it start?").click()
    expect(form.get_by_role("status").first).to_contain_text("has room for it now")
    form.get_by_role("button", name="Run", exact=True).click()
    expect(form.get_by_role("heading", name=name)).to_be_visible()

    expect_warning(lab)
    press(lab, re.compile("^Save and stop"))
    wait_until_stopped(hub, pages, ADA.name)

    expect(form.locator(".jh-status .jh-state")).to_have_text("Done")
    expect(form.locator("#log")).to_contain_text("the answer is 42")
    expect(form.get_by_role("link", name=name)).to_be_visible()
    expect(form.get_by_role("link", name="answer.txt")).to_be_visible()
    form.close()

    again = pages.start("Notebook without GPU")
    again.new_notebook()
    again.run("!gpu-workspaces handoff fetch --finished")
    found = again.run(
        f"import pathlib; print([p.read_text() for p in pathlib.Path.home().glob('runs/*/{name}')])"
    )
    assert "the answer is 42" in found
