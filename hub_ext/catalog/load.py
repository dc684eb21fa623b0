"""Read a catalog and report every mistake at once, each with its place and remedy.

Shell in one line: `source.read_path` reads the files; all else here is pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..errors import BadValueError, CatalogError, Finding, Severity
from . import rules
from .codes import Code
from .expand import expand
from .lock import FILE_NAME, RESTORE, check_lock, parse_lock
from .model import API_VERSION, KIND, Catalog
from .problems import Problem
from .rules.context import Context
from .source import BEGIN, MAPPINGS, Document, Source, merge, place, read_mapping, read_path, read_text
from .validation import broken_entries, validate
from .yaml_values import raw_text

_ORDER: Final = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.NOTE: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What came of reading a catalog."""

    catalog: Catalog | None
    """In its explicit form; None if there is an error."""
    findings: tuple[Finding, ...]
    """Errors, warnings and notes, in the order of the files."""

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity is Severity.ERROR)


def load_catalog(source: Path | Mapping[str, Any]) -> Catalog:
    """Give the catalog of a file, a folder of files or a mapping (`custom.gpuWorkspaces` in z2jh).

    Raises
    ------
    CatalogError
        There is an error; it carries all findings.
    """
    examination = examine(source)
    if examination.catalog is None:
        raise CatalogError(examination.findings)
    return examination.catalog


def examine(source: Path | Mapping[str, Any]) -> Examination:
    """Read a catalog and say everything there is to say about it; never raises for what is in it.

    A `catalog.lock` beside the file, or in the folder, is held against it.
    """
    if isinstance(source, Mapping):
        return _examine(read_mapping(source))
    return _examine(read_path(source), lock_file=lock_path(source))


def examine_text(text: str, file: str | None = None) -> Examination:
    """Read a catalog from a YAML text."""
    return _examine(read_text(text, file))


def lock_path(source: Path) -> Path:
    """Say where the lock of a catalog stands, whether it is there or not."""
    return (source if source.is_dir() else source.parent) / FILE_NAME


def _examine(documents: list[Document], lock_file: Path | None = None) -> Examination:
    source = merge(documents)
    catalog, problems, is_complete = _check(source)
    is_read = not any(p.code.severity is Severity.ERROR for d in documents for p in d.problems)
    # What could not be read is not taken for changed or gone.
    if catalog is not None and is_complete and is_read and lock_file is not None and lock_file.is_file():
        problems += _check_lock(catalog, lock_file)
    findings = [
        _finding(problem, place(document, problem.loc))
        for document in source.documents
        for problem in document.problems
    ]
    findings += [_finding(problem, source.locate(problem.loc)) for problem in problems]
    findings = sorted(dict.fromkeys(findings), key=_position)
    failed = any(finding.severity is Severity.ERROR for finding in findings)
    return Examination(catalog=None if failed else catalog, findings=tuple(findings))


def _position(finding: Finding) -> tuple[str, int, int]:
    return finding.file or "", finding.line or 0, _ORDER[finding.severity]


def _finding(problem: Problem, where: tuple[str | None, int | None, str]) -> Finding:
    file, line, path = where if problem.file is None else (problem.file, None, "")
    return Finding(
        severity=problem.code.severity,
        code=problem.code.value,
        message=problem.message,
        path=path,
        file=file,
        line=problem.line or line,
        help=problem.help,
    )


_GAPS: Final = {
    Code.UNKNOWN_IMAGE,
    Code.UNKNOWN_POOL,
    Code.UNKNOWN_OPTION_SET,
    Code.UNKNOWN_OPTION,
    Code.DUPLICATE_VERSION,
}
"""Faults of a catalog in which it is not known what a version is, so that it has no fingerprint."""


def _check(source: Source) -> tuple[Catalog | None, list[Problem], bool]:
    """Check the shape, and then by the rules what has the right shape.

    The last of the result says whether it is known of each version what it is, right or wrong.
    """
    if not source.data:
        return None, [] if any(d.problems for d in source.documents) else [_no_catalog()], False
    catalog, problems = validate(source.data, lambda loc: _raw(source, loc))
    if catalog is not None:
        indexes = tuple(range(len(catalog.profiles)))
        left_out: frozenset[str] = frozenset()
    else:
        catalog, indexes = _salvage(source.data, problems)
        left_out = frozenset(str(loc[0]) for loc in broken_entries(problems) if loc)
    if catalog is None:
        return None, problems, False
    explicit = expand(catalog)
    context = Context(
        written=catalog,
        catalog=explicit,
        indexes=indexes,
        known={key: _names(source.data.get(key)) for key in MAPPINGS},
        known_versions=_versions(source.data.get("profiles")),
        left_out=left_out,
    )
    is_complete = not problems
    problems = problems + rules.check(context)
    return explicit, problems, is_complete and _GAPS.isdisjoint(problem.code for problem in problems)


def _check_lock(catalog: Catalog, file: Path) -> list[Problem]:
    try:
        return list(check_lock(catalog, parse_lock(file.read_text(encoding="utf-8"))))
    except BadValueError as error:
        message, remedy = error.message, error.help
    except (OSError, UnicodeDecodeError) as error:
        message, remedy = str(error), RESTORE
    return [Problem(code=Code.UNREADABLE, message=message, help=remedy, file=str(file))]


def _no_catalog() -> Problem:
    return Problem(code=Code.NOT_A_CATALOG, message="there is no catalog here", help=BEGIN)


def _raw(source: Source, loc: tuple[str | int, ...]) -> str | None:
    document, local = source.origin(loc)
    return raw_text(document.node, (*document.prefix, *local)) if document else None


def _salvage(data: Mapping[str, Any], problems: Iterable[Problem]) -> tuple[Catalog | None, tuple[int, ...]]:
    """Give the catalog without its broken entries, and which profiles are left."""
    broken = set(broken_entries(list(problems)))
    rest: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND, "profiles": []}
    indexes: tuple[int, ...] = ()
    for key, section in data.items():
        if (key,) in broken or key in {"apiVersion", "kind"}:
            continue
        if key == "profiles" and isinstance(section, list):
            indexes = tuple(i for i in range(len(section)) if (key, i) not in broken)
            rest[key] = [section[i] for i in indexes]
        elif isinstance(section, Mapping) and key in MAPPINGS:
            rest[key] = {name: item for name, item in section.items() if (key, name) not in broken}
        else:
            rest[key] = section
    catalog, still = validate(rest, lambda _: None)
    return (None, ()) if still else (catalog, indexes)


def _names(section: Any) -> frozenset[str]:
    return frozenset(str(name) for name in section) if isinstance(section, Mapping) else frozenset()


def _versions(section: Any) -> frozenset[tuple[str, int | None]]:
    found: set[tuple[str, int | None]] = set()
    for item in section if isinstance(section, list) else ():
        name, version = (item.get("name"), item.get("version")) if isinstance(item, Mapping) else ("", None)
        readable = isinstance(version, int) and not isinstance(version, bool)
        found.add((name if isinstance(name, str) else "", version if readable else None))
    return frozenset(found)
