"""Where files are in a workspace, and which of them survive a stop.

Pure: no clock, no network.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .base import EnvName, Flag, Memory, Model, MountPath, Name, ObjectName, Text

AccessMode = Literal["ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod", "ReadOnlyMany"]


class Home(Model):
    """The user's own volume: kept when the workspace stops, the same in every workspace of the user."""

    class_: ObjectName | None = Field(default=None, alias="class")
    """StorageClass; left out, the cluster's default."""
    size: Memory | None = None
    """Size of a new volume (bytes). Left out without `claim`, the hub's own volume is the home."""
    access_mode: AccessMode = "ReadWriteOnce"
    """ReadWriteOnce allows one node at a time: two workspaces of a user then share a node or wait."""
    mount_path: MountPath = "/home/jovyan"
    """Where it is mounted."""
    claim: ObjectName | None = None
    """An existing claim that holds the homes of all users, instead of one volume each."""
    sub_path: Text | None = None
    """Folder inside `claim`: `{user}` stands for the escaped user name."""


class Scratch(Model):
    """Fast space that is gone when the workspace stops."""

    type: Literal["ephemeral"] = "ephemeral"
    """Says that it does not survive a stop."""
    size_limit: Memory
    """Upper bound (bytes). Without `class` the node's own disk is used and the pod evicted above it."""
    class_: ObjectName | None = Field(default=None, alias="class")
    """StorageClass of a volume that lives as long as the pod; left out, the node's own disk is used."""
    mount_path: MountPath = "/scratch"
    """Where it is mounted."""


class Nfs(Model):
    """A share of an NFS server."""

    server: Text
    """Host name or address."""
    path: MountPath
    """Exported folder."""


class Mount(Model):
    """Data that is there already: a claim or an NFS share."""

    claim: ObjectName | None = None
    """Existing PersistentVolumeClaim in the namespace of the workspace."""
    nfs: Nfs | None = None
    """Or a share of an NFS server."""
    read_only: Flag = True
    """Set to false on purpose only."""
    mount_path: MountPath
    """Where it is mounted."""
    sub_path: Text | None = None
    """Folder inside the volume: `{user}` and `{team}` stand for the escaped names."""
    display_name: str = ""
    """What users read about it."""


class Checkpoints(Model):
    """Object storage for checkpoints; it outlives the workspace."""

    uri: Text
    """Address: `s3://bucket/{team}/{user}/`. `{user}`, `{team}`, `{profile}` and `{server}` are filled in."""
    env: EnvName = "CHECKPOINT_URI"
    """Environment variable that carries the address."""


class Storage(Model):
    """Everything that a workspace can write to or read from."""

    home: Home | None = None
    scratch: Scratch | None = None
    datasets: Mount | None = None
    """Data sets, read-only unless said otherwise."""
    models: Mount | None = None
    """Model weights, read-only unless said otherwise."""
    mounts: dict[Name, Mount] = Field(default_factory=dict)
    """Further volumes, by a name of your own."""
    checkpoints: Checkpoints | None = None
    shared_memory: Memory | None = None
    """Size of `/dev/shm` (bytes), which PyTorch's data loaders use. It counts as memory of the workspace."""
    work_dir: MountPath | None = None
    """Folder that JupyterLab opens and where code belongs; left out, the home."""
