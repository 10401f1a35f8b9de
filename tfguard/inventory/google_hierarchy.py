"""Projects, folders and organizations, as Resource Manager tells them: what lies where, and a project's id and number.

A search tells projects by their numbers, a state by their ids: nothing but an id leaves the inventory of this cloud.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from threading import RLock
from typing import Any

from tfguard.inventory.google_access import CALL_ERRORS, GoogleAccess, refusal
from tfguard.inventory.google_settings import Level, Reach

PROJECT_ASSET = "cloudresourcemanager.googleapis.com/Project"
FOLDER_ASSET = "cloudresourcemanager.googleapis.com/Folder"
ENDING = "DELETE_REQUESTED"
"""The state of what only waits for its end."""

_HOST = "//cloudresourcemanager.googleapis.com/"
_KEPT_SECONDS = 120.0
_PAGE = 300

LeftOut = Callable[[Mapping[str, Any]], str | None]
"""Why what lies in a project is nobody's loss, by what a search would tell of the project; None where it is one."""


@dataclass(frozen=True, slots=True)
class Container:
    """A project or a folder. `id` is a project's id, and its number where that is not told; of a folder its number.

    `item` is what a search would tell of it, and `untold` why there is none; `because` is why what lies in it is
    nobody's loss, `doubt` why its id is not known.
    """

    number: str
    id: str
    parent: str = ""
    item: Mapping[str, Any] = field(default_factory=dict, repr=False)
    because: str | None = None
    doubt: str = ""
    untold: str = ""

    @property
    def is_ending(self) -> bool:
        """Whether it only waits for its end."""
        return self.item.get("state") == ENDING


@dataclass(frozen=True, slots=True)
class Known:
    """Projects and folders, and why there may be more of them; empty: there are no more. `above` is worked out."""

    projects: tuple[Container, ...] = ()
    folders: tuple[Container, ...] = ()
    doubt: str = ""
    above: Mapping[str, str] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Note once what each folder lies in: it is asked for each of thousands of projects."""
        above = {f"{Level.FOLDER}/{folder.number}": folder.parent for folder in self.folders}
        object.__setattr__(self, "above", above)


class Hierarchy:
    """What is known of it with one access, kept for two minutes where a project that was made since does not matter.

    Safe to use from several threads.
    """

    def __init__(self, access: GoogleAccess, left_out: LeftOut) -> None:
        self._access = access
        self._left_out = left_out
        self._lock = RLock()
        self._visible: tuple[float, Known] | None = None
        self._single: dict[str, tuple[float, Container]] = {}

    def visible(self, *, fresh: bool = False) -> Known:
        """Everything that these credentials may see, wherever it lies."""
        with self._lock:
            if fresh or self._visible is None or time.monotonic() - self._visible[0] > _KEPT_SECONDS:
                now = time.monotonic()
                self._visible = (now, self._search())
                for one in self._visible[1].projects:
                    self._single[one.number] = self._single[one.id] = (now, one)
            return self._visible[1]

    def below(self, reach: Reach, *, fresh: bool = False) -> Known:
        """What is visible of all that lies in a folder or an organization, at any depth."""
        known = self.visible(fresh=fresh)
        above = known.above
        return replace(
            known,
            projects=tuple(one for one in known.projects if reach.scope in _chain(one.parent, above)),
            folders=tuple(one for one in known.folders if reach.scope in _chain(one.parent, above)),
        )

    def all_below(self, reach: Reach) -> Known:
        """What lies in a folder or an organization, folder by folder: whoever may list one is told of all that is
        right in it, so that without a doubt nothing is missing."""
        projects: list[Container] = []
        folders: list[Container] = []
        doubts: dict[str, None] = {}
        waiting = [reach.scope]
        while waiting:
            parent = waiting.pop()
            inner: list[Container] = []
            for kind, found, make in (("Projects", projects, self._project), ("Folders", inner, _folder)):
                method = f"list_{kind.lower()}"
                request = {"parent": parent, "page_size": _PAGE, "show_deleted": True}
                try:
                    client = self._access.manager(kind)
                    for page in self._access.pages(f"List{kind}", getattr(client, method), request):
                        found.extend(make(one) for one in page.get(kind.lower(), []))
                except CALL_ERRORS as error:
                    doubts[f"{refusal(error, f'List{kind}')} of {parent}"] = None
            folders += inner
            waiting += [f"{Level.FOLDER}/{folder.number}" for folder in inner]
        return Known(tuple(projects), tuple(folders), "; ".join(doubts))

    def organization_of(self, container: Container) -> str:
        """`organizations/N` in which it lies, or else the outermost folder above it that is visible; empty where
        nothing is above it."""
        above = self.visible().above
        return next(reversed(list(_chain(container.parent, above))), "")

    def project(self, name: str, *, fresh: bool = False) -> Container:
        """A project by its id or number. Where that is not told, only what the name itself says is known of it."""
        with self._lock:
            kept = self._single.get(name)
            if not fresh and kept is not None and time.monotonic() - kept[0] <= _KEPT_SECONDS:
                return kept[1]
        try:
            answer = self._access.one(self._access.manager("Projects").get_project, f"{Level.PROJECT}/{name}")
            found = self._project(answer)
        except CALL_ERRORS as error:
            is_number, why = name.isdecimal(), refusal(error, "GetProject")
            doubt = f"the project's id is not told: {why}" if is_number else ""
            found = Container(name if is_number else "", name, doubt=doubt, untold=why)
        with self._lock:
            self._single[name] = (time.monotonic(), found)
        return found

    def _search(self) -> Known:
        doubts: list[str] = []
        projects = tuple(self._all("Projects", doubts))
        folders = tuple(self._all("Folders", doubts))
        return Known(projects, folders, "; ".join(doubts))

    def _all(self, kind: str, doubts: list[str]) -> Iterator[Container]:
        make = self._project if kind == "Projects" else _folder
        try:
            method = getattr(self._access.manager(kind), f"search_{kind.lower()}")
            for page in self._access.pages(f"Search{kind}", method, {"page_size": _PAGE}):
                yield from (make(one) for one in page.get(kind.lower(), []))
        except CALL_ERRORS as error:
            doubts.append(refusal(error, f"Search{kind}"))

    def _project(self, answer: Mapping[str, Any]) -> Container:
        number = str(answer["name"]).rpartition("/")[2]
        found = str(answer.get("projectId") or number)
        path = f"{Level.PROJECT}/{found}"
        item = _item(answer, PROJECT_ASSET, path, project=f"{Level.PROJECT}/{number}", projectId=found)
        return Container(number, found, str(answer.get("parent", "")), item, self._left_out(item))


def _chain(parent: str, above: Mapping[str, str]) -> Iterator[str]:
    """What is above something, the nearest first, as far as it is known."""
    seen: set[str] = set()
    while parent and parent not in seen:
        seen.add(parent)
        yield parent
        parent = above.get(parent, "")


def _folder(answer: Mapping[str, Any]) -> Container:
    number = str(answer["name"]).rpartition("/")[2]
    item = _item(answer, FOLDER_ASSET, f"{Level.FOLDER}/{number}")
    return Container(number, number, str(answer.get("parent", "")), item)


def _item(answer: Mapping[str, Any], asset_type: str, path: str, **more: str) -> Mapping[str, Any]:
    """What a search would tell of it."""
    copied = ("displayName", "labels", "createTime", "updateTime", "state", "deleteTime", "parent")
    told = {name: answer[name] for name in copied if name in answer}
    above = {"parentFullResourceName": f"{_HOST}{answer['parent']}"} if answer.get("parent") else {}
    return {"name": f"{_HOST}{path}", "assetType": asset_type, **told, **above, **more}
