"""What the open JupyterLab pages say of themselves: unsaved documents, and when the user was last there.

Pure: no clock, `now` is seconds of any clock that only goes forward.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from hub_ext.protocol import Document, Saved, SaveRequest, Unsaved

SILENT_SECONDS = 600
"""After this a page that said nothing counts as gone: closed without a word, crashed, or asleep."""
MOST_PAGES = 32
"""Pages that are kept in mind; the ones heard of longest ago are forgotten."""
NO_ANSWER = "the page that has it open did not answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One open page, as it last told."""

    documents: tuple[Document, ...] = ()
    """Those with changes that are not on disk."""
    heard: float
    input_at: float | None = None
    """When the user last typed or clicked there."""


class Pages:
    """All pages that are open, by an id that each draws for itself."""

    def __init__(self) -> None:
        self._pages: dict[str, Page] = {}
        self._input: float | None = None

    def tell(
        self, page: str, documents: Iterable[Document], *, input_seconds: float | None, now: float
    ) -> None:
        """A page says what it has unsaved, and how long ago its user last did something."""
        input_at = None if input_seconds is None else now - input_seconds
        self._pages[page] = Page(documents=tuple(documents), heard=now, input_at=input_at)
        if input_at is not None:
            self._input = max(self._input or input_at, input_at)
        if len(self._pages) > MOST_PAGES:
            del self._pages[min(self._pages, key=lambda name: self._pages[name].heard)]

    def close(self, page: str) -> None:
        """A page is closed; what it had unsaved is gone."""
        self._pages.pop(page, None)

    def open(self, now: float) -> dict[str, Page]:
        """The pages that can be reckoned with."""
        return {name: page for name, page in self._pages.items() if now - page.heard < SILENT_SECONDS}

    def documents(self, now: float) -> tuple[Document, ...] | None:
        """Unsaved documents of all pages, each once; None where no page is open."""
        pages = self.open(now)
        if not pages:
            return None
        found = {document.path: document for page in pages.values() for document in page.documents}
        return tuple(found.values())

    def input_seconds(self, now: float) -> float | None:
        """How long ago the user typed or clicked in any page."""
        return None if self._input is None else max(now - self._input, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveRound:
    """One wish to save, put to all pages that were open then."""

    request: SaveRequest
    missing: frozenset[str]
    """Pages that have not answered."""
    saved: frozenset[str] = frozenset()
    failed: tuple[Unsaved, ...] = ()

    @property
    def done(self) -> bool:
        """Whether every page answered."""
        return not self.missing

    def answered(self, page: str, saved: Iterable[str], failed: Iterable[Unsaved]) -> SaveRound:
        """The round after a page's answer; a page that was not asked changes nothing."""
        if page not in self.missing:
            return self
        return replace(
            self,
            missing=self.missing - {page},
            saved=self.saved | set(saved),
            failed=(*self.failed, *failed),
        )


def close_round(save: SaveRound, pages: dict[str, Page], *, server: str) -> Saved:
    """The confirmation to the culler. What a silent page had unsaved was not saved, unless another did it."""
    silent = [
        Unsaved(path=document.path, why=NO_ANSWER)
        for name in sorted(save.missing)
        for document in (pages[name].documents if name in pages else ())
    ]
    failed = {entry.path: entry for entry in (*silent, *save.failed) if entry.path not in save.saved}
    return Saved(
        server=server,
        save=save.request.id,
        saved=tuple(sorted(save.saved))[:256],
        failed=tuple(failed.values())[:256],
    )
