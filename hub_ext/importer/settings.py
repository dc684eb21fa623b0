"""Overrides in plain facts: each setting is read, reported if it cannot be carried over, and normalized.

The result of `clean` has KubeSpawner's names, merges by KubeSpawner's rules, and holds only what the catalog
has words for: `facts.read_facts` needs no more care.

Pure: no clock, no network.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import ValidationError

from ..catalog.model import Toleration
from ..catalog.problems import Loc
from ..errors import BadValueError
from ..gpu.resources import PLUS_HELP, dotted, is_accelerator
from ..names import is_label_key, parse_image
from ..spelling import meant
from ..units import parse_count
from .codes import Code, Findings
from .quantities import millicores, spawner_cpu, spawner_memory
from .texts import DROP, HUB_HELP, has_fields, read_annotations, read_environment, read_labels
from .traits import PLACES, TRAITS

Reader = Callable[[Any, Loc, Findings], Any]


def clean(override: Mapping[str, Any], loc: Loc, findings: Findings) -> dict[str, Any]:
    """Read one set of overrides; what is left out is a finding."""
    result: dict[str, Any] = {}
    for key, value in override.items():
        place = (*loc, key)
        reader = READERS.get(key)
        if reader is not None:
            read = reader(value, place, findings)
            if read is not DROP:
                result[key] = read
        elif key in {"extra_pod_config", "extra_container_config"}:
            result |= _extra_config(value, place, findings)
        elif key in TRAITS:
            findings.add(Code.NOT_CARRIED, place, f"the catalog has no words for {key}", help=HUB_HELP)
        else:
            _unknown(key, place, findings)
    return result


def read_placed(settings: Mapping[str, tuple[Loc, Any]], findings: Findings) -> dict[str, Any]:
    """Read settings that stand in places of their own; what is left out is a finding."""
    read = {
        name: READERS[name](value, loc, findings)
        for name, (loc, value) in settings.items()
        if value is not None
    }
    return {name: value for name, value in read.items() if value is not DROP}


def _unknown(key: str, place: Loc, findings: Findings) -> None:
    found = meant(str(key), [*TRAITS, *PLACES], alike=0.75)
    remedy = f"Did you mean {found}?" if found and found != key else ""
    if found in PLACES:
        remedy = f"{remedy} {PLACES[found]}".strip()
    findings.add(Code.UNKNOWN_SETTING, place, f"KubeSpawner has no setting {key!r}", help=remedy)


def _extra_config(value: Any, place: Loc, findings: Findings) -> dict[str, Any]:
    """Read the parts of a raw pod or container that have a setting of their own."""
    if not isinstance(value, Mapping):
        findings.add(Code.WRONG_SHAPE, place, f"a mapping, not {value!r}")
        return {}
    result: dict[str, Any] = {}
    for key, part in value.items():
        setting = _EXTRA.get(key)
        if setting is None:
            findings.add(
                Code.NOT_CARRIED, (*place, key), f"the catalog has no words for {key}", help=HUB_HELP
            )
            continue
        if setting in {"volumes", "volume_mounts", "tolerations"}:
            message = f"KubeSpawner replaces all {key} of the pod by these; the catalog adds them"
            findings.add(Code.ADDED_NOT_REPLACED, (*place, key), message)
        read = READERS[setting](part, (*place, key), findings)
        if read is not DROP:
            result[setting] = read
    return result


def _image(value: Any, loc: Loc, findings: Findings) -> Any:
    try:
        parse_image(value if isinstance(value, str) else "")
    except BadValueError as error:
        findings.add(Code.BAD_IMAGE, loc, f"{value!r} is not an image reference", help=error.help)
        return DROP
    return value


def _memory(value: Any, loc: Loc, findings: Findings) -> Any:
    try:
        return spawner_memory(value)
    except BadValueError as error:
        findings.add(Code.BAD_QUANTITY, loc, error.message, help=error.help)
        return DROP


def _cpu(value: Any, loc: Loc, findings: Findings) -> Any:
    try:
        cpus = spawner_cpu(value)
    except BadValueError as error:
        findings.add(Code.BAD_QUANTITY, loc, error.message, help=error.help)
        return DROP
    if cpus is None:
        return None
    millis = millicores(cpus)
    if millis != cpus * 1000:
        findings.add(Code.ROUNDED, loc, f"{value} is finer than a millicore; the draft says {millis}m")
    return millis


def _resources(value: Any, loc: Loc, findings: Findings) -> Any:
    """Read extra resources: counts of accelerators, None for what is taken away."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        shape = "Write one resource a line, such as nvidia.com/gpu: 1."
        findings.add(
            Code.WRONG_SHAPE, loc, f"resources are a mapping of name to number, not {value!r}", help=shape
        )
        return DROP
    counts: dict[str, int | None] = {}
    for name, amount in value.items():
        place = (*loc, name)
        if isinstance(amount, Mapping | list):
            message = "a resource has a number; a dotted name that --set took apart becomes a mapping"
            findings.add(Code.WRONG_SHAPE, place, message, help=r"Escape the dots: nvidia\.com/gpu=1.")
        elif not is_accelerator(str(name)):
            findings.add(Code.NOT_CARRIED, place, f"the catalog has no words for {name}", help=HUB_HELP)
        elif (meant := _resource_name(name, place, findings)) and amount is None:
            counts[meant] = None
        elif meant:
            try:
                counts[meant] = parse_count(amount)
            except BadValueError as error:
                findings.add(Code.BAD_QUANTITY, place, error.message, help=error.help)
    return counts


def _resource_name(name: str, place: Loc, findings: Findings) -> str:
    """Give the name that was meant; empty if it is none."""
    if is_label_key(name):
        return name
    meant = dotted(name) if is_label_key(dotted(name)) else ""
    remedy = PLUS_HELP.format(name=meant) if meant else ""
    findings.add(Code.BAD_NAME, place, f"{name!r} is not a resource name", help=remedy)
    return meant


def _tolerations(value: Any, loc: Loc, findings: Findings) -> Any:
    items = [value[key] for key in sorted(value)] if isinstance(value, Mapping) else value
    if not isinstance(items, list):
        findings.add(Code.WRONG_SHAPE, loc, f"a list of tolerations, not {value!r}")
        return DROP
    if isinstance(value, list) and value:
        message = "KubeSpawner replaces the hub's tolerations by this list; the catalog adds to them"
        findings.add(Code.ADDED_NOT_REPLACED, loc, message)
    read = []
    for number, item in enumerate(items):
        try:
            toleration = Toleration.model_validate(item)
        except ValidationError as error:
            problem = error.errors()[0]
            findings.add(Code.WRONG_SHAPE, (*loc, number), f"not a toleration: {problem['msg']}")
            continue
        read.append(toleration.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True))
    return read


def _items(*texts: str) -> Reader:
    """Read volumes or mounts: a list, or a mapping that KubeSpawner sorts by its keys."""

    def read(value: Any, loc: Loc, findings: Findings) -> Any:
        items = [value[key] for key in sorted(value)] if isinstance(value, Mapping) else value
        if not isinstance(items, list):
            findings.add(Code.WRONG_SHAPE, loc, f"a list of mappings, not {value!r}")
            return DROP
        right = []
        for number, item in enumerate(items):
            if isinstance(item, Mapping) and all(isinstance(item.get(key), str) for key in texts):
                right.append(dict(item) | {"#": (*loc, number)})
            else:
                findings.add(
                    Code.WRONG_SHAPE, (*loc, number), f"a mapping with {' and '.join(texts)}, not {item!r}"
                )
        return right

    return read


def _pull_secrets(value: Any, loc: Loc, findings: Findings) -> Any:
    items = value if isinstance(value, list) else [] if value is None else [None]
    names = [item.get("name") if isinstance(item, Mapping) else item for item in items]
    if all(isinstance(name, str) for name in names):
        return names
    findings.add(Code.WRONG_SHAPE, loc, f"a list of names, not {value!r}")
    return DROP


def _command(value: Any, loc: Loc, findings: Findings) -> Any:
    words = [value] if isinstance(value, str) else value
    if words is None or (isinstance(words, list) and all(isinstance(word, str) and word for word in words)):
        return words or []
    findings.add(Code.WRONG_SHAPE, loc, f"a command, not {value!r}")
    return DROP


def _of(kind: type, what: str) -> Reader:
    def read(value: Any, loc: Loc, findings: Findings) -> Any:
        right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if value is None or (right and not (isinstance(value, str) and has_fields(value))):
            return value
        findings.add(Code.WRONG_SHAPE, loc, f"{what}, not {value!r}")
        return DROP

    return read


_TEXT: Final = _of(str, "a plain text")
_NUMBER: Final = _of(int, "a whole number")

READERS: Final[Mapping[str, Reader]] = {
    "image": _image,
    "image_pull_secrets": _pull_secrets,
    "cmd": _command,
    "default_url": _TEXT,
    "cpu_guarantee": _cpu,
    "cpu_limit": _cpu,
    "mem_guarantee": _memory,
    "mem_limit": _memory,
    "extra_resource_guarantees": _resources,
    "extra_resource_limits": _resources,
    "node_selector": read_labels,
    "tolerations": _tolerations,
    "environment": read_environment,
    "extra_labels": read_labels,
    "extra_annotations": read_annotations,
    "volumes": _items("name"),
    "volume_mounts": _items("name", "mountPath"),
    "runtime_class": _TEXT,
    "priority_class_name": _TEXT,
    "scheduler_name": _TEXT,
    "service_account": _TEXT,
    "automount_service_account_token": _of(bool, "true or false"),
    "allow_privilege_escalation": _of(bool, "true or false"),
    "uid": _NUMBER,
    "gid": _NUMBER,
    "fs_gid": _NUMBER,
    "start_timeout": _NUMBER,
}
"""How each setting is read that the catalog has words for."""

_EXTRA: Final = {
    "volumes": "volumes",
    "volumeMounts": "volume_mounts",
    "tolerations": "tolerations",
    "runtimeClassName": "runtime_class",
    "priorityClassName": "priority_class_name",
    "schedulerName": "scheduler_name",
}
"""Keys of a raw pod or container, and the settings that they are."""


def merge(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    """Put one set of overrides on another by KubeSpawner's rules.

    A mapping on a mapping is merged and `None` takes a key away; anything else replaces.
    Source: `KubeSpawner._apply_overrides`, `kubespawner.utils.recursive_update`.
    """
    merged = dict(base)
    for key, value in top.items():
        inner = merged.get(key)
        if isinstance(value, Mapping) and isinstance(inner, Mapping):
            kept = {k: v for k, v in (dict(inner) | dict(value)).items() if v is not None}
            merged[key] = kept
        else:
            merged[key] = value
    return merged
