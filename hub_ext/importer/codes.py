"""What the importer has to say, and a place to collect it.

Pure: no clock, no network.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from ..catalog.problems import Loc, path_of
from ..errors import Finding, Severity

Locate = Callable[[Loc], tuple[str | None, int | None]]
"""Gives file and line of a place in the values."""


class Code(StrEnum):
    """Names of all findings of an import."""

    UNREADABLE = "unreadable"
    YAML = "yaml"
    NO_PROFILE_LIST = "no-profile-list"
    SEVERAL_LISTS = "several-profile-lists"
    WRONG_SHAPE = "wrong-shape"
    BAD_QUANTITY = "bad-quantity"
    BAD_IMAGE = "bad-image"
    BAD_NAME = "bad-name"
    DUPLICATE_SLUG = "duplicate-slug"
    EMPTY_SLUG = "empty-slug"
    DEFAULT_NOT_BOOLEAN = "default-not-boolean"
    DEFAULT_IMPLICIT = "default-implicit"
    TWO_DEFAULTS = "two-defaults"
    UNKNOWN_KEY = "unknown-key"
    MISPLACED_KEY = "misplaced-key"
    UNKNOWN_SETTING = "unknown-setting"
    NOT_CARRIED = "not-carried"
    NO_EFFECT = "no-effect"
    NOT_STATED = "not-stated"
    GUESSED = "guessed"
    ROUNDED = "rounded"
    RENAMED = "renamed"
    ADDED_NOT_REPLACED = "added-not-replaced"
    TWO_ACCELERATORS = "two-accelerators"
    GUARANTEE_DIFFERS = "guarantee-differs"
    POD_DIFFERS = "pod-differs"


E, W, N = Severity.ERROR, Severity.WARNING, Severity.NOTE

RULES: dict[Code, tuple[Severity, str]] = {
    Code.UNREADABLE: (E, "A values file cannot be read."),
    Code.YAML: (W, "YAML that readers take for different things, or a key that is written twice."),
    Code.NO_PROFILE_LIST: (E, "The values have no profile list."),
    Code.SEVERAL_LISTS: (E, "The values have more than one profile list."),
    Code.WRONG_SHAPE: (E, "A value is of another kind than KubeSpawner takes; the start would fail."),
    Code.BAD_QUANTITY: (E, "An amount that KubeSpawner or Kubernetes refuses."),
    Code.BAD_IMAGE: (E, "Not an image reference."),
    Code.BAD_NAME: (E, "Not a name or label as Kubernetes allows it."),
    Code.DUPLICATE_SLUG: (E, "Two profiles have one slug: only the first could ever be picked."),
    Code.EMPTY_SLUG: (E, "A profile has an empty slug: picking it starts the default profile."),
    Code.DEFAULT_NOT_BOOLEAN: (W, "`default` is a text; KubeSpawner takes any text for true."),
    Code.DEFAULT_IMPLICIT: (N, "No profile is marked as default; KubeSpawner takes the first."),
    Code.TWO_DEFAULTS: (W, "Two profiles, or two choices of an option, are marked as default."),
    Code.UNKNOWN_KEY: (E, "A key that nothing reads, most often misspelt."),
    Code.MISPLACED_KEY: (W, "A setting beside `kubespawner_override` where nothing reads it."),
    Code.UNKNOWN_SETTING: (W, "KubeSpawner has no such setting and ignores it without a word."),
    Code.NOT_CARRIED: (W, "The catalog has no words for it; the hub's own configuration may."),
    Code.NO_EFFECT: (N, "Written, but of no effect."),
    Code.NOT_STATED: (W, "The catalog wants it said, and it was not; look at what was put in."),
    Code.GUESSED: (W, "Not to be known from the values; look at what was put in."),
    Code.ROUNDED: (N, "An amount finer than Kubernetes keeps was rounded up, as Kubernetes does."),
    Code.RENAMED: (N, "A name that the catalog does not allow was changed; links and saved choices change."),
    Code.ADDED_NOT_REPLACED: (N, "KubeSpawner replaced the hub's list by this one; the catalog adds to it."),
    Code.TWO_ACCELERATORS: (W, "A combination asked for two kinds of GPU; the one picked last is kept."),
    Code.GUARANTEE_DIFFERS: (
        E,
        "The guarantee of a GPU is not its limit, or there is no limit; the API server refuses the pod.",
    ),
    Code.POD_DIFFERS: (E, "A pod of the draft is not what it was."),
}
"""How bad each is, and what it means."""


@dataclass(slots=True)
class Findings:
    """Collects findings with file and line; the same one is kept once."""

    locate: Locate
    found: dict[Finding, None] = field(default_factory=dict)

    def add(self, code: Code, loc: Loc, message: str, *, help: str = "") -> None:  # noqa: A002
        """Add what there is to say about a place in the values."""
        file, line = self.locate(loc)
        finding = Finding(
            severity=RULES[code][0],
            code=code,
            path=path_of(loc),
            file=file,
            line=line,
            message=message,
            help=help,
        )
        self.found[finding] = None
