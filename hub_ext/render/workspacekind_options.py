"""The options of a WorkspaceKind: images, pod configurations, and which of them go together.

Pure: no clock, no network.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..catalog.compose import Workspace
from ..catalog.expand import IMAGE_CHOICE
from ..catalog.model import Catalog, Image, Profile, State
from ..names import label_value
from .pod import amounts, gpu_grant

OPTION = "workspace-option"
"""Key of the label by which filter rules find an option."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One pod configuration of one version, and the images that it may run."""

    id: str
    workspace: Workspace
    picks: dict[str, str]
    """What is chosen beside the image."""
    images: tuple[str, ...]

    @property
    def profile(self) -> Profile:
        return self.workspace.profile


def offers(profile: Profile, workspaces: Iterable[Workspace]) -> list[Offer]:
    """Group the workspaces of one version by what their pods ask for."""
    groups: dict[tuple[Any, ...], list[Workspace]] = {}
    for workspace in workspaces:
        picks = tuple((k, v) for k, v in workspace.picks.items() if k != IMAGE_CHOICE)
        asked = (workspace.resources.model_dump_json(), workspace.pool_name)
        groups.setdefault((picks, asked), []).append(workspace)
    result: list[Offer] = []
    for number, ((picks, _), group) in enumerate(groups.items()):
        words = [f"v{profile.version}", *(f"{choice}-{option}" for choice, option in picks)]
        name = ".".join(words)
        taken = {offer.id for offer in result}
        images = tuple(dict.fromkeys(workspace.image_key for workspace in group))
        identity = label_value(name if name not in taken else f"{name}.{number}")
        result.append(Offer(id=identity, workspace=group[0], picks=dict(picks), images=images))
    return result


def image_config(catalog: Catalog, offered: list[Offer], *, port: str) -> dict[str, Any]:
    """Build `options.imageConfig`."""
    keys = dict.fromkeys(key for offer in offered for key in offer.images)
    values = [_image(key, catalog.images[key], port) for key in keys]
    return {"spawner": {"default": offered[0].workspace.image_key}, "values": values}


def _image(key: str, image: Image, port: str) -> dict[str, Any]:
    labels = {OPTION: key} | ({"cuda_version": image.cuda} if image.cuda else {})
    spec = {
        "image": str(image.reference),
        "imagePullPolicy": "IfNotPresent" if image.reference.digest else "Always",
        "ports": [{"id": port, "port": 8888}],
    }
    spawner = _spawner(image.display_name, image.description, labels, fallback=key)
    return {"id": key, "spawner": spawner, "spec": spec}


def pod_config(offered: list[Offer]) -> dict[str, Any]:
    """Build `options.podConfig`; options of replaced versions lead to the version that replaced them."""
    first = {offer.profile.version: offer.id for offer in reversed(offered)}
    return {"spawner": {"default": offered[0].id}, "values": [_pod(offer, first) for offer in offered]}


def _pod(offer: Offer, first: dict[int, str]) -> dict[str, Any]:
    workspace, profile, pool = offer.workspace, offer.profile, offer.workspace.pool
    requests, limits = amounts(workspace)
    gpu = gpu_grant(workspace)
    labels = {OPTION: offer.id, "cpu": requests["cpu"], "memory": requests["memory"]}
    if gpu is not None:
        labels |= {"gpu": f"{gpu.count} x {gpu.resource}"[:64], "gpu_sharing": gpu.sharing.value}
    titles = [workspace.options[choice].display_name for choice in offer.picks if choice in workspace.options]
    title = ", ".join([profile.display_name, *titles]) + f" (version {profile.version})"
    spawner = _spawner(title, gpu.meaning.text if gpu else "", labels, fallback=offer.id)
    spawner["hidden"] = profile.state is State.HIDDEN
    value: dict[str, Any] = {"id": offer.id, "spawner": spawner}
    target = _redirect(profile, first)
    if target is not None and target != offer.id:
        value["redirect"] = {"to": target}
        if len(profile.message) > 1:
            value["redirect"]["message"] = {"level": "Warning", "text": profile.message[:1024]}
    spec: dict[str, Any] = {"resources": {"requests": requests, "limits": limits}}
    if pool is not None and pool.node_selector:
        spec["nodeSelector"] = dict(pool.node_selector)
    if pool is not None and pool.tolerations:
        spec["tolerations"] = [t.model_dump(by_alias=True, exclude_none=True) for t in pool.tolerations]
    return value | {"spec": spec}


def _redirect(profile: Profile, first: dict[int, str]) -> str | None:
    replacement = profile.replaced_by
    if replacement is None or replacement.name not in {"", profile.name}:
        return None
    return first.get(replacement.version) if isinstance(replacement.version, int) else None


def _spawner(title: str, description: str, labels: dict[str, str], *, fallback: str) -> dict[str, Any]:
    spawner: dict[str, Any] = {"displayName": (title if len(title) > 1 else fallback)[:128]}
    if len(description) > 1:
        spawner["description"] = description[:1024]
    spawner["labels"] = [{"key": key, "value": value} for key, value in labels.items()]
    return spawner


def filter_rules(offered: list[Offer]) -> list[dict[str, Any]]:
    """Deny each image with the pod configurations that the catalog does not offer it with."""
    everything = set(dict.fromkeys(key for offer in offered for key in offer.images))
    rules = []
    for offer in offered:
        if set(offer.images) == everything:
            continue
        others = {"key": OPTION, "operator": "NotIn", "values": list(offer.images)}
        message = f"{offer.profile.display_name[:200]}: this image is not offered here."
        rules.append(
            {
                "scope": "POD_CONFIG",
                "effect": {"api": {"deny": True, "denyMessage": {"text": message}}},
                "match": [
                    {"matchImageConfig": {"selector": {"matchExpressions": [others]}}},
                    {"matchPodConfig": {"selector": {"matchLabels": {OPTION: offer.id}}}},
                ],
            }
        )
    return rules
