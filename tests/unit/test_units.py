"""Quantities, counts, durations and money."""

from contextlib import suppress
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub_ext.errors import QuantityError
from hub_ext.units import (
    format_bytes,
    format_cpu,
    format_duration,
    format_money,
    gib,
    parse_count,
    parse_cpu,
    parse_duration,
    parse_memory,
    parse_quantity,
)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("1", 1),
        (1, 1),
        ("1000m", 1),
        ("3000m", 3),
        ("1Ki", 1024),
        (1.0, 1),
        ("1.0", 1),
        ("1e3", 1000),
        ("0", 0),
        ("0.5", None),
        ("500m", None),
        ("1500m", None),
        ("-1", None),
        ("one", None),
        ("", None),
        (True, None),
        ("1 ", None),
        ("\N{FULLWIDTH DIGIT ONE}", None),
    ],
)
def test_devices_are_given_out_whole(value: str | float, number: int | None) -> None:
    if number is None:
        with pytest.raises(QuantityError):
            parse_count(value)
    else:
        assert parse_count(value) == number


@pytest.mark.parametrize(
    ("value", "amount"),
    [
        ("16Gi", 16 * 1024**3),
        ("16G", 16 * 1000**3),
        ("7.222G", 7_222_000_000),
        (128041414033, 128041414033),
        (128041414033.0, 128041414033),
        ("1e3", 1000),
        ("1E", 10**18),
        ("0.5Ki", 512),
    ],
)
def test_amounts_of_memory(value: str | float, amount: int) -> None:
    assert parse_memory(value) == amount


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        ("16GB", "16Gi"),
        ("16gib", "16Gi"),
        ("16 Gi", "16Gi"),
        ("64K", "64Ki"),
        ("400m", "400M"),
        ("0.3", ""),
        ("0", ""),
        ("-1Gi", ""),
        ("9Ei", ""),
        (float("inf"), ""),
        (float("nan"), ""),
    ],
)
def test_what_is_not_an_amount_comes_with_a_remedy(value: str | float, remedy: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_memory(value)
    assert remedy in caught.value.help


@pytest.mark.parametrize(
    ("value", "millis"), [(2, 2000), ("0.5", 500), ("500m", 500), (1.5, 1500), ("1e3m", None)]
)
def test_processors(value: str | float, millis: int | None) -> None:
    if millis is None:
        with pytest.raises(QuantityError):
            parse_cpu(value)
    else:
        assert parse_cpu(value) == millis


def test_processors_finer_than_a_millicore_name_the_nearest() -> None:
    with pytest.raises(QuantityError) as caught:
        parse_cpu("1.9226375")
    assert caught.value.help == "Write 1923m."


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("90m", timedelta(minutes=90)),
        ("1h30m", timedelta(minutes=90)),
        ("7d", timedelta(days=7)),
        ("45s", timedelta(seconds=45)),
    ],
)
def test_durations(text: str, span: timedelta) -> None:
    assert parse_duration(text) == span


@pytest.mark.parametrize("value", ["", "90", 90, "1.5h", "30m1h", "1w", None, True, "1:30", "m"])
def test_what_is_not_a_duration(value: object) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_duration(value)
    assert caught.value.code == "bad-duration"


def test_a_bare_number_is_asked_for_its_unit() -> None:
    with pytest.raises(QuantityError, match="90") as caught:
        parse_duration(90)
    assert "90m" in caught.value.help


@given(st.integers(min_value=1, max_value=2**63 - 1))
def test_amounts_read_back(amount: int) -> None:
    assert parse_memory(format_bytes(amount)) == amount


@given(st.integers(min_value=1, max_value=10**9))
def test_processors_read_back(millis: int) -> None:
    assert parse_cpu(format_cpu(millis)) == millis


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=9999)))
def test_durations_read_back(span: timedelta) -> None:
    whole = timedelta(seconds=int(span.total_seconds()))
    assert parse_duration(format_duration(span)) == whole


@given(st.one_of(st.text(), st.floats(), st.integers(), st.booleans()))
def test_anything_is_a_quantity_or_a_quantity_error(value: str | float) -> None:
    with suppress(QuantityError):
        assert isinstance(parse_quantity(value), Fraction)


@pytest.mark.parametrize(
    ("amount", "text"),
    [("2.4", "2.40 EUR"), ("0.005", "0.005 EUR"), ("100", "100.00 EUR"), ("1E+2", "100.00 EUR")],
)
def test_money(amount: str, text: str) -> None:
    assert format_money(Decimal(amount), "EUR") == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [(64 * 1024**3, "64 GiB"), (1536 * 1024**2, "1.5 GiB"), (512 * 1024**2, "512 MiB"), (7, "7 B")],
)
def test_amounts_for_people(amount: int, text: str) -> None:
    assert gib(amount) == text
