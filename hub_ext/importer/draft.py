"""The draft catalog.

Pure: no clock, no network.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

from ..catalog.expand import IMAGE_CHOICE
from ..catalog.model import API_VERSION, KIND
from ..catalog.problems import Loc
from ..errors import Finding
from ..names import is_dns_label
from ..units import format_bytes, format_cpu
from .codes import Code, Findings
from .entries import Choice, Entry, Question, default_entry, read_entries
from .facts import Facts
from .images import Images, home_of
from .names import key_of, name_of
from .pools import Pools
from .scene import Picks, Scene, changed_aspects
from .settings import read_placed
from .values import Hub, find_hub, locate, merge_files, read_files, report_yaml

SMALL: Final = (100, 256 * 1024**2)
"""Millicores and bytes that are put in where nothing is reserved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """One combination of choices of the old list, and what its pod asked for."""

    loc: Loc
    profile: str
    """Name in the draft."""
    picks: Picks
    """In the draft's names."""
    facts: Facts
    """With an image, if need be the hub's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What came of an import."""

    catalog: dict[str, Any]
    """Empty if there is no profile list."""
    findings: tuple[Finding, ...]
    combinations: tuple[Combination, ...] = ()


def import_values(texts: Sequence[tuple[str, str]], *, image: str | None = None) -> Draft:
    """Make a draft catalog of values files, given by name and text, the later ones over the earlier.

    Parameters
    ----------
    image
        What runs where neither a profile nor the values name an image.
    """
    findings = Findings(lambda _: (None, None))
    files = read_files(texts, findings)
    findings.locate = lambda loc: locate(files, loc)
    hub = find_hub(merge_files(files, findings), findings) if files else None
    if hub is None:
        return Draft(catalog={}, findings=tuple(findings.found))
    report_yaml(files, hub.loc, findings)
    entries = read_entries(hub.profiles, hub.loc, findings)
    writer = _Writer(hub, findings, image)
    catalog = writer.write(entries)
    return Draft(catalog=catalog, findings=tuple(findings.found), combinations=tuple(writer.combinations))


class _Writer:
    """Writes profile after profile and keeps what they share."""

    def __init__(self, hub: Hub, findings: Findings, image: str | None) -> None:
        self._hub = hub
        self._findings = findings
        self._image_named = image
        self._settings = read_placed(hub.settings, findings)
        self._pools = Pools(findings)
        self._images = Images()
        self._names: dict[str, None] = {}
        self.combinations: list[Combination] = []

    def write(self, entries: Sequence[Entry]) -> dict[str, Any]:
        profiles = [self._profile(entry) for entry in entries]
        default = default_entry(list(entries))
        names = [profile["name"] for profile in profiles]
        catalog: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND, "images": self._images.as_data()}
        pools = self._pools.as_data()
        if pools:
            catalog["pools"] = pools
        sets = _share_choices(profiles)
        if sets:
            catalog["optionSets"] = sets
        if default is not None:
            catalog["defaults"] = {"profile": f"{names[entries.index(default)]}@latest"}
        return catalog | {"profiles": profiles}

    def _profile(self, entry: Entry) -> dict[str, Any]:
        name = self._name(entry)
        scene = Scene(entry, self._settings, self._hub, self._findings)
        facts = scene.facts({})
        profile: dict[str, Any] = {"name": name, "version": 1, "displayName": entry.title}
        if entry.description:
            profile["description"] = entry.description
        profile["images"] = [self._image(facts, entry.loc)]
        profile["resources"] = self._resources(facts, entry, entry.loc)
        keys: dict[str, str] = {}
        choices = {}
        for question in entry.questions.values():
            keys[question.key] = self._question_key(question, keys)
            choices[keys[question.key]] = self._choice(scene, question)
        profile |= _filled({"choices": choices, "storage": facts.storage, "environment": scene.common()})
        profile |= _filled({"labels": dict(facts.labels), "annotations": dict(facts.annotations)})
        profile |= _filled({"security": dict(facts.security), "access": entry.access})
        if facts.start_timeout:
            profile["session"] = {"startTimeout": f"{facts.start_timeout}s"}
        self._remember(scene, name, keys)
        return profile

    def _name(self, entry: Entry) -> str:
        usable = is_dns_label(entry.slug) and entry.slug not in self._names
        name = entry.slug if usable else name_of(entry.slug or entry.title, self._names)
        if name != entry.slug and entry.slug:
            message = f"the slug {entry.slug!r} became {name}"
            self._findings.add(
                Code.RENAMED, entry.loc, message, help="Links and API clients use the new name."
            )
        self._names[name] = None
        return name

    def _question_key(self, question: Question, keys: Mapping[str, str]) -> str:
        typed = question.unlisted is not None and IMAGE_CHOICE not in keys.values()
        key = IMAGE_CHOICE if typed and question.key != IMAGE_CHOICE else key_of(question.key, keys.values())
        if key != question.key:
            self._findings.add(Code.RENAMED, question.loc, f"the option {question.key!r} became {key}")
        return key

    def _image(self, facts: Facts, loc: Loc, title: str = "") -> str:
        if facts.image is None and self._image_named is None:
            message = f"no image is named; the draft takes {self._hub.image}"
            self._findings.add(Code.NOT_STATED, loc, message, help="Name the hub's image with --image.")
        return self._images.add(facts, self._image_named or self._hub.image, title)

    def _resources(self, facts: Facts, entry: Entry, loc: Loc) -> dict[str, Any]:
        amounts = {"cpu": self._cpu(facts, loc), "memory": self._memory(facts, loc)}
        return amounts | self._placement(facts, entry, loc)

    def _changed_resources(
        self, facts: Facts, entry: Entry, loc: Loc, changed: frozenset[str]
    ) -> dict[str, Any]:
        written: dict[str, Any] = {}
        if "cpu" in changed:
            written["cpu"] = self._cpu(facts, loc)
        if "memory" in changed:
            written["memory"] = self._memory(facts, loc)
        if "gpu" in changed:
            written |= {"gpu": None, "pool": None} | self._placement(facts, entry, loc)
        return written

    def _placement(self, facts: Facts, entry: Entry, loc: Loc) -> dict[str, Any]:
        if len(facts.accelerators) > 1:
            kinds = " and ".join(name for name, _ in facts.accelerators)
            message = f"the pod asked for {kinds}; the draft asks for {facts.accelerators[-1][0]}"
            self._findings.add(Code.TWO_ACCELERATORS, loc, message)
        for name, guarantee, limit in facts.unequal:
            message = (
                f"{guarantee} of {name} guaranteed, with {'no limit' if limit is None else f'limit {limit}'}"
            )
            remedy = f"Write the limit alone; the draft asks for {guarantee if limit is None else limit}."
            self._findings.add(Code.GUARANTEE_DIFFERS, loc, message, help=remedy)
        return self._pools.add(facts.place, facts.gpu, entry.title, loc)

    def _cpu(self, facts: Facts, loc: Loc) -> dict[str, str]:
        request, limit = facts.cpu
        if request is None:
            request = SMALL[0]
            message = f"no processors are reserved; the draft reserves {format_cpu(request)}"
            self._findings.add(Code.NOT_STATED, loc, message, help="Set resources.cpu.request.")
        return {"request": format_cpu(request)} | ({"limit": format_cpu(limit)} if limit else {})

    def _memory(self, facts: Facts, loc: Loc) -> dict[str, str]:
        request, limit = facts.memory
        if request is None:
            request = SMALL[1]
            message = f"no memory is reserved; the draft reserves {format_bytes(request)}"
            self._findings.add(Code.NOT_STATED, loc, message, help="Set resources.memory.request.")
        return {"request": format_bytes(request)} | ({"limit": format_bytes(limit)} if limit else {})

    def _choice(self, scene: Scene, question: Question) -> dict[str, Any]:
        every = {key: scene.facts({question.key: key}) for key in question.choices}
        changed = changed_aspects(every.values())
        options: dict[str, Any] = {}
        for key, choice in question.choices.items():
            option = self._option(scene, question, choice, every[key], changed)
            options[self._option_key(choice, options)] = option
        default = question.default and key_of(question.default, ())
        written: dict[str, Any] = {"displayName": question.title}
        written |= _filled({"description": question.description, "options": options, "default": default})
        if question.unlisted is not None:
            written |= self._typed(question, every)
        return written

    def _option_key(self, choice: Choice, taken: Mapping[str, Any]) -> str:
        key = key_of(choice.key, taken)
        if key != choice.key:
            self._findings.add(Code.RENAMED, choice.loc, f"the choice {choice.key!r} became {key}")
        return key

    def _option(
        self, scene: Scene, question: Question, choice: Choice, facts: Facts, changed: frozenset[str]
    ) -> dict[str, Any]:
        option: dict[str, Any] = {"displayName": choice.title} | _filled({"description": choice.description})
        if "image" in changed:
            option["image"] = self._image(facts, choice.loc, choice.title if changed == {"image"} else "")
        option |= _filled({"resources": self._changed_resources(facts, scene.entry, choice.loc, changed)})
        option |= _filled({"environment": scene.own_environment(question, facts)})
        if "storage" in changed:
            option |= _filled({"storage": facts.storage})
        if choice.groups is not None:
            option["access"] = {"groups": list(choice.groups)}
        for aspect in sorted(changed & {"labels", "annotations", "security", "session"}):
            message = f"a choice cannot change the {aspect} of a workspace"
            self._findings.add(Code.NOT_CARRIED, choice.loc, message, help="Make it a profile of its own.")
        return option

    def _typed(self, question: Question, every: Mapping[str, Facts]) -> dict[str, Any]:
        unlisted = question.unlisted
        if unlisted is None or unlisted.override.get("image") != "{value}":
            loc = unlisted.loc if unlisted else question.loc
            self._findings.add(Code.NOT_CARRIED, loc, "only a whole image reference can be typed")
            return {}
        for key in unlisted.override.keys() - {"image"}:
            message = f"a typed image changes nothing else; {key} is left out"
            self._findings.add(Code.NOT_CARRIED, (*unlisted.loc, "kubespawner_override", key), message)
        homes = dict.fromkeys(home_of(facts.image) for facts in every.values() if facts.image)
        self._findings.add(
            Code.NOT_STATED,
            unlisted.loc,
            f"any image could be typed; the draft takes those of {', '.join(homes) or 'nowhere'}",
            help="List every registry that people may take images from under custom.registries.",
        )
        custom: dict[str, Any] = {"registries": list(homes), "allowTag": True}
        custom |= _filled({"displayName": unlisted.title, "help": unlisted.help})
        return {"custom": custom} if homes else {}

    def _remember(self, scene: Scene, name: str, keys: Mapping[str, str]) -> None:
        questions = scene.entry.questions
        for number, picked in enumerate(product(*(question.choices for question in questions.values()))):
            if number >= MOST_COMBINATIONS:
                break
            picks = dict(zip(questions, picked, strict=True))
            drafted = {keys[key]: key_of(pick, ()) for key, pick in picks.items()}
            facts = scene.facts(picks)
            facts = replace(facts, image=facts.image or self._image_named or self._hub.image)
            self.combinations.append(
                Combination(loc=scene.entry.loc, profile=name, picks=drafted, facts=facts)
            )


MOST_COMBINATIONS: Final = 500
"""Combinations of one profile that are compared with the draft."""


def _filled(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value}


def _share_choices(profiles: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Move choices that several profiles write in the same words into option sets."""
    uses: dict[str, list[tuple[dict[str, Any], str]]] = {}
    for profile in profiles:
        for key, choice in profile.get("choices", {}).items():
            uses.setdefault(json.dumps([key, choice]), []).append((profile, key))
    sets: dict[str, Any] = {}
    for written, users in uses.items():
        if len(users) < 2:
            continue
        key, choice = json.loads(written)
        name = key_of(key, sets)
        sets[name] = choice
        for profile, question in users:
            profile["choices"][question] = name
    return sets
