"""Pools: what they say about their GPUs must be possible, and the same on every node they reach.

Sources: NVIDIA device plugin README v0.18 to v0.20, GPU feature discovery (labels), NVIDIA MIG user guide.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...gpu.mig import MigLayout, fits, is_mig_profile, max_count, nearest, need
from ...gpu.products import Card, cards_with, find_card, is_misspelt, split_product
from ...gpu.resources import mig_resource
from ...gpu.sharing import Strategy
from ..codes import Code
from ..gpus import resources_of
from ..model import ExclusiveGpu, Gpu, MigGpu, MpsGpu, PartialResources, Pool, Resources, TimeSlicedGpu
from ..problems import Loc, Problem
from .context import Context

PRODUCT_LABEL: Final = "nvidia.com/gpu.product"


def check_gpus(context: Context) -> Iterator[Problem]:
    """What one pool says about its GPUs."""
    for name, pool in context.written.pools.items():
        yield from _check_scaling(("pools", name, "autoscaler"), pool)
        if pool.gpu is None:
            continue
        loc: Loc = ("pools", name, "gpu")
        yield from _check_claims(loc, pool.gpu)
        yield from _check_product(loc, pool.gpu)
        if isinstance(pool.gpu, MigGpu):
            yield from _check_mig(loc, pool.gpu)
        if isinstance(pool.gpu, TimeSlicedGpu | MpsGpu) and not pool.gpu.fail_requests_greater_than_one:
            yield Problem(
                code=Code.SHARE_NOT_STRICT,
                message="the device plugin would give one pod two shares of the same card",
                loc=(*loc, "failRequestsGreaterThanOne"),
                help="Write true here and in the device plugin's configuration.",
            )
        yield from _check_selector(("pools", name, "nodeSelector"), pool)


def _check_scaling(loc: Loc, pool: Pool) -> Iterator[Problem]:
    if pool.autoscaler is not None and pool.scale_up is None:
        yield Problem(
            code=Code.AUTOSCALER_IDLE,
            message="nothing says that nodes are added",
            loc=loc,
            help="Write scaleUp, the time that a new node takes.",
        )
    elif names := pool.unscaled(resources_of(pool.gpu) if pool.gpu else ()):
        yield Problem(
            code=Code.SCALE_UP_BLIND,
            message=f"Karpenter adds no node for {', '.join(names)}: it knows whole cards only",
            loc=loc,
            help="Keep such nodes up, use cluster-autoscaler with a node-template tag for the resource, or "
            "declare it in a NodeOverlay and leave out autoscaler.",
        )


def _check_claims(loc: Loc, gpu: Gpu) -> Iterator[Problem]:
    if gpu.via == "dra":
        yield Problem(
            code=Code.DRA_NOT_YET,
            message="GPUs by resource claims are not supported yet",
            loc=(*loc, "via"),
            help="Leave out via to use the device plugin. A DeviceClass with extendedResourceName keeps the "
            "resource names of this catalog working after a change to claims.",
        )
        return
    for key, value in (("deviceClass", gpu.device_class), ("select", gpu.select)):
        if value is not None:
            yield Problem(
                code=Code.DRA_KEYS, message=f"{key} belongs to via: dra", loc=(*loc, key), help="Remove it."
            )


def _check_product(loc: Loc, gpu: Gpu) -> Iterator[Problem]:
    if gpu.product is None:
        return
    plain, suffix = split_product(gpu.product)
    if suffix:
        yield Problem(
            code=Code.GPU_PRODUCT_SUFFIX,
            message=f"{suffix} says how the card is shared, not which card it is",
            loc=(*loc, "product"),
            help=f"Write {plain}.",
        )


def _check_mig(loc: Loc, gpu: MigGpu) -> Iterator[Problem]:
    if gpu.strategy is Strategy.SINGLE and len(gpu.geometry) > 1:
        yield Problem(
            code=Code.MIG_SINGLE,
            message=f"single needs slices of one size, here are {len(gpu.geometry)}",
            loc=(*loc, "geometry"),
            help="Use strategy: mixed, or slices of one size. The device plugin offers nothing otherwise.",
        )
    yield from _check_suffixes((*loc, "geometry"), gpu)
    card = find_card(gpu.product)
    if card is None or card.mig_unknown:
        unknown = [name for name in gpu.geometry if not is_mig_profile(name)]
        for name in unknown:
            yield Problem(
                code=Code.BAD_MIG_PROFILE,
                message=f"{name!r} is not a MIG profile",
                loc=(*loc, "geometry", name),
                help="Write compute and memory as the driver does, such as 1g.18gb or 1g.18gb+me.",
            )
        yield Problem(
            code=Code.MIG_NOT_CHECKED,
            message=f"{gpu.product} is not in the table, so its slices could not be checked",
            loc=(*loc, "product"),
            help="Write it exactly as the node label nvidia.com/gpu.product does, capitals included."
            if is_misspelt(gpu.product)
            else "Compare with nvidia-smi mig -lgip on the node.",
        )
    elif card.mig is None:
        yield Problem(
            code=Code.MIG_NOT_CAPABLE,
            message=f"{card.name} cannot be cut by MIG",
            loc=(*loc, "product"),
            help="Use sharing: time-slicing, mps or exclusive.",
        )
    else:
        yield from _check_geometry((*loc, "geometry"), gpu, card)


def _check_suffixes(loc: Loc, gpu: MigGpu) -> Iterator[Problem]:
    """Measured with device plugin 0.18.0: it takes the first profile whose name is a part of the slice's."""
    if gpu.strategy is Strategy.SINGLE:
        return
    for name in gpu.geometry:
        plain = name.partition("+")[0]
        if plain != name and is_mig_profile(name):
            yield Problem(
                code=Code.MIG_SUFFIX,
                message=f"device plugins before 0.20 offer {name} as {mig_resource(plain)}",
                loc=(*loc, name),
                help=f"Use 0.20 or newer, which offers {mig_resource(name)} as the catalog asks for it.",
            )


def _check_geometry(loc: Loc, gpu: MigGpu, card: Card) -> Iterator[Problem]:
    layout = card.mig
    if layout is None:
        return
    wrong = [name for name in gpu.geometry if layout.find(name) is None]
    for name in wrong:
        yield unknown_slice((*loc, name), name, card)
    for name, count in gpu.geometry.items():
        if count < 1:
            yield Problem(
                code=Code.BAD_VALUE, message=f"{count} slices of {name}", loc=(*loc, name), help="Remove it."
            )
    if not wrong and not fits(layout, gpu.geometry):
        wanted = " + ".join(f"{count} of {name}" for name, count in gpu.geometry.items())
        most = ", ".join(f"{name}: {max_count(layout, name)}" for name in gpu.geometry)
        yield Problem(
            code=Code.MIG_GEOMETRY,
            message=f"{wanted} do not fit on one {card.name}{_excess(layout, gpu)}",
            loc=loc,
            help=f"Each by itself, at most: {most}.",
        )


def _excess(layout: MigLayout, gpu: MigGpu) -> str:
    total = need(layout, gpu.geometry)
    pairs = (
        ("compute", total.compute, layout.compute_slices),
        ("memory", total.memory, layout.memory_slices),
        ("media", total.media, layout.media),
    )
    over = [f"{wanted} {what} slices of {have}" for what, wanted, have in pairs if wanted > have]
    return f": they need {' and '.join(over)}" if over else ": there is no place for all of them"


def unknown_slice(loc: Loc, name: str, card: Card) -> Problem:
    """Say that a card has no MIG profile of this name, and which was meant."""
    guess = nearest(card.mig, name) if card.mig else ""
    others = [other.name for other in cards_with(name)]
    owner = f" It is a slice of {', '.join(others[:3])}." if others else ""
    return Problem(
        code=Code.MIG_PROFILE,
        message=f"{card.name} has no MIG profile {name!r}",
        loc=loc,
        help=f"Did you mean {guess}?{owner}" if guess else owner.strip(),
    )


def _check_selector(loc: Loc, pool: Pool) -> Iterator[Problem]:
    """Feature discovery changes the product label of shared and single-strategy nodes."""
    value, gpu = pool.node_selector.get(PRODUCT_LABEL), pool.gpu
    if value is None or gpu is None or gpu.product is None:
        return
    expected = product_label(gpu)
    if value != expected:
        yield Problem(
            code=Code.SELECTOR_PRODUCT,
            message=f"nodes of this pool carry {PRODUCT_LABEL}: {expected}, not {value}",
            loc=(*loc, PRODUCT_LABEL),
            help=f"Write {expected}, or select by a label of your own.",
        )


def product_label(gpu: Gpu) -> str:
    """Give the product label that feature discovery puts on the nodes of a pool; empty for no product."""
    product = gpu.product or ""
    match gpu:
        case MigGpu() if gpu.strategy is Strategy.SINGLE and len(gpu.geometry) == 1:
            # The dot form is used in names of resources only; labels allow no plus sign.
            return f"{product}-MIG-{next(iter(gpu.geometry)).replace('+', '.')}"
        case TimeSlicedGpu() | MpsGpu() if product and not gpu.rename_by_default and not gpu.resource_name:
            return f"{product}-SHARED"
        case _:
            return product


def check_ambiguous(context: Context) -> Iterator[Problem]:
    """One resource name must mean one thing on the nodes that a workspace can reach."""
    pools = [(name, pool) for name, pool in context.written.pools.items() if pool.gpu is not None]
    for index, (name, pool) in enumerate(pools):
        for other_name, other in pools[:index]:
            shared = _same_names(pool.gpu, other.gpu)
            if shared and (_reaches(pool, other) or _reaches(other, pool)):
                yield Problem(
                    code=Code.POOL_AMBIGUOUS,
                    message=f"{name} and {other_name} reach the same nodes, and {shared} means something "
                    "else in each",
                    loc=("pools", name, "nodeSelector"),
                    help="Tell them apart by node labels, or let the device plugin rename shared GPUs.",
                )


def _same_names(one: Gpu | None, other: Gpu | None) -> str:
    if one is None or other is None or _meaning(one) == _meaning(other):
        return ""
    return next((name for name in resources_of(one) if name in resources_of(other)), "")


def _meaning(gpu: Gpu) -> tuple[object, ...]:
    match gpu:
        case ExclusiveGpu():
            return gpu.sharing, gpu.product
        case MigGpu():
            return gpu.sharing, gpu.product, gpu.strategy
        case _:
            return gpu.sharing, gpu.product, gpu.replicas


def _reaches(pool: Pool, other: Pool) -> bool:
    """Say whether a workspace of `pool` can land on every node of `other`."""
    tolerates = set(other.tolerations) <= set(pool.tolerations)
    return tolerates and pool.node_selector.items() <= other.node_selector.items()


def check_used(context: Context) -> Iterator[Problem]:
    """Pools that no profile is placed in."""
    used: set[str] = set()
    for _, profile in context.profiles():
        used |= _pools_of(profile.resources)
        for choice in profile.questions.values():
            for option in choice.options.values():
                used |= _pools_of(option.resources)
    for name in context.written.pools:
        if name not in used and context.is_whole:
            yield Problem(
                code=Code.POOL_UNUSED, message=f"no profile is placed in {name!r}", loc=("pools", name)
            )


def _pools_of(resources: Resources | PartialResources) -> set[str]:
    return {resources.pool or "", resources.gpu.pool if resources.gpu else ""}
