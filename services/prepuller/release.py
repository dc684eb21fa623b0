"""Which pins are let go, and what that frees.

Letting go deletes a pod, never an image: the kubelet removes the image when it needs the disk, unless a
workspace still runs from it. Nothing is let go on a mere guess: only with nodes and catalog in sight, and
only when it has been of no use for a while.

Pure: no clock, no network; `now` is the picture's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from .facts import canonical
from .picture import Pair, Picture, is_gone
from .pods import PullPod, Step
from .reasons import Removal
from .settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """One pod to delete now."""

    pod: PullPod
    why: Removal


def note_unneeded(picture: Picture, before: Mapping[str, datetime]) -> dict[str, datetime]:
    """Say since when pins are seen to be of no use, by uid of the pod."""
    return {
        pod.uid: before.get(pod.uid, picture.at)
        for pod in picture.pods
        if pod.step is Step.DONE and (pod.want, pod.node) not in picture.layout.places
    }


def drops(
    picture: Picture, settings: Settings, over: frozenset[Pair], unneeded: Mapping[str, datetime]
) -> Iterator[Drop]:
    """Give the pods to delete; those that are being deleted are not named again."""
    doubles = {pod.uid for pod in picture.doubles}
    for pod in picture.pods:
        why = Removal.DUPLICATE if pod.uid in doubles else _spent(pod, picture)
        if why is None and settings.release.enabled and pod.step is Step.DONE:
            since = unneeded.get(pod.uid)
            if (pod.want, pod.node) in over:
                why = Removal.OVER_BUDGET
            elif since is not None and picture.at - since >= settings.release.after:
                why = Removal.SUPERSEDED
        if why is not None and not pod.ending:
            yield Drop(pod=pod, why=why)


def _spent(pod: PullPod, picture: Picture) -> Removal | None:
    """Say why a pod pins nothing and never will."""
    if pod.step is Step.FAILED:
        return Removal.FAILED
    if pod.step is not Step.DONE:
        # It fetches what is not wanted any more: the disk and the registry have better to do.
        return None if (pod.want, pod.node) in picture.layout.places else Removal.SUPERSEDED
    return Removal.GONE if is_gone(pod, picture.machines.get(pod.node), picture.at) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Freed:
    """What letting go frees on one node, once its kubelet collects."""

    node: str
    images: tuple[str, ...]
    bytes: int | None
    """By the node's own list; None if it lists none of them."""


def freed(picture: Picture, unneeded: Mapping[str, datetime], over: frozenset[Pair]) -> tuple[Freed, ...]:
    """Say, for every node, what would be let go if no time had to pass: the dry run."""
    by_node: dict[str, list[PullPod]] = {}
    for pod in picture.pods:
        if pod.uid in unneeded or (pod.step is Step.DONE and (pod.want, pod.node) in over):
            by_node.setdefault(pod.node, []).append(pod)
    return tuple(_freed(node, pods, picture) for node, pods in sorted(by_node.items()))


def _freed(node: str, pods: list[PullPod], picture: Picture) -> Freed:
    machine = picture.machines.get(node)
    names = dict.fromkeys(pod.image for pod in pods)
    listed = machine.images if machine is not None else {}
    sizes = [listed[name] for image in names if (name := canonical(image)) in listed]
    return Freed(node=node, images=tuple(names), bytes=sum(sizes) if sizes else None)
