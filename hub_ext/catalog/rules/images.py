"""Images: pinned, used, and able to run where they may be started.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...gpu.drivers import is_older, min_driver
from ...gpu.products import find_card
from ...gpu.resources import is_nvidia
from ..codes import Code
from ..gpus import resources_of
from ..model import Gpu, Image, Pool, Profile, State
from ..problems import Loc, Problem
from .context import Context, Variant


def check_pinned(context: Context) -> Iterator[Problem]:
    """A tag can be moved; a digest cannot."""
    for key, image in context.written.images.items():
        if image.reference.digest:
            continue
        if image.allow_tag:
            yield Problem(
                code=Code.IMAGE_BY_TAG,
                message=f"{image.ref} names a tag: two starts may run different code",
                loc=("images", key, "ref"),
                help="Add @sha256:… when it is published.",
            )
        else:
            yield Problem(
                code=Code.IMAGE_WITHOUT_DIGEST,
                message=f"{image.ref} has no digest",
                loc=("images", key, "ref"),
                help="Add @sha256:…, or write allowTag: true to accept that it can change.",
            )


def check_used(context: Context) -> Iterator[Problem]:
    """Images that nothing names are pulled for nothing, or forgotten."""
    used = {key for profile in context.written.profiles for key in profile.images}
    for _, choice in context.written_choices():
        used |= {option.image for option in choice.options.values() if option.image}
    for key in context.written.images:
        if key not in used and context.is_whole:
            yield Problem(
                code=Code.IMAGE_UNUSED, message=f"no profile uses the image {key!r}", loc=("images", key)
            )


def check_fit(context: Context) -> Iterator[Problem]:
    """Each image that can meet a GPU must be able to use it."""
    for loc, profile in context.profiles():
        if profile.state is State.RETIRED:
            continue
        seen: set[tuple[str, str]] = set()
        for variant in context.variants(profile):
            pool = _gpu_pool(context, variant)
            image = context.catalog.images.get(variant.image_key)
            if pool is None or pool.gpu is None or image is None:
                continue
            name = variant.resources.gpu.pool if variant.resources.gpu else ""
            if (variant.image_key, name) in seen:
                continue
            seen.add((variant.image_key, name))
            yield from _check_image(loc, profile, variant, image, pool.gpu)


def _gpu_pool(context: Context, variant: Variant) -> Pool | None:
    gpu = variant.resources.gpu
    return context.catalog.pools.get(gpu.pool) if gpu else None


def _check_image(loc: Loc, profile: Profile, variant: Variant, image: Image, gpu: Gpu) -> Iterator[Problem]:
    who = f"{profile.label} with {variant.label}" if variant.label else profile.label
    card = find_card(gpu.product) if gpu.product else None
    if card and image.architectures and card.architecture not in image.architectures:
        yield Problem(
            code=Code.IMAGE_ARCHITECTURE,
            message=f"{who}: {variant.image_key} is built for {', '.join(image.architectures)}, "
            f"{card.name} sits beside {card.architecture}",
            loc=(*loc, "images"),
            help=f"Use an image for {card.architecture}.",
        )
    if image.cuda is None:
        if all(is_nvidia(resource) for resource in resources_of(gpu)):
            yield Problem(
                code=Code.IMAGE_WITHOUT_CUDA,
                message=f"{who}: {variant.image_key} has no CUDA, so the GPU would lie idle",
                loc=(*loc, "images"),
                help=f"Write cuda in images.{variant.image_key}, or offer it only without GPU (requires).",
            )
        return
    need = image.min_driver or min_driver(image.cuda)
    if gpu.driver and need and is_older(gpu.driver, need):
        yield Problem(
            code=Code.DRIVER_TOO_OLD,
            message=f"{who}: CUDA {image.cuda} needs driver {need}, the pool has {gpu.driver}",
            loc=(*loc, "images"),
            help="Use an image with an older CUDA, or update the driver.",
        )
