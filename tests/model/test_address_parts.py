"""What an address is made of: its type, and what a shorter one stands for."""

from __future__ import annotations

import pytest

from tfguard.model.address import lies_below, normal_address, resource_type


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("aws_vpc.main", "aws_vpc"),
        ('aws_vpc.main["module.x.y"]', "aws_vpc"),
        ('module.net["a.b"].module.sub[0].aws_vpc.main[0]', "aws_vpc"),
        ("module.net", ""),
        ('module.net["a"]', ""),
        ("nonsense", ""),
        ("", ""),
    ],
)
def test_the_type_in_an_address(address: str, kind: str) -> None:
    assert resource_type(address) == kind


@pytest.mark.parametrize(
    ("address", "named", "stands_for"),
    [
        ("aws_vpc.a", "aws_vpc.a", True),
        ("aws_vpc.a[0]", "aws_vpc.a", True),
        ("aws_vpc.ab", "aws_vpc.a", False),
        ("aws_vpc.a", "aws_vpc", False),
        ("aws_vpc.a", "aws_vpc.a[0]", False),
        ('module.m["k"].aws_vpc.a', "module.m", True),
        ('module.m["k"].aws_vpc.a', 'module.m["k"]', True),
        ("module.m.aws_vpc.a", "module.m", True),
        ("module.mm.aws_vpc.a", "module.m", False),
    ],
)
def test_what_a_shorter_address_stands_for(address: str, named: str, stands_for: bool) -> None:
    assert lies_below(address, named) is stands_for


@pytest.mark.parametrize(
    ("typed", "normal"),
    [
        ("aws_vpc.a", "aws_vpc.a"),
        ("resource.aws_vpc.a", "aws_vpc.a"),
        ("module.m.resource.aws_vpc.a", "module.m.aws_vpc.a"),
        ("module.resource.aws_vpc.a", "module.resource.aws_vpc.a"),
        ("terraform_data . a", "terraform_data.a"),
        ('a.u[ "x" ]', 'a.u["x"]'),
        ("a.c[01]", "a.c[1]"),
        ('a.u["\\u00e9"]', 'a.u["é"]'),
        ('module.m["k\\u002e2"].a.b', 'module.m["k.2"].a.b'),
        ('a.u["x y"]', 'a.u["x y"]'),
        ('a.u["q\\"uote"]', 'a.u["q\\"uote"]'),
        ('a.u["new\\nline"]', 'a.u["new\\nline"]'),
        ('a.u["$${z}"]', 'a.u["$${z}"]'),
        ('a.u["[0]"]', 'a.u["[0]"]'),
        ("a.u[abc]", "a.u[abc]"),
        ('a.u["\\UFFFFFFFF"]', 'a.u["\\\\UFFFFFFFF"]'),
        ("", ""),
    ],
)
def test_an_address_is_compared_as_the_state_writes_it(typed: str, normal: str) -> None:
    assert normal_address(typed) == normal
