"""What lifts the documents of earlier versions, one function a step, on raw JSON (see `document.Migration`).

A step never uses today's types: it has to read what was written then, whatever becomes of them.
"""

from __future__ import annotations

from collections.abc import Mapping


def intent_v2(raw: Mapping[str, object]) -> Mapping[str, object]:
    """v1 told how the plan was approved alone; who and when are those of the operation."""
    how, actor = raw.get("approval"), raw.get("actor")
    if not isinstance(how, str) or not isinstance(actor, dict):
        return raw
    by = actor.get("ci_actor") or actor.get("user")
    return {**raw, "approval": {"how": how, "by": by, "at": raw.get("started_at")}}


def unchanged(raw: Mapping[str, object]) -> Mapping[str, object]:
    """A version that only added fields which may be missing: an earlier tfguard must not read over them."""
    return raw
