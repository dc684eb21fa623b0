"""Notices to people who have no page open, received by a real web server and a real mail server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.web import Application, RequestHandler

from hub_ext.errors import WorkspaceError
from services.idle_culler.app import build_notifier
from services.idle_culler.notices import alert, warning
from services.idle_culler.notify import Notifier
from services.idle_culler.settings import Notify
from tests.devcluster.waiting import PATIENCE_SECONDS
from tests.fakes.culled_hub import CulledHub
from tests.fakes.culler import Watch
from tests.fakes.mail import MailServer, mail_server
from tests.unit.idle_culler.test_culler import POLICY, STOP

pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
"""Apprise imports a module that goes with Python 3.13, and does without it there."""


class Hook(RequestHandler):
    """A webhook that keeps what it is sent."""

    def post(self, name: str) -> None:
        self.settings["seen"].append((name, self.request.body.decode()))
        self.set_status(self.settings["status"])


@pytest.fixture
async def webhook() -> AsyncIterator[tuple[str, Application]]:
    application = Application([("/([^/]*)/?", Hook)], seen=[], status=200)
    socket, port = bind_unused_port()
    server = HTTPServer(application)
    server.add_sockets([socket])
    yield f"json://127.0.0.1:{port}", application
    server.stop()
    await server.close_all_connections()


async def test_users_and_admins_are_told_at_their_own_addresses(webhook: tuple[str, Application]) -> None:
    address, application = webhook
    notifier = Notifier(users=[f"{address}/{{user}}"], admins=[f"{address}/admins"])
    watch = Watch()
    watch.run(60)
    notifier.send(warning("ada/../eve?x", "", watch.verdicts[-1][1], page=""))
    notifier.send(alert("Idle-culler: gpus", "No answer"))
    await notifier.close()
    places = sorted(name for name, _ in application.settings["seen"])
    # The hook takes one part of a path only: the name stayed one, whatever is in it.
    assert places == ["ada/../eve?x", "admins"]
    assert any("30m" in body for _, body in application.settings["seen"])


async def test_what_cannot_be_sent_is_logged_without_its_address(
    webhook: tuple[str, Application], caplog: pytest.LogCaptureFixture
) -> None:
    address, application = webhook
    application.settings["status"] = 500
    notifier = Notifier(admins=[f"{address}/secret", "nonsense://secret"])
    with caplog.at_level(logging.WARNING):
        notifier.send(alert("Idle-culler: gpus", "No answer"))
        await notifier.close()
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("services.")]
    assert ours == ["notice not sent: user='' title=Idle-culler: gpus"]
    assert not [record for record in caplog.records if record.name.startswith("apprise")]


async def test_nobody_is_told_where_there_is_no_address() -> None:
    notifier = Notifier()
    notifier.send(alert("a", "b"))
    await asyncio.wait_for(notifier.close(), PATIENCE_SECONDS)


@pytest.fixture
async def mail() -> AsyncIterator[MailServer]:
    async with mail_server() as server:
        yield server


async def test_warnings_and_receipts_are_mailed_where_nobody_has_a_page_open(
    mail: MailServer, webhook: tuple[str, Application], tmp_path: Path
) -> None:
    address, application = webhook
    file = tmp_path / "addresses.yaml"
    file.write_text(
        f'users: ["mailto://127.0.0.1:{mail.port}?from=culler@example.com&to={{user}}@example.com"]'
    )
    world = CulledHub(POLICY)
    world.notify_with(build_notifier(Notify(file=file, admins=(f"{address}/admins",))))
    world.add("ada")
    await world.passes(STOP)
    assert await world.stops() == ["ada/"]
    await world.culler.tools.notifier.close()
    # They are sent at the same time: which of them comes first does not matter.
    texts = {str(one.message["Subject"]): str(one.message) for one in mail.received}
    assert sorted(texts) == [
        "Your workspace stops in 2m",
        "Your workspace stops in 5m",
        "Your workspace was stopped",
    ]
    assert {one.recipients for one in mail.received} == {("ada@example.com",)}
    assert "What kernels hold in memory is lost" in texts["Your workspace stops in 2m"]
    assert application.settings["seen"] == []


NAMES = (
    "eve@evil.example,ada",
    "eve@evil.example;ada",
    "eve@evil.example ada",
    "eve@evil.example",
    "eve&to=ada@example.com",
    "eve\r\nBcc: ada@example.com",
    "<ada@example.com>",
    "eve%2Cada",
)


async def test_a_name_cannot_send_mail_to_somebody_else(mail: MailServer) -> None:
    url = f"mailto://127.0.0.1:{mail.port}?from=culler@example.com&to={{user}}@example.com"
    notifier = Notifier(users=[url])
    watch = Watch()
    watch.run(60)
    for user in NAMES:
        notifier.send(warning(user, "", watch.verdicts[-1][1], page=""))
    await notifier.close()
    assert not mail.asked & {"ada@example.com", "eve@evil.example"}
    assert [one.message["Bcc"] for one in mail.received] == [None] * len(mail.received)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("users: ['mailto://u:secret@example.com']", "users.0: "),
        ("users: ['nonsense://secret/{user}']", "notify.users[0] is no address"),
        ("admins: ['json://example.com', 'secret']", "notify.admins[1] is no address"),
        ("admins: secret", "admins: "),
        ("- secret", "addresses.yaml"),
        ("admins: [secret", "no YAML"),
    ],
)
def test_what_is_no_address_is_named_without_it(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "addresses.yaml"
    file.write_text(text)
    with pytest.raises(WorkspaceError) as error:
        build_notifier(Notify(file=file))
    assert said in str(error.value)
    assert "secret" not in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match=r"notify.file: .*none.yaml"):
        build_notifier(Notify(file=tmp_path / "none.yaml"))
