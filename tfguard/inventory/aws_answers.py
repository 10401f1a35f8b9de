"""Whether an answer of AWS is a whole one, and the service's own.

The SDK does not count the bytes that came, and takes what it cannot read for an answer in which nothing stands: a
list that was cut, or a proxy's page, would be an empty list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

_IN_JSON = ("json", "rest-json")
_IN_XML = ("query", "ec2", "rest-xml")
_UNREAD = "message"
"""Under this name the SDK keeps JSON that it cannot read."""
_OF_EC2 = "requestId"
"""Every answer of EC2 has it in its body, and no model tells so."""

_MORE_FOLLOWS = re.compile(r"(?:is)?truncated|has_?more\w*", re.IGNORECASE)
_WHERE_IT_GOES_ON = re.compile(r"next\w*|\w*token|\w*marker|position|last_?evaluated\w*", re.IGNORECASE)


class UnreadableAnswerError(ValueError):
    """An answer that came with a good status, but is not what the service answers."""


def register(client: Any) -> None:
    """Let every call of a client raise `UnreadableAnswerError` for an answer that is not whole, or not the service's.

    An answer in which nothing stands passes when it says so itself: many services leave an empty list out.
    """
    service_id = client.meta.service_model.service_id.hyphenize()
    client.meta.events.register_first(f"before-parse.{service_id}", _refuse_a_cut_answer)
    client.meta.events.register_first(f"after-call.{service_id}", _refuse_another_answer)


def says_more(page: object, followed: bool) -> bool:
    """Whether the last page of a list says that it is not the last. `followed`: its token would have been used."""
    if not isinstance(page, dict):
        return False
    inner = [value for name, value in page.items() if isinstance(value, dict) and name != "ResponseMetadata"]
    told = [(name, value) for holder in (page, *inner) for name, value in holder.items()]
    if any(value is True and _MORE_FOLLOWS.fullmatch(name) for name, value in told):
        return True
    return not followed and any(
        value and isinstance(value, str) and _WHERE_IT_GOES_ON.fullmatch(name) for name, value in told
    )


def _refuse_a_cut_answer(operation_model: Any, response_dict: Mapping[str, Any], **_: object) -> None:
    if operation_model.has_streaming_output or operation_model.http.get("method") == "HEAD":
        return
    body, headers = response_dict["body"], response_dict["headers"]
    announced = headers.get("content-length") or ""
    counts = announced.isdecimal() and "transfer-encoding" not in headers
    if response_dict["status_code"] < 300 and counts and int(announced) != len(body):
        raise UnreadableAnswerError(f"{operation_model.name} was answered with {len(body)} bytes of {announced}")


def _refuse_another_answer(model: Any, http_response: Any, parsed: Mapping[str, object], **_: object) -> None:
    if http_response.status_code >= 300 or model.has_streaming_output:
        return
    members = _members_in_body(model)
    payload = model.output_shape.serialization.get("payload") if members else None
    read = parsed.get(payload) if payload else parsed
    proof = (name for name, written in members.items() if written != _UNREAD)
    if not members or (isinstance(read, dict) and not read.keys().isdisjoint(proof)):
        return
    if not _is_empty_answer(model, http_response, members):
        raise UnreadableAnswerError(f"{model.name} was answered with something else")


def _is_empty_answer(model: Any, http_response: Any, members: Mapping[str, str]) -> bool:
    """Whether an answer without anything that can be read says that there is nothing."""
    names, body = set(members.values()), http_response.content
    if model.service_model.resolved_protocol in _IN_XML:
        return bool(_names_in_xml(body) & (names | {_OF_EC2, *_roots(model)}))
    if model.service_model.resolved_protocol not in _IN_JSON:
        return bool(body)  # the SDK refuses what it cannot read
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return False
    if found == {}:
        is_json = "json" in (http_response.headers.get("content-type") or "")
        return is_json and not members.keys() & set(_body_shape(model).required_members)
    return isinstance(found, dict) and not found.keys().isdisjoint(names)


def _names_in_xml(body: bytes) -> set[str]:
    """The names of the outermost element and of those in it."""
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError:
        return set()
    return {element.tag.rpartition("}")[2] for element in (root, *root)}


def _roots(model: Any) -> tuple[str, str]:
    shape = _body_shape(model)
    return shape.name, shape.serialization.get("resultWrapper", shape.name)


def _body_shape(model: Any) -> Any:
    """What the body of an answer is; None for nothing, and for one that may be anything."""
    shape = model.output_shape
    payload = shape.serialization.get("payload") if shape else None
    shape = shape.members[payload] if payload else shape
    return shape if shape is not None and shape.type_name == "structure" else None


def _members_in_body(model: Any) -> Mapping[str, str]:
    """How each member that stands in the body is written there."""
    shape = _body_shape(model)
    members = shape.members.items() if shape is not None else ()
    return {name: _written(name, member) for name, member in members if "location" not in member.serialization}


def _written(name: str, member: Any) -> str:
    if member.type_name == "list" and member.serialization.get("flattened"):
        name = member.member.serialization.get("name", name)
    return str(member.serialization.get("name", name))
