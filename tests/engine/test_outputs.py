"""The `Outputs:` block: single values, and whole blocks beside those of the real engine."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from two_forms import Stack, needs_terraform

from tfguard.engine.outputs import format_value, outputs_text

OUTPUTS = r"""
variable "token" {
  default   = "tok"
  sensitive = true
}
variable "typed" {
  type = object({
    s = optional(string), n = optional(number), b = optional(bool), any = optional(any)
    ls = optional(list(string)), st = optional(set(number)), m = optional(map(bool)), ll = optional(list(list(string)))
    o = optional(object({ a = string })), t = optional(tuple([string])), lo = optional(list(object({ a = string })))
    lt = optional(list(tuple([bool]))), lm = optional(list(map(set(string)))), la = optional(list(any))
  })
  default = {}
}
resource "terraform_data" "t" { input = { a = "v", n = [1, { b = null }] } }
output "typed_nulls" { value = var.typed }
output "plain" { value = "plain" }
output "quotes" { value = "a \"q\" \\ $${x} %%{y} $ % \t tab ü <>&" }
output "lines" { value = "line1\nline2 \"q\" $${x}\n" }
output "two_lines" { value = "line1\nline2" }
output "newline" { value = "\n" }
output "crlf" { value = "a\r\nb" }
output "return" { value = "a\rb" }
output "control_in_lines" { value = "\ttab\n\u0001ctl\\ \"" }
output "delimiter" { value = "a\nEOT\nb" }
output "delimiters" { value = { x = "a\n  EOT  \nEOT_\nb", y = "a\n\n  \n\tb" } }
output "empty" { value = "" }
output "chars" { value = "\u007f\u0085\u00a0\u00ad\u200b\ufeff\U0001f600\u2028\u0300x\ufffd\ue000\u0378" }
output "controls" { value = "\u0007\u0008\u000c\u000b\u0000\u001b\r'`" }
output "json" { value = jsonencode({ a = 1, b = [true, null, "x"] }) }
output "one" { value = 1 }
output "negative" { value = -5 }
output "fraction" { value = 1.5 }
output "third" { value = 1 / 3 }
output "sum" { value = 0.1 + 0.2 }
output "tiny" { value = 1e-50 }
output "huge" { value = 1e100 }
output "beyond_int" { value = 1e5000 }
output "digits" { value = 123456789012345678901234567890 }
output "both_sides" { value = 123456789.123456789123456789 }
output "bool" { value = true }
output "nothing" { value = null }
output "list" { value = tolist(["a", "b", null]) }
output "list_of_lists" { value = tolist([tolist(["a"]), tolist([])]) }
output "tuple" { value = ["a", 1, true, null, ["x"], {}] }
output "pair" { value = ["list", "string"] }
output "no_tuple" { value = [] }
output "no_list" { value = tolist([]) }
output "no_set" { value = toset([]) }
output "no_map" { value = tomap({}) }
output "no_object" { value = {} }
output "set" { value = toset(["b", "a"]) }
output "set_of_objects" { value = toset([{ a = 1 }, { a = 2 }]) }
output "map" { value = tomap({ a = "1", "b c" = "2", longer = null }) }
output "map_of_maps" { value = tomap({ a = tomap({ string = "x" }) }) }
output "object" {
  value = { a = 1, "b c" = 2, longer = { x = null, y = "a\nb", l = ["p\nq"] }, m = tomap({}), s = "x" }
}
output "keys" { value = { "a.b" = 1, "ü" = 2, "1a" = 3, "$${x}" = 5, "q\"q" = 6, "n\nl" = 7, "-a" = 9, "" = 0 } }
output "key_of_lines" { value = { "a\tb" = { "c\nd" = [1] } } }
output "nested_lines" { value = { a = { b = "l1\nl2\n" }, c = ["m1\nm2", tomap({ k = "z1\nz2" })] } }
output "lines_in_set" { value = [tomap({ a = toset(["x\ny"]) })] }
output "resource" { value = terraform_data.t }
output "token" {
  value     = var.token
  sensitive = true
}
"""


@needs_terraform
@pytest.mark.parametrize("flags", [(), ("-no-color",)])
def test_outputs_of_every_type_look_like_the_engines(tmp_path: Path, flags: tuple[str, ...]) -> None:
    stack = Stack(tmp_path, {"main.tf": OUTPUTS})
    stack.plan()
    forms = stack.both(*flags)
    assert "Outputs:" in forms.rendered.stdout
    assert forms.rendered == forms.human


@pytest.mark.parametrize(
    ("value", "type_", "text"),
    [
        ("a", "string", '"a"'),
        (None, "string", "tostring(null)"),
        (None, "dynamic", "null"),
        (None, ["list", ["set", "number"]], "tolist(null) /* of set of number */"),
        (None, ["object", {"a": "string"}], "null /* object */"),
        (Decimal("0.10"), "number", "0.10"),
        (True, "bool", "true"),
        ([], ["list", "dynamic"], "tolist([])"),
        (["a", None], ["tuple", ["string", "number"]], '[\n  "a",\n  tonumber(null),\n]'),
        ({"a": 1}, ["object", {"a": "number"}, ["a"]], '{\n  "a" = 1\n}'),
        ({"value": "x", "type": "string"}, "dynamic", '"x"'),
    ],
)
def test_value_is_written_with_its_type(value: object, type_: object, text: str) -> None:
    assert format_value(value, type_) == text


@pytest.mark.parametrize("type_", [None, 3, [], ["list"], [["list"]], {"a": 1}, ["tuple", "x"], ["nonsense", 1]])
def test_type_that_cannot_be_read_does_not_stop_the_value(type_: object) -> None:
    assert '"a"' in format_value(["a", {"b": None}], type_)


def test_sensitive_output_and_one_that_is_no_object_show_no_value() -> None:
    assert outputs_text({"b": {"sensitive": True, "type": "string"}, "a": 3}) == "a = <sensitive>\nb = <sensitive>\n"
