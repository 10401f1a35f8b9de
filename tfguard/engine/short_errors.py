"""What went wrong in one line for a person: an engine's errors without frames, places and ids of requests."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LONGEST = 300
_SDK_WORDS = re.compile(
    r"operation error [\w ]{1,40}: \w{1,60}, (?:exceeded maximum number of attempts, \d+, )?"
    r"https response error StatusCode: (?:0|\d{3}), RequestID: [^,]*, (?:HostID: [^,]*, )?(?:api error )?"
)
_IDS_OF_REQUESTS = re.compile(r",?\s*(?:status code: \d+,\s*)?(?:request ?id|host id):\s*[^\s,]+", re.IGNORECASE)
_PLACE = re.compile(r"^ +(?:with|on) ")


def short_error(summary: str, detail: str = "") -> str:
    """An error in one line for a person: what failed, the service's code, and its first line; no ids of requests."""
    first = next((line for line in detail.splitlines() if line.strip()), "")
    text = " ".join(": ".join(filter(None, (summary.strip().rstrip(":"), first))).split())
    text = _IDS_OF_REQUESTS.sub("", _SDK_WORDS.sub("", text)).strip()
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def errors_in_text(output: str) -> Iterator[tuple[str, str]]:
    """Summary and first paragraph of each error in what a command without `-json` wrote without colour."""
    for block in re.split(r"^Error: ", output, flags=re.MULTILINE)[1:]:
        summary, _, rest = block.partition("\n")
        lines = [line for line in rest.split("\n") if not _PLACE.match(line)]
        paragraphs = "\n".join(lines).strip().split("\n\n")
        yield summary, " ".join(paragraphs[0].split())
