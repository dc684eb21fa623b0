"""The client of the idle-culler, against one that obeys the protocol and against others."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hub_ext.protocol import Attribution, Document, Keep, Report, SelfTest, State
from services.workspace_agent.culler import Culler, CullerError
from tests.fakes.idle_culler import TOKEN, FakeCuller, serving

REPORT = Report(
    agent="a",
    number=1,
    sent=datetime(2026, 11, 30, tzinfo=UTC),
    window_seconds=30,
    self_test=SelfTest(attribution=Attribution.NO_GPU),
)


async def test_messages_are_sent_with_the_server_s_token_and_answered() -> None:
    fake = FakeCuller()
    with serving(fake) as url:
        culler = Culler(f"{url}/", TOKEN)
        assert (await culler.send(REPORT)).state is State.IN_USE
        assert (await culler.send(Keep())).state is State.KEPT
    assert fake.of(Report) == [REPORT]


@pytest.mark.parametrize(
    ("status", "said"),
    [(403, "refuses this server's token"), (500, "HTTP 500"), (302, "HTTP 302"), (204, "HTTP 204")],
)
async def test_refusals_are_told(status: int, said: str) -> None:
    fake = FakeCuller()
    fake.failing = status
    with serving(fake) as url, pytest.raises(CullerError, match=said) as caught:
        await Culler(url, TOKEN).send(REPORT)
    assert caught.value.status == status
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize("status", [404, 409])
async def test_why_a_wish_is_refused_is_told_in_the_culler_s_words(status: int) -> None:
    fake = FakeCuller()
    fake.failing, fake.refusal = status, "You have kept it 4 times, which is as often as you may."
    with serving(fake) as url, pytest.raises(CullerError) as caught:
        await Culler(url, TOKEN).send(Keep())
    assert (caught.value.problem, caught.value.status) == (fake.refusal, status)


@pytest.mark.parametrize("status", [404, 409])
async def test_a_refusal_without_words_is_told_as_its_status(status: int) -> None:
    fake = FakeCuller()
    fake.failing = status
    with serving(fake) as url, pytest.raises(CullerError, match=f"HTTP {status}"):
        await Culler(url, TOKEN).send(Keep())


async def test_a_wrong_token_is_refused() -> None:
    with serving(FakeCuller()) as url, pytest.raises(CullerError, match="refuses"):
        await Culler(url, "another").send(REPORT)


async def test_what_cannot_be_read_is_told() -> None:
    fake = FakeCuller()
    fake.failing = 200
    with serving(fake) as url, pytest.raises(CullerError, match="cannot be read"):
        await Culler(url, TOKEN).send(REPORT)


async def test_nobody_there() -> None:
    with serving(FakeCuller()) as url:
        pass
    with pytest.raises(CullerError, match="does not answer"):
        await Culler(url, TOKEN).send(REPORT)


async def test_more_than_the_culler_takes_is_not_sent() -> None:
    documents = tuple(Document(path="x" * 1024) for _ in range(256))
    with pytest.raises(CullerError, match="more than the idle-culler takes"):
        await Culler("http://127.0.0.1:9", TOKEN).send(REPORT.model_copy(update={"documents": documents}))


@pytest.mark.parametrize("url", ["", "hub:10181", "file:///etc/passwd", "http://"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="no http or https URL"):
        Culler(url, TOKEN)
