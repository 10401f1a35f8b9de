"""One question for the listings of Google Cloud: its search, Resource Manager, and single services' own lists.

A search of one project is asked for all types at once, in the order of the types; that of an organization or folder
for one type at a time, in the order of the projects. So each listing is told as soon as it is whole, and only a few of
them are in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from threading import Event

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.types import ListCall, ResourceType
from tfguard.inventory.at_once import Task, at_once, in_order
from tfguard.inventory.google_access import (
    CALL_ERRORS,
    GoogleAccess,
    answered,
    is_denied,
    is_not_found,
    is_unsupported,
    nobody_can_be_asked,
    refusal,
)
from tfguard.inventory.google_gathering import Entries, Gathered, gap_of, scope_in
from tfguard.inventory.google_hierarchy import FOLDER_ASSET, PROJECT_ASSET, Container, Hierarchy, Known
from tfguard.inventory.google_lists import LISTS, ManagerList, ServiceList, items
from tfguard.inventory.google_settings import Level, Reach
from tfguard.inventory.items import fill, placeholders
from tfguard.model.inventory import Listing, Scope

_PAGE = 500
_PARALLEL_CALLS = 8
_PARALLEL_LISTINGS = 6
_SEARCH_NAME = "SearchAllResources"
_NO_TOP = "in which organization the folders lie is not told"
_UNSUPPORTED = "the search does not know this type, as it said before"
_OUT_OF_ORDER = "the search told the results out of order"
_WILD = frozenset("*?[")

# How the lists name what they are asked for below.
_AT = {"liens": "", "tag_keys": "", "tag_bindings": "//cloudresourcemanager.googleapis.com/"}
_NOT_IN_FOLDERS = frozenset({"tag_keys"})
# Anything can have a binding, and is not asked for its own.
_SOME = frozenset({"tag_bindings"})


class Round:
    """The answer to one question for the listings of several types."""

    def __init__(
        self,
        catalog: Catalog,
        entries: Entries,
        access: GoogleAccess,
        hierarchy: Hierarchy,
        reach: Reach,
        patterns: Sequence[str],
        key: str,
        *,
        for_scan: bool,
    ) -> None:
        self._catalog = catalog
        self._entries = entries
        self._access = access
        self._hierarchy = hierarchy
        self._reach = reach
        self._patterns = patterns
        self._key = key
        self._for_scan = for_scan
        self._asked: set[str] = set()
        self._children: dict[str, list[ResourceType]] = {}
        self._known: dict[str, Container] = {}
        self._called: dict[str, str] = {}
        self._denied = ""
        self._untold = False
        self._failed = ""
        self._listed = Known()

    def listings(self, asked: Iterable[ResourceType]) -> Iterator[Listing]:
        """The listings of these types, and of none that only lead to them."""
        roots: dict[str, ResourceType] = {}
        for entry in asked:
            self._asked.add(entry.type)
            self._trace(entry, roots)
        yield from self._of_roots(list(roots.values()))

    def _trace(self, entry: ResourceType, roots: dict[str, ResourceType]) -> None:
        """Note what an entry is listed by, up to what is listed by itself."""
        per = entry.list.per if entry.list else None
        parent = self._catalog.get(per.type) if per else None
        if parent is None:
            roots[entry.type] = entry
            return
        siblings = self._children.setdefault(parent.type, [])
        if entry not in siblings:
            siblings.append(entry)
            self._trace(parent, roots)

    def _at_once(self, tasks: Iterable[Task]) -> Iterator[Listing]:
        """The listings of these tasks, each with those of what is listed below it."""
        return at_once([partial(self._with_children, task) for task in tasks], _PARALLEL_LISTINGS)

    def _with_children(self, task: Task) -> Iterator[Listing]:
        for listing in task():
            yield from self._family(listing)

    def _family(self, listing: Listing) -> Iterator[Listing]:
        if listing.type in self._asked:
            yield listing
        for child in self._children.get(listing.type, ()):
            yield from self._family(self._below(child, listing))

    # What lies where

    def _of_roots(self, roots: list[ResourceType]) -> Iterator[Listing]:
        if self._patterns:
            yield from self._of_matching(roots)
        elif self._reach.level is Level.PROJECT:
            project = _meant(self._hierarchy.project(self._reach.name))
            yield from self._with_children(partial(self._in_project, project, roots, alone=self._reach.alone))
        elif self._reach.alone:
            yield from self._with_children(partial(self._right_in, roots))
        else:
            yield from self._in_all(roots)

    def _of_matching(self, roots: list[ResourceType]) -> Iterator[Listing]:
        """The projects that the patterns mean; one that is named in full is asked whether or not it is told of."""
        wide = self._reach.level is not Level.PROJECT
        known = self._note(self._below_it() if wide else self._hierarchy.visible())
        chosen = {one.id: one for one in known.projects if self._is_meant(one.id)}
        named = [name for name in self._patterns if not _WILD.intersection(name)]
        for name in named:
            chosen[name] = _meant(chosen.get(name) or self._hierarchy.project(name))
        yield from self._at_once(partial(self._in_project, one, roots, alone=True) for one in chosen.values())
        reason = known.doubt if len(named) < len(self._patterns) else ""
        untold = [one for one in known.projects if one.doubt and self._may_be_meant(one, chosen)]
        if untold:
            why = untold[0].untold
            reason = reason or f"the ids of {len(untold)} projects are not told, which may be meant: {why}"
        if not chosen:
            like = f"no project is visible whose id is like {' or '.join(self._patterns)}"
            reason = f"{like}: {reason}" if reason else like
        if reason:
            scope = scope_in(None, self._key)
            yield from self._with_children(partial(self._nothing, roots, scope, reason, asked=bool(chosen)))

    def _is_meant(self, project: str) -> bool:
        return any(fnmatchcase(project, name) for name in self._patterns)

    def _may_be_meant(self, project: Container, chosen: Mapping[str, Container]) -> bool:
        """Whether a project of which Resource Manager tells the number alone may be one that the patterns mean."""
        called = self._called.get(project.number, "")
        return not called or called.isdecimal() or (self._is_meant(called) and called not in chosen)

    def _below_it(self, *, fresh: bool = False) -> Known:
        """What lies in the folder or organization. A project that hides, or lies in a folder that does, is told by the
        search alone; where that may not be asked, folder by folder."""
        known = self._hierarchy.below(self._reach, fresh=fresh)
        projects = {one.number: one for one in known.projects}
        self._untold = not projects
        doubts = {known.doubt: None} if known.doubt else {}
        request = {"scope": self._reach.scope, "asset_types": [PROJECT_ASSET], "page_size": _PAGE}
        try:
            for page in self._access.search(request):
                for result in page:
                    number = str(result.get("project", "")).rpartition("/")[2]
                    self._called[number] = str(result.get("name", "")).rpartition("/")[2]
                    if number and number not in projects:
                        projects[number] = self._hierarchy.project(number)
        except CALL_ERRORS as error:
            self._failed = refusal(error, _SEARCH_NAME)
            if is_denied(error):
                self._denied = refusal(error, _SEARCH_NAME)
                self._listed = self._hierarchy.all_below(self._reach)
                projects |= {one.number: one for one in self._listed.projects}
                doubts |= {self._listed.doubt: None} if self._listed.doubt else {}
            else:
                doubts[refusal(error, _SEARCH_NAME)] = None
        return replace(known, projects=tuple(projects.values()), doubt="; ".join(doubts))

    def _in_project(self, project: Container, roots: list[ResourceType], *, alone: bool) -> Iterator[Listing]:
        scope = scope_in(project.id, self._key)
        if alone and (why := self._in_vain(project)):
            yield from self._nothing(roots, scope, why, asked=False)
            return
        searched = [entry for entry in roots if _is_searched(entry)]
        yield from self._searched_in(project, searched)
        for entry in roots:
            if _is(entry, PROJECT_ASSET):
                yield self._projects(entry, project, scope, alone=alone)
            elif _is(entry, FOLDER_ASSET):
                yield self._folders(entry, scope, alone=alone)
            elif entry not in searched:
                yield self._around(entry, project, scope, alone=alone)

    def _in_vain(self, project: Container) -> str:
        """Why nothing at all can be asked of a project, which may not even be there; empty where anybody tells it."""
        if not project.untold:
            return ""
        try:
            request = {"scope": parent_of(project), "asset_types": [PROJECT_ASSET], "page_size": 1}
            next(self._access.search(request), None)
        except CALL_ERRORS as error:
            said = refusal(error, _SEARCH_NAME)
            return said if nobody_can_be_asked(error) else f"{said}, and {project.untold}"
        return ""

    def _around(self, entry: ResourceType, project: Container, scope: Scope, *, alone: bool) -> Listing:
        """What a service's own list tells of a project; from a run, which may make such a thing in another one or above
        them, of all that is visible."""
        own = (parent_of(project), project)
        if alone or entry.list is None or entry.list.operation not in _AT:
            return self._listed_in(entry, scope, [own])
        known = self._hierarchy.visible()
        others = [(parent_of(one), one) for one in known.projects if one.number != project.number]
        folders = [(f"{Level.FOLDER}/{one.number}", None) for one in known.folders]
        tops = dict.fromkeys(filter(None, (self._hierarchy.organization_of(one) for one in known.projects)))
        above = [(name, None) for name in tops if name.startswith(Level.ORGANIZATION)]
        return self._listed_in(entry, scope, [own, *others, *folders, *above], [known.doubt] if known.doubt else [])

    def _projects(self, entry: ResourceType, project: Container, scope: Scope, *, alone: bool) -> Listing:
        """The project itself; from a run every one that is visible, since one that it makes lies in no other."""
        gathered, doubts = Gathered(entry, self._entries, scope), []
        own = self._hierarchy.project(project.id, fresh=True)
        found = {own.id: own} if own.item else {}
        if not own.item:
            doubts.append(f"the project is not told: {own.untold}")
        if not alone:
            known = self._hierarchy.visible(fresh=True)
            doubts = [known.doubt] if known.doubt else []
            found |= {one.id: one for one in known.projects}
        for one in found.values():
            gathered.add(one.item, one, one.id)
        return gathered.listing(doubts)

    def _folders(self, entry: ResourceType, scope: Scope, *, alone: bool) -> Listing:
        """No folder lies in a project; a run can make one all the same."""
        gathered = Gathered(entry, self._entries, scope)
        if alone:
            return gathered.listing()
        known = self._hierarchy.visible(fresh=True)
        for one in known.folders:
            gathered.add(one.item, None, self._hierarchy.organization_of(one))
        return gathered.listing([known.doubt] if known.doubt else [])

    # One project, all types

    def _searched_in(self, project: Container, entries: Sequence[ResourceType]) -> Iterator[Listing]:
        """One search; of types that the search does not know, which spoil it for all others, as few as it takes."""
        scope = scope_in(project.id, self._key)
        strange = [entry for entry in entries if entry.asset and entry.asset.type in self._access.unsupported]
        yield from self._nothing(strange, scope, _UNSUPPORTED)
        known: dict[str, bool] = {}
        yield from self._searched_for(project, [entry for entry in entries if entry not in strange], known)
        if any(known.values()):  # where it answers nothing at all, it is not the types
            self._access.unsupported |= {kind for kind, is_known in known.items() if not is_known}

    def _searched_for(
        self, project: Container, entries: Sequence[ResourceType], known: dict[str, bool]
    ) -> Iterator[Listing]:
        """The same, noting which types the search turned out to know."""
        if not entries:
            return
        scope, doubts = scope_in(project.id, self._key), [project.doubt] if project.doubt else []
        waiting = {kind: self._new(kind, entries, scope) for kind in _asset_types(entries)}
        asked = list(waiting)
        request = {"scope": parent_of(project), "asset_types": asked, "order_by": "assetType", "page_size": _PAGE}
        told: set[str] = set()
        current = ""
        try:
            for page in self._access.search(request):
                for result in page:
                    kind = result.get("assetType", "")
                    if kind != current:
                        yield from _told(
                            waiting.pop(current, ()), [*doubts, *([_OUT_OF_ORDER] if current in told else [])]
                        )
                        told.add(current)
                        if kind in told:
                            waiting[kind] = self._new(kind, entries, scope)
                        current = kind
                    for gathered in waiting.get(kind, ()):
                        gathered.add(result, project)
        except CALL_ERRORS as error:
            kinds = list(waiting)
            if is_unsupported(error) and len(kinds) > 1:
                for part in (kinds[: len(kinds) // 2], kinds[len(kinds) // 2 :]):
                    some = [entry for entry in entries if entry.asset and entry.asset.type in part]
                    yield from self._searched_for(project, some, known)
                return
            known.update(dict.fromkeys(kinds, False) if is_unsupported(error) else {})
            ending = project.is_ending and is_denied(error)  # its contents are nobody's loss, and cannot be asked for
            failures = [] if ending else [*doubts, refusal(error, _SEARCH_NAME)]
            for left in waiting.values():
                yield from _told(left, failures, exhaustive=not ending, asked=not nobody_can_be_asked(error))
            return
        known.update(dict.fromkeys(asked, True))
        for kind, left in waiting.items():
            yield from _told(left, [*doubts, *([_OUT_OF_ORDER] if kind in told else [])])

    # All projects, one type

    def _in_all(self, roots: list[ResourceType]) -> Iterator[Listing]:
        searched = [entry for entry in roots if entry.asset is not None]
        kinds = _asset_types(searched)
        fresh = PROJECT_ASSET in kinds or FOLDER_ASSET in kinds
        known = self._note(self._below_it(fresh=fresh))
        denied = self._denied
        if self._failed and not (known.projects or known.folders or self._listed.folders):
            reason = f"nothing is told of {self._reach.scope}: {known.doubt or self._failed}"
            top = scope_in(self._reach.scope, self._key)
            yield from self._with_children(partial(self._nothing, roots, top, reason, asked=False))
            return
        listed = [entry for entry in roots if entry not in searched]
        tasks: list[Task] = [partial(self._kind_below, kind, searched, known) for kind in kinds if not denied]
        tasks += [partial(self._listed_below, entry, known) for entry in listed]
        yield from self._at_once(tasks)
        if denied:
            yield from self._one_by_one(searched, denied)

    def _kind_below(self, kind: str, searched: Sequence[ResourceType], known: Known) -> Iterator[Listing]:
        if kind == FOLDER_ASSET:
            return self._folders_below(searched, known)
        return self._searched_below(kind, searched, known)

    def _listed_below(self, entry: ResourceType, known: Known) -> Iterator[Listing]:
        for project in known.projects:
            doubts = [project.doubt] if project.doubt else []
            yield self._listed_in(entry, scope_in(project.id, self._key), [(parent_of(project), project)], doubts)
        yield self._listed_above(entry, self._top_account(), known)

    def _searched_below(self, kind: str, searched: Sequence[ResourceType], known: Known) -> Iterator[Listing]:
        entries = [entry for entry in searched if _is(entry, kind)]
        top = self._top_account()
        request = {"scope": self._reach.scope, "asset_types": [kind], "order_by": "project", "page_size": _PAGE}
        done: set[str] = set()
        current: list[Gathered] = []
        failures: list[str] = []
        number, project = None, None
        try:
            for page in self._access.search(request):
                for result in page:
                    told = str(result.get("project", "")).rpartition("/")[2]
                    if told != number:
                        yield from _told(current, _doubts(project, failures))
                        number, project = told, self._project(told) if told else None
                        account = project.id if project else str(result.get("organization") or top)
                        failures = [_OUT_OF_ORDER] if account in done else []
                        done.add(account)
                        current = self._new(kind, entries, scope_in(account, self._key))
                    for gathered in current:
                        if kind != PROJECT_ASSET or project is None or not project.item:
                            gathered.add(result, project)
                        else:  # Resource Manager knows at once what the search may know in some minutes
                            gathered.add(project.item, project)
        except CALL_ERRORS as error:
            failures = [*failures, refusal(error, _SEARCH_NAME)]
            yield from _told(current, _doubts(project, failures), asked=not nobody_can_be_asked(error))
            broken = [refusal(error, _SEARCH_NAME)]
            yield from self._without_results(kind, entries, known, done, broken, asked=not nobody_can_be_asked(error))
            return
        yield from _told(current, _doubts(project, failures))
        yield from self._without_results(kind, entries, known, done, [])

    def _folders_below(self, searched: Sequence[ResourceType], known: Known) -> Iterator[Listing]:
        """The folders that the search or Resource Manager tells: the first all of them, the other sooner."""
        top = self._top_account()
        found = {str(folder.item["name"]): folder.item for folder in known.folders}
        failures: list[str] = []
        request = {"scope": self._reach.scope, "asset_types": [FOLDER_ASSET], "page_size": _PAGE}
        try:
            for page in self._access.search(request):
                for result in page:
                    found.setdefault(str(result.get("name")), result)
                    top = str(result.get("organization") or top)
        except CALL_ERRORS as error:
            failures.append(refusal(error, _SEARCH_NAME))
        if not _is_organization(top):  # without it they would be other findings than for whoever may know it
            entries = [entry for entry in searched if _is(entry, FOLDER_ASSET)]
            yield from self._nothing(entries, scope_in(top, self._key), _NO_TOP)
            return
        gathered = self._new(FOLDER_ASSET, searched, scope_in(top, self._key))
        for item in found.values():
            for one in gathered:
                one.add(item)
        yield from _told(gathered, failures, exhaustive=self._has_all_of(top))

    def _without_results(
        self,
        kind: str,
        entries: Sequence[ResourceType],
        known: Known,
        done: set[str],
        failures: Sequence[str],
        *,
        asked: bool = True,
    ) -> Iterator[Listing]:
        """The listings of the projects of which a search told nothing: they have none, or that is not known."""
        for project in known.projects:
            if project.id in done:
                continue
            gathered = self._new(kind, entries, scope_in(project.id, self._key))
            for one in gathered:
                if kind == PROJECT_ASSET and project.item:
                    one.add(project.item, project)
            yield from _told(gathered, failures, asked=asked)
        top = self._top_account()
        unknown = [known.doubt] if known.doubt and (self._untold or not known.projects) else []
        if top not in done and (failures or unknown or not (done or known.projects)):
            yield from _told(
                self._new(kind, entries, scope_in(top, self._key)),
                [*failures, *unknown],
                exhaustive=self._has_all_of(top),
                asked=asked,
            )

    def _one_by_one(self, entries: Sequence[ResourceType], reason: str) -> Iterator[Listing]:
        """What may not be searched as a whole, project by project, as far as these are told."""
        known = self._note(self._listed)
        inside = [entry for entry in entries if not _is(entry, FOLDER_ASSET)]
        yield from self._at_once(partial(self._in_project, one, inside, alone=True) for one in known.projects)
        yield from self._with_children(partial(self._above, entries, known, reason))

    def _above(self, entries: Sequence[ResourceType], known: Known, reason: str) -> Iterator[Listing]:
        """What is told of folders, and of projects that may be there beside those that are told."""
        scope = scope_in(self._top_account(), self._key)
        for entry in entries:
            if _is(entry, FOLDER_ASSET) and not _is_organization(scope.account or ""):
                yield from self._nothing([entry], scope, _NO_TOP)
            elif _is(entry, FOLDER_ASSET):
                gathered = Gathered(entry, self._entries, scope)
                for folder in known.folders:
                    gathered.add(folder.item)
                yield gathered.listing([known.doubt] if known.doubt else [], exhaustive=self._has_all_of(scope.account))
            elif known.doubt or not known.projects:
                told = f"; not all projects are told: {known.doubt}" if known.doubt else "; no project is told"
                yield from self._nothing([entry], scope, f"{reason}{told}")

    def _right_in(self, roots: Sequence[ResourceType]) -> Iterator[Listing]:
        """What lies in an organization or folder, and in no project."""
        known = self._hierarchy.all_below(self._reach)
        scope, doubts = scope_in(self._reach.account, self._key), [known.doubt] if known.doubt else []
        for entry in roots:
            gathered = Gathered(entry, self._entries, scope)
            if _is(entry, FOLDER_ASSET):
                for folder in known.folders:
                    gathered.add(folder.item)
                yield gathered.listing(doubts)
            elif entry.asset is None:
                yield self._listed_above(entry, self._reach.scope, known)
            else:
                yield gathered.listing([f"{entry.type} lies in projects, and none is named"])

    # Services' own lists

    def _listed_above(self, entry: ResourceType, account: str, known: Known) -> Listing:
        folders = [(f"{Level.FOLDER}/{folder.number}", None) for folder in known.folders]
        places = [(self._reach.scope, None), *folders]
        doubts = [known.doubt] if known.doubt else []
        return self._listed_in(
            entry, scope_in(account, self._key), places, doubts, exhaustive=self._has_all_of(account)
        )

    def _listed_in(
        self,
        entry: ResourceType,
        scope: Scope,
        places: Sequence[tuple[str, Container | None]],
        doubts: Sequence[str] = (),
        *,
        exhaustive: bool = True,
    ) -> Listing:
        """What a service's own list tells of projects, and of folders and organizations (that have no container)."""
        operation = LISTS.get(entry.list.operation) if entry.list else None
        if entry.list is None or operation is None:
            return Listing(entry.type, scope, gap=gap_of(entry.type, scope, "no call lists this type"))
        asked = [(place, project) for place, project in places if entry.list.operation in _AT or project is not None]
        places = [
            one for one in asked if not (one[0].startswith(Level.FOLDER) and entry.list.operation in _NOT_IN_FOLDERS)
        ]
        gathered, asker = Gathered(entry, self._entries, scope), _Asker(self._access, entry.list, operation)
        refused: list[str] = []
        # Bindings are asked for by a project's number, as their own names and the states of Terraform have it.
        numbered = entry.list.operation == "tag_bindings"
        asked_at = [
            f"{Level.PROJECT}/{project.number}" if numbered and project is not None and project.number else place
            for place, project in places
        ]
        arguments = [{"parent": f"{_AT.get(entry.list.operation, '')}{place}"} for place in asked_at]
        answers = in_order(asker, arguments, _PARALLEL_CALLS)
        for (place, project), (found, failure) in zip(places, answers, strict=True):
            if failure and failure.denied and project and project.is_ending:
                exhaustive = False
            elif failure:
                refused.append(failure.reason)
            account = project.id if project is not None else place
            for item in found:
                gathered.add_listed(item, project, account=None if account == scope.account else account)
        failures = (
            [f"{refused[0]} ({len(refused)} of {len(places)} projects, folders and organizations)"] if refused else []
        )
        return gathered.listing([*doubts, *failures], exhaustive=exhaustive and entry.list.operation not in _SOME)

    def _below(self, entry: ResourceType, parents: Listing) -> Listing:
        """What a service's own list tells of each parent. What is missing of the parents is missing here too.

        A parent that the service does not know by a guessed name may be gone, or have another: for a scan that is a
        gap. A run has the engine's word on what it deleted, so that the list only does not claim to have all.
        """
        scope, call = parents.scope, entry.list
        operation = LISTS.get(call.operation) if call else None
        if call is None or call.per is None or operation is None:
            return Listing(entry.type, scope, gap=gap_of(entry.type, scope, "no call lists this type"))
        if parents.gap is not None and not parents.asked:
            return Listing(entry.type, scope, gap=gap_of(entry.type, scope, parents.gap.reason), asked=False)
        asked = [found for found in parents.objects if not (call.per.only_own and found.ignored_because)]
        gathered = Gathered(entry, self._entries, scope)
        above = self._catalog.get(call.per.type)
        asker = _Asker(self._access, call, operation, guessed=above is not None and above.has_guessed_names)
        refused: list[str] = []
        some = not parents.exhaustive or call.operation in _SOME
        filled = [_arguments({**call.arguments, **call.per.arguments}, placeholders(found, "")) for found in asked]
        for parent, (found, failure) in zip(asked, in_order(asker, filled, _PARALLEL_CALLS), strict=True):
            own = parent.account if (found or failure) and parent.account and _is_project(parent.account) else ""
            project = self._project(own) if own else None
            is_ending = project is not None and project.is_ending
            if failure and ((failure.denied and is_ending) or (failure.not_found and not self._for_scan)):
                some = True
            elif failure:
                refused.append(failure.reason)
            for item in found:
                gathered.add_listed(item, project, parent, None if parent.account == scope.account else parent.account)
        failures = [f"{refused[0]} ({len(refused)} of {len(asked)} {call.per.type})"] if refused else []
        failures += [f"{parents.type}: {parents.gap.reason}"] if parents.gap else []
        return gathered.listing(failures, exhaustive=not some, asked=parents.asked)

    # Pieces

    def _note(self, known: Known) -> Known:
        """Keep what is known of projects for as long as this takes."""
        for one in known.projects:
            self._known[one.number] = self._known[one.id] = one
        return known

    def _project(self, name: str) -> Container:
        """A project by its id or number."""
        return self._known.get(name) or self._hierarchy.project(name)

    def _new(self, kind: str, entries: Sequence[ResourceType], scope: Scope) -> list[Gathered]:
        return [Gathered(entry, self._entries, scope) for entry in entries if _is(entry, kind)]

    def _nothing(
        self, entries: Iterable[ResourceType], scope: Scope, reason: str, *, asked: bool = True
    ) -> Iterator[Listing]:
        for entry in entries:
            yield Listing(entry.type, scope, gap=gap_of(entry.type, scope, reason), asked=asked)

    def _top_account(self) -> str:
        """The account of what lies in no project."""
        if self._reach.level is not Level.FOLDER:
            return self._reach.scope
        own = next((one for one in self._hierarchy.visible().folders if one.number == self._reach.name), None)
        return (self._hierarchy.organization_of(own) if own else "") or self._reach.scope

    def _has_all_of(self, account: str | None) -> bool:
        """Whether all of an account is reached: a folder has a part of its organization."""
        return account == self._reach.account


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why a list is not whole. What its service has `denied`, or does not know (`not_found`, which is `denied` too), in
    a project that waits for its end is nobody's loss."""

    reason: str
    denied: bool = False
    not_found: bool = False


class _Asker:
    """Asks for single lists, from several threads, and stops asking when nobody answers.

    What is `guessed` of where they are asked for may be wrong: then that nothing is there is no answer.
    """

    def __init__(
        self, access: GoogleAccess, call: ListCall, operation: ServiceList | ManagerList, *, guessed: bool = False
    ) -> None:
        self._access = access
        self._call = call
        self._operation = operation
        self._guessed = guessed
        self._silent = Event()

    def __call__(self, arguments: Mapping[str, str] | str) -> tuple[list[object], _Failure | None]:
        """The items, none below what is gone by now, and why they are not all."""
        if isinstance(arguments, str):
            return [], _Failure(f"no {arguments} for {self._operation.name}")
        if self._silent.is_set():
            return [], _Failure(f"not asked {self._operation.name}")
        found: list[object] = []
        try:
            found.extend(items(self._access, self._operation, arguments))
        except CALL_ERRORS as error:
            if is_not_found(error) and not self._guessed:
                return found, None
            if not answered(error):
                self._silent.set()
            lost = is_not_found(error)
            return found, _Failure(refusal(error, self._operation.name), is_denied(error) or lost, lost)
        return found, None


def parent_of(project: Container) -> str:
    """Google's name of a project, with its id: a search is made in that, and a list of what lies right in it."""
    return f"{Level.PROJECT}/{project.id}"


def _meant(project: Container) -> Container:
    """A project that somebody names is somebody's, whatever its id is like."""
    return project if project.is_ending else replace(project, because=None)


def _arguments(templates: Mapping[str, object], values: Mapping[str, str]) -> Mapping[str, str] | str:
    """The arguments of a list; the name of a value that is missing for them."""
    try:
        filled = fill(dict(templates), values)
    except KeyError as error:
        return str(error.args[0])
    return {name: str(value) for name, value in filled.items()} if isinstance(filled, dict) else {}


def _told(
    gathered: Iterable[Gathered], failures: Sequence[str], *, exhaustive: bool = True, asked: bool = True
) -> Iterator[Listing]:
    for one in gathered:
        yield one.listing(failures, exhaustive=exhaustive, asked=asked)


def _doubts(project: Container | None, failures: Sequence[str]) -> list[str]:
    return [*([project.doubt] if project is not None and project.doubt else []), *failures]


def _asset_types(entries: Iterable[ResourceType]) -> list[str]:
    return sorted({entry.asset.type for entry in entries if entry.asset})


def _is(entry: ResourceType, asset_type: str) -> bool:
    return entry.asset is not None and entry.asset.type == asset_type


def _is_searched(entry: ResourceType) -> bool:
    return entry.asset is not None and entry.asset.type not in (PROJECT_ASSET, FOLDER_ASSET)


def _is_organization(account: str) -> bool:
    return account.startswith(Level.ORGANIZATION)


def _is_project(account: str) -> bool:
    return "/" not in account
