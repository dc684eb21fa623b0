"""Where a value of a workspace was written: in an option, the profile, the defaults, a pool or an image.

Pure: no clock, no network.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ..catalog.compose import Workspace
from ..catalog.problems import Loc
from ..catalog.source import Source

BUILT_IN = "built in"


class Origins:
    """Finds the place of each value of one workspace in the catalog as it was written."""

    def __init__(self, source: Source, workspace: Workspace) -> None:
        self._source = source
        self._workspace = workspace
        profile = workspace.profile
        self._profile: Loc = next(
            (
                ("profiles", index)
                for index, raw in enumerate(source.data.get("profiles", ()))
                if isinstance(raw, Mapping) and (raw.get("name"), raw.get("version")) == profile.key
            ),
            (),
        )

    def of(self, *path: str | int) -> str:
        """Say where a value of the profile comes from; what comes later in a start wins."""
        for base in (*self._options(), self._profile, ("defaults",)):
            if base and self._has((*base, *path)):
                return self.at(*base, *path)
        return BUILT_IN

    def pick(self, question: str) -> str:
        """Say where the picked option of a question stands."""
        return self.at(*self._option(question, self._workspace.picks[question]))

    def image(self) -> str:
        """Say where the image stands."""
        key = self._workspace.image_key
        return self.at("images", key) if key else "typed by the user"

    def pool(self, *path: str) -> str:
        """Say where a value of the pool stands."""
        return self.at("pools", self._workspace.pool_name, *path)

    def at(self, *loc: str | int) -> str:
        """Write a place with its file and line."""
        file, line, path = self._source.locate(loc)
        where = ":".join(str(part) for part in (file, line) if part is not None)
        return f"{path} ({where})" if where else path

    def _options(self) -> Iterator[Loc]:
        for question, pick in reversed(list(self._workspace.picks.items())):
            yield self._option(question, pick)

    def _option(self, question: str, pick: str) -> Loc:
        choice = (*self._profile, "choices", question)
        raw = self._get(choice)
        if isinstance(raw, str):
            return ("optionSets", raw, "options", pick)
        if isinstance(raw, Mapping) and "optionSet" in raw:
            return ("optionSets", raw["optionSet"], "options", pick)
        return (*choice, "options", pick) if raw is not None else (*self._profile, "images")

    def _has(self, loc: Loc) -> bool:
        parent = self._get(loc[:-1])
        return isinstance(parent, Mapping) and loc[-1] in parent

    def _get(self, loc: Loc) -> Any:
        value: Any = self._source.data
        for step in loc:
            if isinstance(value, Mapping):
                value = value.get(step)
            elif isinstance(value, list) and isinstance(step, int) and step < len(value):
                value = value[step]
            else:
                return None
        return value
