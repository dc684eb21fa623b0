"""Configuration files of a node's programs. Pure.

Kubelet and containerd read JSON and TOML; JSON is YAML too, which saves a dumper.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.devcluster.addresses import Addresses
from tests.devcluster.node import CONTAINERD_SOCKET
from tests.devcluster.pki import Pair

DOMAIN = "cluster.local"
MAX_PODS = 110


@dataclass(frozen=True, kw_only=True)
class NodeFiles:
    """What the files are made of."""

    folder: Path
    """The node's state folder."""
    index: int
    addresses: Addresses
    cgroup: str
    """The node's group below the root of each hierarchy, without a leading slash."""
    sandbox_image: str
    snapshotter: str
    runc: Path
    cni_folder: Path
    ca: Path
    serving: Pair

    def write(self) -> None:
        """Make the folders that a node has of its own, and write its files."""
        for name in ("certs.d", "cni", "containerd", "kubelet", "pod-logs"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "resolv.conf").write_text(
            "# The node resolves no names; pods ask the cluster's DNS.\n"
        )
        (self.folder / "kubelet.json").write_text(json.dumps(self.kubelet(), indent=1))
        (self.folder / "containerd.toml").write_text(self.containerd())
        (self.folder / "cni" / "10-pods.conflist").write_text(json.dumps(self.pod_network(), indent=1))

    def kubelet(self) -> Mapping[str, Any]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(self.ca)},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(self.serving.certificate),
            "tlsPrivateKeyFile": str(self.serving.key),
            "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self.cgroup}",
            "enforceNodeAllocatable": ["pods"],
            # Kubelets refuse version 1 by default since 1.35; it is what many build machines still have.
            "failCgroupV1": False,
            "failSwapOn": False,
            # Lowering it takes a capability that root in a container may lack.
            "oomScoreAdj": 0,
            "clusterDNS": [self.addresses.dns],
            "clusterDomain": DOMAIN,
            "resolvConf": str(self.folder / "resolv.conf"),
            "volumePluginDir": str(self.folder / "volume-plugins"),
            "maxPods": MAX_PODS,
            "serializeImagePulls": False,
            # The disk is the developer's: how full it is says nothing about the node.
            "imageGCHighThresholdPercent": 100,
            "evictionHard": {"memory.available": "100Mi"},
            "nodeStatusUpdateFrequency": "2s",
            # Pods see a changed Secret then: controllers wait for certificates that they wrote into one.
            "syncFrequency": "10s",
            "shutdownGracePeriod": "0s",
        }

    def containerd(self) -> str:
        return f"""version = 3
root = {_quoted(self.folder / "containerd")}
state = "/run/containerd"
# Of no use here, or meant to write outside the node's folders.
disabled_plugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.nri.v1.nri",
  "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.erofs",
  "io.containerd.snapshotter.v1.zfs",
]
[grpc]
  address = {_quoted(CONTAINERD_SOCKET)}
[plugins.'io.containerd.cri.v1.images']
  snapshotter = {_quoted(self.snapshotter)}
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = {_quoted(self.sandbox_image)}
  [plugins.'io.containerd.cri.v1.images'.registry]
    config_path = {_quoted(self.folder / "certs.d")}
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.containerd]
    default_runtime_name = "runc"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
        BinaryName = {_quoted(self.runc)}
        SystemdCgroup = false
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = [{_quoted(self.cni_folder)}]
    conf_dir = {_quoted(self.folder / "cni")}
"""

    def pod_network(self) -> Mapping[str, Any]:
        return {
            "cniVersion": "1.0.0",
            "name": "pods",
            "plugins": [
                {
                    "type": "bridge",
                    "bridge": "cni0",
                    "isGateway": True,
                    "hairpinMode": True,
                    # All routes exist, and policies must see the pods' own addresses.
                    "ipMasq": False,
                    "ipam": {
                        "type": "host-local",
                        "ranges": [[{"subnet": str(self.addresses.node_pods(self.index))}]],
                        "routes": [{"dst": "0.0.0.0/0"}],
                    },
                },
                {"type": "portmap", "capabilities": {"portMappings": True}},
            ],
        }


def _quoted(value: str | Path) -> str:
    """A TOML basic string; JSON's quoting is a subset of TOML's."""
    return json.dumps(str(value))


def kubelet_arguments(files: NodeFiles, *, name: str, kubeconfig: Path) -> list[str]:
    return [
        f"--config={files.folder / 'kubelet.json'}",
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={name}",
        f"--node-ip={files.addresses.node(files.index)}",
        f"--cert-dir={files.folder / 'kubelet-certificates'}",
        "--v=2",
    ]


def proxy_arguments(files: NodeFiles, *, name: str, kubeconfig: Path) -> list[str]:
    return [
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={name}",
        "--proxy-mode=iptables",
        f"--cluster-cidr={files.addresses.pods}",
        # Connection tracking is sized for the whole machine; a namespace cannot change it.
        "--conntrack-max-per-core=0",
        "--conntrack-tcp-timeout-established=0s",
        "--conntrack-tcp-timeout-close-wait=0s",
    ]
