"""Every workspace that can be reached: its GPUs, its memory, its volumes.

Sources: Kubernetes "Schedule GPUs" (whole numbers, request equals limit), NVIDIA device plugin README.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from ...gpu.products import find_card
from ...gpu.sharing import Sharing
from ...units import gib
from ..codes import Code
from ..gpus import slice_of
from ..model import Gpu, GpuRequest, MigGpu, Profile, Resources, State
from ..problems import Loc, Problem
from .context import Context, Variant
from .pools import unknown_slice

MOST_ON_A_NODE: Final = 16
"""Cards in the largest machines that are sold."""

MOST_PROCESSORS: Final = 384
"""Hardware threads of the largest machines with GPUs."""

_AMOUNT: Final = r"([0-9]+(?:[.,][0-9]+)?)\s*Gi?B"
_OF_A_CARD: Final = r"(?:(?:GPU|graphics|video)[ -]?(?:memory|RAM)|VRAM|HBM|GPU|card)"
_PROMISE: Final = re.compile(
    rf"{_AMOUNT}\s+(?:of\s+)?{_OF_A_CARD}\b|\b{_OF_A_CARD}(?:\s+with\s+|[: ]+|\s*\(){_AMOUNT}", re.I
)
_WHOLE: Final = 0.9
"""Part of a card's memory from which on a text speaks of the card and not of a share."""


def check_variants(context: Context) -> Iterator[Problem]:
    """Look at each outcome of each profile; a fault that all outcomes share is said once, without picks."""
    for loc, profile in context.profiles():
        variants = context.variants(profile)
        for check in _CHECKS:
            found: dict[tuple[Code, str, str], list[tuple[Variant, Problem]]] = {}
            for variant in variants:
                for problem in check(context, variant):
                    key = (problem.code, problem.message, problem.help)
                    found.setdefault(key, []).append((variant, problem))
            for cases in found.values():
                failing = [variant for variant, _ in cases]
                yield _at_profile(loc, profile, cases[0][1], picks=_reason(failing, variants))


def _reason(failing: list[Variant], variants: Sequence[Variant]) -> dict[str, str]:
    """Give those picks of the first failing variant without which it would not fail."""
    picks = dict(failing[0].picks)
    for name in failing[0].picks:
        others = {key: value for key, value in picks.items() if key != name}
        alike = [variant for variant in variants if others.items() <= variant.picks.items()]
        if all(variant in failing for variant in alike):
            picks = others
    return picks


def _at_profile(loc: Loc, profile: Profile, problem: Problem, *, picks: Mapping[str, str]) -> Problem:
    where = ", ".join(f"{name}={pick}" for name, pick in picks.items())
    return Problem(
        code=problem.code,
        message=f"{profile.label}{f' with {where}' if where else ''}: {problem.message}",
        loc=(*loc, *problem.loc),
        help=problem.help,
    )


def _gpu(context: Context, variant: Variant) -> Iterator[Problem]:
    request = variant.resources.gpu
    if request is None:
        yield from _cpu_only(context, variant.resources)
        return
    loc: Loc = ("resources", "gpu")
    if variant.resources.pool not in {None, request.pool}:
        yield Problem(
            code=Code.POOL_TWICE,
            message=f"the pool is {variant.resources.pool} and the GPUs come from {request.pool}",
            loc=("resources", "pool"),
            help="Leave out resources.pool: GPUs decide the place.",
        )
    pool = context.catalog.pools.get(request.pool)
    if pool is None:
        return
    if pool.gpu is None:
        yield Problem(
            code=Code.POOL_WITHOUT_GPU,
            message=f"the pool {request.pool} has no GPU",
            loc=(*loc, "pool"),
            help="Name a pool with gpu, or write resources.pool for a workspace without GPU.",
        )
        return
    if pool.gpu.via == "dra":
        yield Problem(
            code=Code.DRA_USED,
            message=f"GPUs of {request.pool} are had by resource claims, which are not supported yet",
            loc=(*loc, "pool"),
            help="Name a pool that the device plugin serves.",
        )
        return
    yield from _count(loc, pool.gpu, request)
    yield from _slice(loc, pool.gpu, request)


def _cpu_only(context: Context, resources: Resources) -> Iterator[Problem]:
    pool = context.catalog.pools.get(resources.pool or "")
    if pool is not None and pool.gpu is not None:
        yield Problem(
            code=Code.POOL_IS_GPU,
            message=f"no GPU is asked for, and {resources.pool} is a place with GPUs",
            loc=("resources", "pool"),
            help="Name a pool without GPU.",
        )


def _count(loc: Loc, gpu: Gpu, request: GpuRequest) -> Iterator[Problem]:
    count, place = request.count, (*loc, "count")
    if count < 1:
        yield Problem(
            code=Code.GPU_COUNT,
            message="no GPU at all",
            loc=place,
            help="Leave out gpu for a workspace without.",
        )
    elif gpu.sharing.is_share and count > 1:
        yield Problem(
            code=Code.SHARE_COUNT,
            message=f"{count} shares are not {count} times the GPU, and the device plugin refuses them",
            loc=place,
            help="Write 1; for more of a card use an exclusive or MIG pool.",
        )
    elif (most := _per_node(gpu, request)) is not None and count > most:
        yield Problem(
            code=Code.GPU_COUNT_NODE,
            message=f"{count} are asked for and a node has {most}",
            loc=place,
            help="A workspace runs on one node; ask for less.",
        )
    elif count > MOST_ON_A_NODE:
        yield Problem(
            code=Code.GPU_COUNT_LARGE,
            message=f"{count} GPUs are more than any machine has",
            loc=place,
            help="Ki means 1024; write a plain number.",
        )


def _per_node(gpu: Gpu, request: GpuRequest) -> int | None:
    if gpu.per_node is None:
        return None
    if isinstance(gpu, MigGpu):
        return gpu.per_node * gpu.geometry.get(slice_of(gpu, request), 0) or None
    return gpu.per_node


def _slice(loc: Loc, gpu: Gpu, request: GpuRequest) -> Iterator[Problem]:
    place = (*loc, "slice")
    if not isinstance(gpu, MigGpu):
        if request.slice is not None:
            yield Problem(
                code=Code.MIG_SLICE_MISPLACED,
                message=f"the pool {request.pool} is not cut by MIG",
                loc=place,
                help="Remove slice, or name a pool with sharing: mig.",
            )
        return
    have = ", ".join(gpu.geometry)
    name = slice_of(gpu, request)
    if not name:
        yield Problem(
            code=Code.MIG_SLICE_MISSING,
            message=f"{request.pool} has slices of several sizes",
            loc=loc,
            help=f"Write slice, one of {have}.",
        )
    elif name not in gpu.geometry:
        card = find_card(gpu.product)
        if card is not None and card.mig is not None and card.mig.find(name) is None:
            yield unknown_slice(place, name, card)
        else:
            kin = [other for other in gpu.geometry if other.split("+")[0] == name.split("+")[0]]
            yield Problem(
                code=Code.MIG_SLICE_ABSENT,
                message=f"{request.pool} has no slices of {name}",
                loc=place,
                help=f"Did you mean {kin[0]}?" if kin else f"It has {have}.",
            )
    elif request.count > 1:
        yield Problem(
            code=Code.MIG_MANY,
            message=f"{request.count} slices: one program can use one of them",
            loc=(*loc, "count"),
            help="Use one larger slice, unless several programs run side by side.",
        )


def _limits(context: Context, variant: Variant) -> Iterator[Problem]:
    del context
    cpu, memory = variant.resources.cpu, variant.resources.memory
    if cpu.request > MOST_PROCESSORS * 1000:
        number = cpu.request // 1000
        yield Problem(
            code=Code.CPU_LARGE,
            message=f"{number} processors are more than a machine has",
            loc=("resources", "cpu"),
            help=f"Write {number}m for {number} thousandths of one.",
        )
    for key, amount in (("cpu", cpu), ("memory", memory)):
        if amount.limit is not None and amount.limit < amount.request:
            yield Problem(
                code=Code.LIMIT_BELOW_REQUEST,
                message=f"the {key} limit is below the request",
                loc=("resources", key, "limit"),
                help="Raise the limit or lower the request.",
            )
    if memory.limit is None:
        yield Problem(
            code=Code.MEMORY_UNLIMITED,
            message="no memory limit",
            loc=("resources", "memory"),
            help="Write a limit, unless the workspace has its node for itself.",
        )
    shared = variant.storage.shared_memory
    if shared is not None and memory.limit is not None and shared >= memory.limit:
        yield Problem(
            code=Code.SHARED_MEMORY_LARGE,
            message=f"shared memory of {gib(shared)} counts towards the memory limit of {gib(memory.limit)}",
            loc=("storage", "sharedMemory"),
            help="Make it smaller, or the limit larger.",
        )


_CHECKS: Final[tuple[Callable[[Context, Variant], Iterator[Problem]], ...]] = (_gpu, _limits)


def check_promises(context: Context) -> Iterator[Problem]:
    """A share has no memory of its own, whatever its text says (MPS caps the memory and may name it)."""
    for loc, profile in context.profiles():
        if profile.state is State.RETIRED:
            continue
        said: set[Loc] = set()
        for variant in context.variants(profile):
            gpu = _time_sliced(context, variant)
            for place, text in _texts(profile, variant) if gpu else ():
                promise = _promise(text, gpu.product if gpu else None)
                if promise and place not in said:
                    said.add(place)
                    yield Problem(
                        code=Code.SHARE_MEMORY_PROMISE,
                        message=f"{profile.label}: {promise!r} cannot be promised on a time-sliced card",
                        loc=(*loc, *place),
                        help="Take it out, or use MIG (own memory) or MPS (memory capped).",
                    )


def _texts(profile: Profile, variant: Variant) -> Iterator[tuple[Loc, str]]:
    """Give what users read about one outcome."""
    yield ("displayName",), profile.display_name
    yield ("description",), profile.description
    for name, pick in variant.picks.items():
        option = profile.questions[name].options[pick]
        place: Loc = ("choices", name, "options", pick)
        yield (*place, "displayName"), option.display_name
        yield (*place, "description"), option.description


def _promise(text: str, product: str | None) -> str:
    """Find an amount of GPU memory in a text, unless it is that of the whole card."""
    card = find_card(product) if product else None
    for match in _PROMISE.finditer(text):
        amount = float((match[1] or match[2]).replace(",", "."))
        if card is None or amount < card.memory_gb * _WHOLE:
            return match[0]
    return ""


def _time_sliced(context: Context, variant: Variant) -> Gpu | None:
    request = variant.resources.gpu
    pool = context.catalog.pools.get(request.pool) if request else None
    gpu = pool.gpu if pool else None
    return gpu if gpu is not None and gpu.sharing is Sharing.TIME_SLICING else None
