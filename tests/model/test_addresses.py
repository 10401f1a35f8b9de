"""Addresses, and the HCL text that names them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfguard.model.address import hcl_string, module_path, without_instance_key

KEYS = st.text(st.sampled_from('ab."[]\\${%\n'), max_size=6)


@pytest.mark.parametrize(
    ("address", "modules", "bare"),
    [
        ("aws_vpc.main", (), "aws_vpc.main"),
        ("aws_vpc.main[0]", (), "aws_vpc.main"),
        ('aws_vpc.main["a"]', (), "aws_vpc.main"),
        ('aws_vpc.main["a.b[0]"]', (), "aws_vpc.main"),
        ('aws_vpc.main["q\\"]"]', (), "aws_vpc.main"),
        ("module.net.aws_vpc.main", ("net",), "module.net.aws_vpc.main"),
        ('module.net["a.b"].module.sub[1].aws_vpc.main[2]', ("net", "sub"), None),
        ('module.net["module.x."].aws_vpc.main', ("net",), 'module.net["module.x."].aws_vpc.main'),
        ("module.net.data.aws_vpc.main", ("net",), "module.net.data.aws_vpc.main"),
    ],
)
def test_an_address_is_taken_apart_at_its_own_dots(address: str, modules: tuple[str, ...], bare: str | None) -> None:
    assert module_path(address) == modules
    expected = bare if bare is not None else 'module.net["a.b"].module.sub[1].aws_vpc.main'
    assert without_instance_key(address) == expected


@given(KEYS, KEYS)
def test_any_instance_key_is_taken_off_and_hides_no_module(module_key: str, key: str) -> None:
    base = f"module.m[{hcl_string(module_key)}].aws_vpc.main"
    address = f"{base}[{hcl_string(key)}]"
    assert without_instance_key(address) == base
    assert module_path(address) == ("m",)


@given(KEYS)
def test_an_hcl_string_has_no_open_end_and_no_expression(text: str) -> None:
    literal = hcl_string(text)
    assert literal[0] == literal[-1] == '"'
    assert "\n" not in literal
    assert not literal[1:-1].replace("\\\\", "").replace('\\"', "").count('"')
    assert "${" not in literal.replace("$${", "")
