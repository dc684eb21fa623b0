"""Which pods hold which cards, read from what a kubelet keeps on its disk, and what the exporter makes of it.

Pure, but for `Kubelet.holders`, which reads those files.

Sources: Kubernetes `pkg/kubelet/cm/devicemanager/checkpoint` and `kuberuntime` (names of log folders); the
exporter's `internal/pkg/transformation/kubernetes.go`, which knows `nvidia.com/gpu` and `nvidia.com/mig-*`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.devcluster.monitoring.dcgm import (
    Card,
    Field,
    Model,
    Pod,
    Reading,
    Slice,
    Use,
    shared_card,
    sliced_card,
    whole_card,
)

REST = Use(engine=0, util=0, memory_mib=0)
KNOWN_RESOURCE = "nvidia.com/gpu"
KNOWN_PREFIX = "nvidia.com/mig-"
REPLICA = "::"
"""Between a card's UUID and the number of a share of it, in the device plugin's ids."""
SUMMED = (Field.ENGINE, Field.UTIL, Field.MEMORY_USED)

Holders = Mapping[str, Sequence[Pod]]
"""Pods by the UUID of a card or MIG device, in the order of their shares."""


class SliceDevice(Model):
    """A MIG device of a card."""

    uuid: str
    profile: str
    instance: int


class Device(Model):
    """A card of a node, and the slices that it is cut into."""

    card: Card
    slices: tuple[SliceDevice, ...] = ()
    shared: bool = False
    """Whether several pods may hold it at a time."""


class Kubelet(Model):
    """Where a node's kubelet keeps what it knows of devices and pods."""

    checkpoint: Path
    logs: Path
    """Folder with one folder for each pod."""

    def holders(self) -> Holders:
        """Who holds what now; nobody does before the kubelet gave out the first device."""
        try:
            checkpoint = self.checkpoint.read_text()
        except FileNotFoundError:
            return {}
        pods = (folder.name for folder in self.logs.iterdir()) if self.logs.exists() else ()
        return read_holders(checkpoint, pods)


def read_holders(checkpoint: str, log_folders: Iterable[str]) -> Holders:
    """Read the kubelet's note on devices; pods that have no log folder any more are gone.

    `log_folders` are names such as `hub_jupyter-ada_<uid of the pod>`.
    """
    named = [folder.split("_") for folder in log_folders if folder.count("_") == 2]
    pods = {uid: (namespace, name) for namespace, name, uid in named}
    found: dict[str, list[tuple[str, Pod]]] = {}
    for entry in json.loads(checkpoint)["Data"].get("PodDeviceEntries") or ():
        resource, uid = entry["ResourceName"], entry["PodUID"]
        if uid not in pods or not (resource == KNOWN_RESOURCE or resource.startswith(KNOWN_PREFIX)):
            continue
        namespace, name = pods[uid]
        pod = Pod(namespace=namespace, name=name, container=entry["ContainerName"])
        for device in (device for devices in entry["DeviceIDs"].values() for device in devices):
            uuid, _, replica = device.partition(REPLICA)
            found.setdefault(uuid, []).append((replica, pod))
    return {uuid: [pod for _, pod in sorted(held, key=lambda h: h[0])] for uuid, held in found.items()}


def attributed(
    devices: Iterable[Device], holders: Holders, uses: Mapping[str, Use], *, virtual: bool = True
) -> list[Reading]:
    """What the exporter says of a node's cards.

    Parameters
    ----------
    uses
        What pods do with their cards, by `namespace/name`; the others are at rest.
    virtual
        See `shared_card`.
    """

    readings: list[Reading] = []
    for device in devices:
        pods = holders.get(device.card.uuid, ())
        if device.slices:
            slices = (_slice(part, (*holders.get(part.uuid, ()), None)[0], uses) for part in device.slices)
            readings += sliced_card(device.card, *slices)
        elif device.shared:
            each = {pod: _use(pod, uses) for pod in pods}
            readings += shared_card(device.card, together(each.values()), each, virtual=virtual)
        else:
            pod = (*pods, None)[0]
            readings += whole_card(device.card, _use(pod, uses), pod=pod)
    return readings


def together(uses: Iterable[Use]) -> Use:
    """What a card does for all who share it: no part of it works more than all the time."""
    each = [use.values() for use in (REST, *uses)]
    engine, util, memory = (sum(values.get(field, 0) for values in each) for field in SUMMED)
    return Use(engine=min(engine, 1), util=min(util, 100), memory_mib=memory)


def _use(pod: Pod | None, uses: Mapping[str, Use]) -> Use:
    return uses.get(f"{pod.namespace}/{pod.name}", REST) if pod else REST


def _slice(part: SliceDevice, pod: Pod | None, uses: Mapping[str, Use]) -> Slice:
    return Slice(profile=part.profile, instance=part.instance, use=_use(pod, uses), pod=pod)
