"""The client of Prometheus: what is not whole is no answer."""

from __future__ import annotations

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub_ext.errors import PrometheusError
from services.prometheus import Prometheus, quoted, quoted_any
from tests.fakes.prometheus import FakePrometheus


@pytest.fixture
def fake():
    return FakePrometheus()


@pytest.fixture
async def prometheus(fake):
    async with Prometheus(FakePrometheus.URL, transport=fake.transport) as client:
        yield client


async def test_a_vector_is_samples(fake, prometheus):
    fake.put("up", ({"pod": "a"}, 0.5), ({"pod": "b"}, 1.0))
    found = await prometheus.query("up")
    assert [(sample.labels["pod"], sample.value) for sample in found] == [("a", 0.5), ("b", 1.0)]


async def test_nothing_is_no_samples(prometheus):
    assert await prometheus.query("absent_metric") == ()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
async def test_what_is_no_number_is_not_measured(fake, prometheus, value):
    fake.put("up", ({}, value))
    assert [sample.value for sample in await prometheus.query("up")] == [None]


async def test_warnings_are_errors(fake, prometheus):
    fake.put("up", ({}, 0.0))
    fake.warnings = ["one store could not be reached"]
    with pytest.raises(PrometheusError, match="not whole"):
        await prometheus.query("up")


@pytest.mark.parametrize("down", [httpx.ConnectError("refused"), httpx.ReadTimeout("slow"), 503])
async def test_a_server_that_is_down_is_an_error_of_ours(fake, prometheus, down):
    fake.down = down
    with pytest.raises(PrometheusError):
        await prometheus.query("up")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"status": "error", "error": "parse error: unexpected end"}, "parse error"),
        ({"status": "success", "data": {"resultType": "matrix", "result": []}}, "matrix"),
        (
            {"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}}]}},
            "cannot be read",
        ),
        ({"status": "success", "data": None}, "None"),
        ({"status": "success", "data": ["vector"]}, "None"),
        (
            {
                "status": "success",
                "data": {"resultType": "vector", "result": [{"metric": 7, "value": [1, "2"]}]},
            },
            "cannot be read",
        ),
        ({"status": "success", "data": {"resultType": "scalar", "result": [1e300, "2"]}}, "cannot be read"),
        ([], "none of Prometheus"),
    ],
)
async def test_other_answers_are_errors(body, said):
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=body))
    async with Prometheus("http://x", transport=transport) as client:
        with pytest.raises(PrometheusError, match=said):
            await client.query("up")


async def test_a_number_is_one_sample():
    body = {"status": "success", "data": {"resultType": "scalar", "result": [1796000000, "2"]}}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=body))
    async with Prometheus("http://x/prefix/", transport=transport) as client:
        assert [sample.value for sample in await client.query("2")] == [2.0]


async def test_a_token_that_is_renewed_is_sent_as_it_is_now(fake, tmp_path):
    file, sent = tmp_path / "token", []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.headers["Authorization"])
        return fake.answer(request)

    file.write_text("first\n")
    async with Prometheus(fake.URL, token_file=file, transport=httpx.MockTransport(answer)) as client:
        await client.query("up")
        file.write_text("second\n")
        await client.query("up")
        file.unlink()
        with pytest.raises(PrometheusError, match=r"cannot be read: .*token"):
            await client.query("up")
    assert sent == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize("content", [None, b"", b"\xff\n"])
def test_a_token_that_is_none_is_named_at_once(tmp_path, content):
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(PrometheusError, match=str(file)):
        Prometheus("http://x", token_file=file)


def test_certificates_that_are_none_are_named_at_once(tmp_path):
    file = tmp_path / "ca.crt"
    file.write_text("none")
    with pytest.raises(PrometheusError, match=str(file)):
        Prometheus("http://x", ca_file=file)


@given(st.text())
def test_no_text_ends_its_quotes(text):
    inside = quoted(text)[1:-1]
    assert '"' not in inside.replace("\\\\", "").replace('\\"', "")
    assert "\n" not in inside


def test_a_pattern_matches_these_texts_and_no_others():
    assert quoted_any(["a.b", 'x"} or vector(1) #']) == r'"a\\.b|x\"\\} or vector\\(1\\) #"'


@pytest.mark.parametrize("texts", [[], [""], ["a", ""]])
def test_a_pattern_of_nothing_is_refused(texts):
    with pytest.raises(ValueError, match="nothing"):
        quoted_any(texts)
