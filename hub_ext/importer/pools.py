"""Pools of the draft: each different placement, and what a GPU seems to be there.

Pure: no clock, no network.
"""

import re
from dataclasses import dataclass, field
from typing import Any, Final

from ..catalog.problems import Loc
from ..gpu.mig import is_mig_profile, max_count
from ..gpu.products import cards_with, find_card, split_product
from ..gpu.resources import MIG_PREFIX, NVIDIA_GPU, SHARED_SUFFIX
from .codes import Code, Findings
from .facts import Place
from .names import name_of

PRODUCT_LABEL: Final = "nvidia.com/gpu.product"
_FRACTION: Final = re.compile(
    r"(?<![\d.])(?:0?\.(?P<decimal>\d+)|1/(?P<part>\d+)|(?P<half>half)(?: an?)?)\s*x?\s*"
    r"(?:nvidia|tesla|gpu|card|[tavlh]\d{1,3}\b)",
    re.IGNORECASE,
)
"""Words such as `0.5 T4` or `half a card`: the card is shared, whatever its resource is called."""

MIG: Final = "mig"


@dataclass(slots=True, kw_only=True)
class PoolDraft:
    """A pool in the making."""

    name: str
    loc: Loc
    place: Place
    kind: str
    """Resource name, `mig` for slices of any size, empty for processors only."""
    shares: int = 0
    """Shares per card that a profile's title speaks of; zero for none."""
    slices: dict[str, None] = field(default_factory=dict)


class Pools:
    """Collects the placements of all profiles."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._drafts: dict[tuple[Place, str, int], PoolDraft] = {}

    def add(self, place: Place, gpu: tuple[str, int] | None, title: str, loc: Loc) -> dict[str, Any]:
        """Give the resources that lead to a placement: ``{gpu: …}``, ``{pool: …}`` or nothing."""
        if gpu is None:
            return {} if place.says_nothing else {"pool": self._draft(place, "", 0, loc).name}
        resource, count = gpu
        slice_name = _slice(resource)
        shares = shares_in(title) if resource.startswith(NVIDIA_GPU) and not slice_name else 0
        draft = self._draft(place, MIG if slice_name else resource, shares, loc)
        request: dict[str, Any] = {"pool": draft.name, "count": count}
        if slice_name:
            draft.slices[slice_name] = None
            request["slice"] = slice_name
        return {"gpu": request}

    def as_data(self) -> dict[str, Any]:
        """Write all pools in the catalog's words."""
        return {draft.name: self._pool(draft) for draft in self._drafts.values()}

    def _draft(self, place: Place, kind: str, shares: int, loc: Loc) -> PoolDraft:
        key = (place, kind, shares)
        if key not in self._drafts:
            taken = {draft.name for draft in self._drafts.values()}
            name = name_of(_title(place, kind), taken)
            self._drafts[key] = PoolDraft(name=name, loc=loc, place=place, kind=kind, shares=shares)
        return self._drafts[key]

    def _pool(self, draft: PoolDraft) -> dict[str, Any]:
        place = draft.place
        pool: dict[str, Any] = {}
        if place.node_selector:
            pool["nodeSelector"] = dict(place.node_selector)
        if place.tolerations:
            pool["tolerations"] = [dict(items) for items in place.tolerations]
        named = {
            "runtimeClass": place.runtime_class,
            "priorityClass": place.priority_class,
            "scheduler": place.scheduler,
        }
        pool |= {key: name for key, name in named.items() if name}
        if draft.kind:
            pool["gpu"] = self._gpu(draft)
        return pool

    def _gpu(self, draft: PoolDraft) -> dict[str, Any]:
        label = dict(draft.place.node_selector).get(PRODUCT_LABEL, "")
        product = {"product": split_product(label)[0]} if label else {}
        if draft.kind == MIG:
            return self._mig(draft, product)
        if draft.kind == NVIDIA_GPU + SHARED_SUFFIX or draft.shares:
            return self._shared(draft, product)
        if draft.kind != NVIDIA_GPU:
            return product | {"sharing": "exclusive", "resourceName": draft.kind}
        message = f"{NVIDIA_GPU} may be a whole card or a share of one; the draft says a whole card"
        remedy = "If the device plugin shares these cards, set sharing: time-slicing and replicas."
        self._findings.add(Code.GUESSED, draft.loc, message, help=remedy)
        return product | {"sharing": "exclusive"}

    def _shared(self, draft: PoolDraft, product: dict[str, str]) -> dict[str, Any]:
        renamed = draft.kind.endswith(SHARED_SUFFIX)
        replicas = max(2, draft.shares)
        told = "the title speaks of a part of a card" if draft.shares else "how many shares is not known"
        remedy = "Set replicas to what the device plugin is configured with."
        message = f"{told}; the draft says time-slicing with {replicas} shares"
        self._findings.add(Code.GUESSED, draft.loc, message, help=remedy)
        shared: dict[str, Any] = {"sharing": "time-slicing", "replicas": replicas}
        return product | shared | ({"renameByDefault": True} if renamed else {})

    def _mig(self, draft: PoolDraft, product: dict[str, str]) -> dict[str, Any]:
        card = find_card(product.get("product", ""))
        known = [c for c in cards_with(next(iter(draft.slices))) if card is None or c == card]
        guessed = card or next(iter(known), None)
        layout = guessed.mig if guessed else None
        geometry = {name: max_count(layout, name) if layout else 1 for name in draft.slices}
        if len(geometry) > 1:
            geometry = dict.fromkeys(geometry, 1)
        name = product.get("product") or (
            f"NVIDIA-{guessed.name.replace(' ', '-')}" if guessed else "NVIDIA-GPU"
        )
        self._findings.add(
            Code.GUESSED,
            draft.loc,
            f"how the cards are cut is not known; the draft says {name} cut into {_listed(geometry)}",
            help="Write the product as in the node label nvidia.com/gpu.product, and the cut per card.",
        )
        return {"product": name, "sharing": "mig", "strategy": "mixed", "geometry": geometry}


def _listed(geometry: dict[str, int]) -> str:
    return ", ".join(f"{count} x {name}" for name, count in geometry.items())


def _slice(resource: str) -> str:
    """Give the MIG profile of a resource name, empty for another kind of resource."""
    name = resource.removeprefix(MIG_PREFIX)
    if name == resource:
        return ""
    dotted = re.sub(r"\.(me|gfx)", r"+\1", name)
    return dotted if is_mig_profile(dotted) else name


def shares_in(title: str) -> int:
    """Give the shares per card that a title speaks of: `0.5 T4` is 2; zero if it does not."""
    match = _FRACTION.search(title)
    if match is None:
        return 0
    if match["half"]:
        return 2
    if match["part"]:
        return int(match["part"])
    part = float(f"0.{match['decimal']}")
    return round(1 / part) if 0 < part < 1 else 0


def _title(place: Place, kind: str) -> str:
    """Name a pool after its GPU and the last word of its selector."""
    words = [value.rpartition("/")[2] for _, value in place.node_selector if value not in {"", "true"}]
    words = words or [key.rpartition("/")[2] for key, _ in place.node_selector]
    gpu = "mig" if kind == MIG else "gpu" if kind else "cpu"
    parts = [word for word in words if word]
    return "-".join([gpu, *parts[-1:]]) if parts else gpu
