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
