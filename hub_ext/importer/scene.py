"""The settings of one profile for any picks, and what its choices change.

Pure: no clock, no network.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ..catalog.problems import Loc
from .codes import Code, Findings
from .entries import Entry, Question
from .facts import Facts, read_facts
from .settings import clean, merge
from .values import Hub

Picks = Mapping[str, str]
"""Choice per question, in the words of the old list."""


class Scene:
    """The settings of one profile, for any picks; each override is read, and complained about, once."""

    def __init__(self, entry: Entry, hub: Mapping[str, Any], around: Hub, findings: Findings) -> None:
        self.entry = entry
        self._findings = findings
        own = clean(entry.override, (*entry.loc, "kubespawner_override"), findings)
        _check_removals(own, around, (*entry.loc, "kubespawner_override"), findings)
        self._base = merge(hub, own)
        self._choices = {
            (question.key, choice.key): clean(
                choice.override, (*choice.loc, "kubespawner_override"), findings
            )
            for question in entry.questions.values()
            for choice in question.choices.values()
        }

    def facts(self, picks: Picks) -> Facts:
        """Give what a server gets; questions that are not answered take their default."""
        settings = self._base
        for question in self.entry.questions.values():
            pick = picks.get(question.key) or question.default or next(iter(question.choices))
            settings = merge(settings, self._choices[question.key, pick])
        return read_facts(settings, self._findings)

    def common(self) -> dict[str, str]:
        """Give the variables that no choice touches."""
        touched = {key for question in self.entry.questions.values() for key in self._touched(question)}
        environment = read_facts(self._base, self._findings).environment
        return {key: value for key, value in environment.items() if key not in touched}

    def own_environment(self, question: Question, facts: Facts) -> dict[str, str]:
        """Give the variables that the choices of a question touch."""
        return {key: facts.environment[key] for key in self._touched(question) if key in facts.environment}

    def _touched(self, question: Question) -> list[str]:
        overrides = (self._choices[question.key, key] for key in question.choices)
        return list(dict.fromkeys(key for override in overrides for key in override.get("environment", {})))


def _check_removals(own: Mapping[str, Any], hub: Hub, loc: Loc, findings: Findings) -> None:
    for setting, keys in hub.keys.items():
        for key, value in (own.get(setting) or {}).items():
            if value is None and key in keys:
                message = f"the catalog cannot take away {key}, which the hub sets for all servers"
                findings.add(Code.NOT_CARRIED, (*loc, setting, key), message)


def changed_aspects(every: Iterable[Facts]) -> frozenset[str]:
    """Name the aspects in which the answers to a question differ."""
    seen = [
        {
            "image": (facts.image, facts.command, facts.default_url, facts.pull_secrets),
            "cpu": facts.cpu,
            "memory": facts.memory,
            "gpu": (facts.gpu, facts.unequal, facts.place),
            "storage": facts.storage,
            "labels": facts.labels,
            "annotations": facts.annotations,
            "security": facts.security,
            "session": facts.start_timeout,
        }
        for facts in every
    ]
    return frozenset(aspect for aspect in seen[0] if any(facts[aspect] != seen[0][aspect] for facts in seen))
