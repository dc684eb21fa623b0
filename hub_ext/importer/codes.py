"""What the importer has to say, and a place to collect it.

Pure: no clock, no network.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from ..catalog.problems import Loc, path_of
from ..errors import Finding, FindingCode, error, note, warning

Locate = Callable[[Loc], tuple[str | None, int | None]]
"""Gives file and line of a place in the values."""


class Code(FindingCode):
    """Names of all findings of an import."""

    UNREADABLE = error("unreadable", "A values file cannot be read.")
    YAML = warning("yaml", "YAML that readers take for different things, or a key that is written twice.")
    NO_PROFILE_LIST = error("no-profile-list", "The values have no profile list.")
    SEVERAL_LISTS = error("several-profile-lists", "The values have more than one profile list.")
    WRONG_SHAPE = error(
        "wrong-shape", "A value is of another kind than KubeSpawner takes; the start would fail."
    )
    BAD_QUANTITY = error("bad-quantity", "An amount that KubeSpawner or Kubernetes refuses.")
    BAD_IMAGE = error("bad-image", "Not an image reference.")
    BAD_NAME = error("bad-name", "Not a name or label as Kubernetes allows it.")
    DUPLICATE_SLUG = error(
        "duplicate-slug", "Two profiles have one slug: only the first could ever be picked."
    )
    EMPTY_SLUG = error("empty-slug", "A profile has an empty slug: picking it starts the default profile.")
    DEFAULT_NOT_BOOLEAN = warning(
        "default-not-boolean", "`default` is a text; KubeSpawner takes any text for true."
    )
    DEFAULT_IMPLICIT = note(
        "default-implicit", "No profile is marked as default; KubeSpawner takes the first."
    )
    TWO_DEFAULTS = warning(
        "two-defaults", "Two profiles, or two choices of an option, are marked as default."
    )
    UNKNOWN_KEY = error("unknown-key", "A key that nothing reads, most often misspelt.")
    MISPLACED_KEY = warning(
        "misplaced-key", "A setting beside `kubespawner_override` where nothing reads it."
    )
    UNKNOWN_SETTING = warning(
        "unknown-setting", "KubeSpawner has no such setting and ignores it without a word."
    )
    NOT_CARRIED = warning("not-carried", "The catalog has no words for it; the hub's own configuration may.")
    NO_EFFECT = note("no-effect", "Written, but of no effect.")
    NOT_STATED = warning("not-stated", "The catalog wants it said, and it was not; look at what was put in.")
    GUESSED = warning("guessed", "Not to be known from the values; look at what was put in.")
    ROUNDED = note("rounded", "An amount finer than Kubernetes keeps was rounded up, as Kubernetes does.")
    RENAMED = note(
        "renamed", "A name that the catalog does not allow was changed; links and saved choices change."
    )
    ADDED_NOT_REPLACED = note(
        "added-not-replaced", "KubeSpawner replaced the hub's list by this one; the catalog adds to it."
    )
    TWO_ACCELERATORS = warning(
        "two-accelerators", "A combination asked for two kinds of GPU; the one picked last is kept."
    )
    GUARANTEE_DIFFERS = error(
        "guarantee-differs",
        "The guarantee of a GPU is not its limit, or there is no limit; the API server refuses the pod.",
    )
    POD_DIFFERS = error("pod-differs", "A pod of the draft is not what it was.")


@dataclass(slots=True)
class Findings:
    """Collects findings with file and line; the same one is kept once."""

    locate: Locate
    found: dict[Finding, None] = field(default_factory=dict)

    def add(self, code: Code, loc: Loc, message: str, *, help: str = "") -> None:  # noqa: A002
        """Add what there is to say about a place in the values."""
        file, line = self.locate(loc)
        finding = Finding(
            severity=code.severity,
            code=code,
            path=path_of(loc),
            file=file,
            line=line,
            message=message,
            help=help,
        )
        self.found[finding] = None
