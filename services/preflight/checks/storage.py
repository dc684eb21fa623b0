"""Volumes: do classes and claims of the catalog exist, and do they behave as homes should?

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hub_ext.catalog.compose import Workspace
from hub_ext.catalog.storage import Mount
from hub_ext.errors import Severity

from ..problems import Check, Problem
from ..scene import Object, Scene

_DEFAULT: Final = "storageclass.kubernetes.io/is-default-class"
_SHARED_MODES: Final = {"ReadWriteMany", "ReadOnlyMany"}


def classes_exist(scene: Scene) -> Iterator[Problem]:
    for name, path in sorted(_wanted_classes(scene), key=str):
        if name is None and not _defaults(scene):
            yield Problem(
                message="homes use the cluster's default StorageClass, and there is none",
                help="Name a class in the catalog, or mark one as default.",
                path=path,
            )
        elif name is not None and scene.objects.named("StorageClass", name) is None:
            known = ", ".join(sorted(one["metadata"]["name"] for one in scene.objects.of("StorageClass")))
            yield Problem(
                message=f"there is no StorageClass {name}",
                evidence=f"there are: {known or 'none'}",
                help="Correct the name, or create the class.",
                path=path,
            )
    if len(_defaults(scene)) > 1:
        yield Problem(
            message="several StorageClasses are the default",
            evidence=", ".join(one["metadata"]["name"] for one in _defaults(scene)),
            help=f"Leave the annotation {_DEFAULT} on one.",
            severity=Severity.WARNING,
        )


def homes_follow_their_pods(scene: Scene) -> Iterator[Problem]:
    """A home that is bound at once may be in a zone where no GPU is."""
    zones = {node.zone for node in scene.nodes if node.zone}
    if len(zones) < 2:
        return
    for storage_class, path in _home_classes(scene):
        if storage_class.get("volumeBindingMode", "Immediate") == "Immediate":
            yield Problem(
                message=f"homes of class {storage_class['metadata']['name']} are bound before a node is "
                "chosen",
                evidence=f"volumeBindingMode Immediate, nodes in the zones {', '.join(sorted(zones))}",
                help="Use a class with WaitForFirstConsumer: a home in a zone without the wanted GPU cannot "
                "be mounted.",
                path=path,
                severity=Severity.WARNING,
            )


def homes_can_grow(scene: Scene) -> Iterator[Problem]:
    for storage_class, path in _home_classes(scene):
        if not storage_class.get("allowVolumeExpansion"):
            yield Problem(
                message=f"homes of class {storage_class['metadata']['name']} cannot be made larger",
                evidence="allowVolumeExpansion is not set",
                help="Set allowVolumeExpansion: true, if the provisioner can; otherwise plan the size well.",
                path=path,
                severity=Severity.NOTE,
            )


def homes_can_be_saved(scene: Scene) -> Iterator[Problem]:
    drivers = {one.get("driver") for one in scene.objects.of("VolumeSnapshotClass")}
    for storage_class, path in _home_classes(scene):
        if storage_class.get("provisioner") not in drivers:
            yield Problem(
                message="no VolumeSnapshotClass is for the homes of class "
                f"{storage_class['metadata']['name']}",
                evidence=f"provisioner {storage_class.get('provisioner')}, snapshots by "
                f"{sorted(filter(None, drivers))}",
                help="Create a class for this driver, or back homes up in another way before each upgrade.",
                path=path,
                severity=Severity.NOTE,
            )


def single_pod_homes(scene: Scene) -> Iterator[Problem]:
    """ReadWriteOncePod needs a CSI driver; other provisioners leave the claim pending."""
    drivers = {one["metadata"]["name"] for one in scene.objects.of("CSIDriver")}
    for workspace in scene.workspaces:
        home = workspace.storage.home
        if home is None or home.access_mode != "ReadWriteOncePod":
            continue
        storage_class = _class_of(scene, home.class_)
        if storage_class is not None and storage_class.get("provisioner") not in drivers:
            yield Problem(
                message="homes that only one pod may mount need a CSI driver",
                evidence=f"class {storage_class['metadata']['name']}, {storage_class.get('provisioner')} is "
                "no CSIDriver",
                help="Use another class, or accessMode: ReadWriteOnce.",
                path=_path(workspace, "home"),
            )
            return


def claims_exist(scene: Scene) -> Iterator[Problem]:
    told = set()
    for workspace in scene.workspaces:
        for name, mount in _mounts(workspace):
            if mount.claim is None or (mount.claim, mount.read_only) in told:
                continue
            told.add((mount.claim, mount.read_only))
            yield from _claim(scene, mount, _path(workspace, name))


def _claim(scene: Scene, mount: Mount, path: str) -> Iterator[Problem]:
    claim = scene.objects.named("PersistentVolumeClaim", str(mount.claim), scene.namespace)
    if claim is None:
        yield Problem(
            message=f"there is no claim {mount.claim} in {scene.namespace}: workspaces with it do not start",
            help="Create it, or correct the name.",
            path=path,
        )
        return
    phase = (claim.get("status") or {}).get("phase")
    if phase != "Bound":
        yield Problem(
            message=f"claim {mount.claim} is not bound",
            evidence=f"phase {phase}",
            help="Look at its events: kubectl describe pvc.",
            path=path,
        )
    modes = set(claim["spec"].get("accessModes") or [])
    if not modes & _SHARED_MODES:
        yield Problem(
            message=f"claim {mount.claim} can be on one node at a time, but many workspaces mount it",
            evidence=f"accessModes {sorted(modes)}",
            help="Use a volume with ReadOnlyMany or ReadWriteMany.",
            path=path,
        )


def _mounts(workspace: Workspace) -> Iterator[tuple[str, Mount]]:
    storage = workspace.storage
    for name, mount in (("datasets", storage.datasets), ("models", storage.models)):
        if mount is not None:
            yield name, mount
    for name, mount in storage.mounts.items():
        yield f"mounts.{name}", mount


def _path(workspace: Workspace, part: str) -> str:
    return f"{workspace.profile.name}@{workspace.profile.version}.storage.{part}"


def _wanted_classes(scene: Scene) -> set[tuple[str | None, str]]:
    found: dict[str | None, str] = {}
    for workspace in scene.workspaces:
        home, scratch = workspace.storage.home, workspace.storage.scratch
        if home is not None and home.claim is None and home.size is not None:
            found.setdefault(home.class_, _path(workspace, "home"))
        if scratch is not None and scratch.class_ is not None:
            found.setdefault(scratch.class_, _path(workspace, "scratch"))
    return set(found.items())


def _home_classes(scene: Scene) -> Iterator[tuple[Object, str]]:
    told = set()
    for workspace in scene.workspaces:
        home = workspace.storage.home
        if home is None or home.claim is not None or home.size is None or home.class_ in told:
            continue
        told.add(home.class_)
        found = _class_of(scene, home.class_)
        if found is not None:
            yield found, _path(workspace, "home")


def _class_of(scene: Scene, name: str | None) -> Object | None:
    if name is not None:
        return scene.objects.named("StorageClass", name)
    return next(iter(_defaults(scene)), None)


def _defaults(scene: Scene) -> list[Object]:
    return [
        one
        for one in scene.objects.of("StorageClass")
        if (one["metadata"].get("annotations") or {}).get(_DEFAULT) == "true"
    ]


CHECKS = (
    Check(
        code="storage-class",
        title="StorageClasses exist",
        kinds=("StorageClass",),
        needs=("catalog",),
        run=classes_exist,
    ),
    Check(
        code="home-zone",
        title="Homes are made where their pods go",
        kinds=("StorageClass", "Node"),
        needs=("catalog",),
        run=homes_follow_their_pods,
    ),
    Check(
        code="home-single-pod",
        title="Homes for one pod have a driver that can do that",
        kinds=("StorageClass", "CSIDriver"),
        needs=("catalog",),
        run=single_pod_homes,
    ),
    Check(
        code="claims",
        title="Shared claims exist and can be shared",
        kinds=("PersistentVolumeClaim",),
        needs=("catalog",),
        run=claims_exist,
    ),
    Check(
        code="home-growth",
        title="Homes can grow",
        kinds=("StorageClass",),
        needs=("catalog",),
        run=homes_can_grow,
    ),
    Check(
        code="home-snapshots",
        title="Homes can be saved before an upgrade",
        kinds=("StorageClass", "VolumeSnapshotClass"),
        needs=("catalog",),
        run=homes_can_be_saved,
    ),
)
