"""YAML that every reader takes the same way."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from hub_ext.render.documents import freeze, thaw, to_yaml

PLAIN_DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


def read_11(text: str) -> object:
    return yaml.safe_load(text)


def read_12(text: str) -> object:
    return YAML(typ="safe", pure=True).load(text)


@pytest.mark.parametrize("read", [read_11, read_12], ids=["yaml-1.1", "yaml-1.2"])
@pytest.mark.parametrize(
    "text",
    ["no", "y", "7e10", "1e3", "0o17", "017", "12:30", "12345678", "~", "", " x", "2026-01-01", "a: b"],
)
def test_a_text_stays_a_text(read, text):
    assert read(to_yaml({"tag": text})) == {"tag": text}


@pytest.mark.parametrize("text", ["nvidia.com/gpu", "jupyter-alice", "16Gi", "500m", "LLM development"])
def test_common_words_have_no_quotes(text):
    assert to_yaml({"a": text}) == f"a: {text}\n"


def test_an_image_tag_that_looks_like_a_number_is_quoted():
    assert to_yaml({"tag": "7e10"}) == 'tag: "7e10"\n'


def test_keys_keep_their_order():
    assert to_yaml({"b": 1, "a": 2}) == "b: 1\na: 2\n"


def test_equal_parts_are_written_out_each_time():
    part = {"key": "x"}
    assert "&" not in to_yaml({"a": part, "b": part})


@given(PLAIN_DATA)
def test_what_is_written_reads_back(value):
    assert read_11(to_yaml({"v": value})) == {"v": value}


@given(PLAIN_DATA)
def test_thawing_undoes_freezing(value):
    assert thaw(freeze(value)) == value


def test_frozen_data_refuses_changes():
    frozen = freeze({"a": [{"b": 1}]})
    with pytest.raises(TypeError):
        frozen["a"] = 2
    with pytest.raises(TypeError):
        frozen["a"][0]["b"] = 2
