"""Values for Zero-to-JupyterHub: the images to pull, the taints that the puller must accept, the catalog.

The chart's image puller reads `singleuser.profileList` and `prePuller.extraImages` and nothing else, so the
images of a catalog must stand there. Source: chart 4.4.0, templates/image-puller/_helpers-daemonset.tpl.

Pure: no clock, no network.
"""

from collections.abc import Mapping
from typing import Any

from ..catalog.model import Catalog, Image, State
from ..names import ImageReference
from .bounds import gpu_requests
from .documents import thaw
from .fragment import merge_tolerations
from .target import Code, Rendering, note

SPAWNER_CLASS = "gpu-workspaces"
"""Entry point of the spawner in the group `jupyterhub.spawners`."""


def render_z2jh(catalog: Catalog, source: Mapping[str, Any]) -> Rendering:
    """Render chart values.

    Parameters
    ----------
    source
        The catalog as it was written; it is handed to the hub unchanged under `custom.gpuWorkspaces`.
    """
    images = startable_images(catalog)
    tolerations = merge_tolerations(
        *(
            [t.model_dump(by_alias=True, exclude_none=True) for t in catalog.pools[name].tolerations]
            for name in _pools_in_use(catalog)
        )
    )
    pre_puller: dict[str, Any] = {
        "extraImages": {key: extra_image(image.reference) for key, image in images.items()}
    }
    if tolerations:
        pre_puller["extraTolerations"] = tolerations
    values: dict[str, Any] = {
        "hub": {"config": {"JupyterHub": {"spawner_class": SPAWNER_CLASS}}},
        "prePuller": pre_puller,
    }
    secrets = list(dict.fromkeys(s for image in images.values() for s in image.pull_secrets))
    if secrets:
        values["imagePullSecrets"] = [{"name": name} for name in secrets]
    values["custom"] = {"gpuWorkspaces": thaw(source)}
    return Rendering(documents=(values,), findings=_remarks(catalog, images))


def startable_images(catalog: Catalog) -> dict[str, Image]:
    """Give the images that somebody can still start, in the order of the catalog."""
    used = {
        key
        for profile in catalog.profiles
        if profile.state is not State.RETIRED
        for key in (
            *profile.images,
            *(o.image for choice in profile.questions.values() for o in choice.options.values()),
        )
    }
    return {key: image for key, image in catalog.images.items() if key in used}


def extra_image(reference: ImageReference) -> dict[str, str]:
    """Write a reference as the name and tag that the chart joins with a colon.

    The chart's schema has no digest. `repo@sha256` as name and the digits as tag join to the right thing.
    """
    name = f"{reference.name}:{reference.tag}" if reference.tag else reference.name
    if reference.digest:
        algorithm, _, digits = reference.digest.partition(":")
        return {"name": f"{name}@{algorithm}", "tag": digits}
    return {"name": reference.name, "tag": reference.tag or "latest"}


def _pools_in_use(catalog: Catalog) -> list[str]:
    used = set()
    for profile in catalog.profiles:
        if profile.state is State.RETIRED:
            continue
        options = [o.resources.pool for c in profile.questions.values() for o in c.options.values()]
        used |= {request.pool for request in gpu_requests(profile)} | {profile.resources.pool, *options}
    return [name for name in catalog.pools if name in used]


def _remarks(catalog: Catalog, images: Mapping[str, Image]) -> tuple[Any, ...]:
    if len(_pools_in_use(catalog)) < 2 or not images:
        return ()
    return (
        note(
            Code.SHARED_PULLER,
            "prePuller.extraImages",
            "the chart pulls every image on every node that its puller may run on, whatever the pool",
            help="Use the prepuller of this project to pull each image only where its profiles run.",
        ),
    )
