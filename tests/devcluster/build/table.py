"""The programs of the development cluster: what each is built from.

Versions are not here: they stand once, in `tests/devcluster/go/<folder>/go.mod`.

Pure: no files, no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One Go program."""

    name: str
    """As asked for; `@1.34` marks the oldest Kubernetes that is supported."""
    folder: str
    """Below `tests/devcluster/go`: the module that pins it."""
    package: str
    """What is compiled."""
    module: str
    """The Go module whose version is the program's."""
    stamps: tuple[str, ...] = ()
    """String variables that get the version, else the program would report none or a wrong one."""
    tags: tuple[str, ...] = ()
    """Build tags; all programs of a folder have the same, for what is fetched depends on them."""
    cgo: bool = False
    link: str = ""
    """Further linker flags."""
    seconds: float
    """Rough time to compile on two cores, after those before it in its folder."""

    @property
    def file(self) -> str:
        """Name of the executable."""
        return self.name.partition("@")[0]


_KUBERNETES_STAMPS = ("k8s.io/component-base/version.gitVersion", "k8s.io/client-go/pkg/version.gitVersion")


def _kubernetes(name: str, seconds: float, *, folder: str = "kubernetes") -> Program:
    return Program(
        name=name,
        folder=folder,
        package=f"k8s.io/kubernetes/cmd/{name.partition('@')[0]}",
        module="k8s.io/kubernetes",
        stamps=_KUBERNETES_STAMPS,
        seconds=seconds,
    )


def _containerd(name: str, seconds: float) -> Program:
    module = "github.com/containerd/containerd/v2"
    return Program(
        name=name,
        folder="containerd",
        package=f"{module}/cmd/{name}",
        module=module,
        stamps=(f"{module}/version.Version",),
        seconds=seconds,
    )


def _nvidia(name: str, seconds: float) -> Program:
    module = "github.com/NVIDIA/k8s-device-plugin"
    return Program(
        name=name,
        folder="nvidia",
        package=f"{module}/cmd/{name}",
        module=module,
        stamps=(f"{module}/internal/info.version",),
        cgo=True,
        # The driver library is found at run time; its symbols are not there when linking.
        link="'-extldflags=-Wl,--export-dynamic -Wl,--unresolved-symbols=ignore-in-object-files -Wl,-z,lazy'",
        seconds=seconds,
    )


def _single(
    name: str, package: str, seconds: float, *, module: str = "", folder: str = "", stamp: str = ""
) -> Program:
    return Program(
        name=name,
        folder=folder or name,
        package=package,
        module=module or package,
        stamps=(stamp,) if stamp else (),
        seconds=seconds,
    )


def _prometheus(name: str, seconds: float) -> Program:
    module = "github.com/prometheus/prometheus"
    return Program(
        name=name,
        folder="prometheus",
        package=f"{module}/cmd/{name}",
        module=module,
        stamps=("github.com/prometheus/common/version.Version",),
        # Service discovery for two dozen clouds is most of what would be compiled.
        tags=("remove_all_sd",),
        seconds=seconds,
    )


_ALL = (
    _kubernetes("kube-apiserver", 220),
    _kubernetes("kube-controller-manager", 50),
    _kubernetes("kube-scheduler", 6),
    _kubernetes("kubelet", 20),
    _kubernetes("kube-proxy", 10),
    _kubernetes("kubectl", 35),
    _kubernetes("kube-apiserver@1.34", 220, folder="kubernetes-oldest"),
    _kubernetes("kube-controller-manager@1.34", 50, folder="kubernetes-oldest"),
    _kubernetes("kube-scheduler@1.34", 6, folder="kubernetes-oldest"),
    _single("etcd", "go.etcd.io/etcd/server/v3", 30),
    _containerd("containerd", 60),
    _containerd("containerd-shim-runc-v2", 5),
    _containerd("ctr", 8),
    _nvidia("nvidia-device-plugin", 35),
    _nvidia("gpu-feature-discovery", 30),
    _nvidia("mps-control-daemon", 10),
    _single("coredns", "github.com/coredns/coredns", 95),
    _single("local-path-provisioner", "github.com/rancher/local-path-provisioner", 70, stamp="main.VERSION"),
    _single(
        "kube-router",
        "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router",
        120,
        module="github.com/cloudnativelabs/kube-router/v2",
        stamp="github.com/cloudnativelabs/kube-router/v2/pkg/version.Version",
    ),
    _single(
        "kueue",
        "sigs.k8s.io/kueue/cmd/kueue",
        110,
        module="sigs.k8s.io/kueue",
        folder="controllers",
        stamp="sigs.k8s.io/kueue/pkg/version.GitVersion",
    ),
    _single(
        "jobset",
        "sigs.k8s.io/jobset",
        10,
        folder="controllers",
        stamp="sigs.k8s.io/jobset/pkg/version.GitVersion",
    ),
    _single(
        "trainer",
        "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager",
        40,
        module="github.com/kubeflow/trainer/v2",
        folder="controllers",
    ),
    _single("kuberay", "github.com/ray-project/kuberay/ray-operator", 65),
    _single("kwok", "sigs.k8s.io/kwok/cmd/kwok", 75, module="sigs.k8s.io/kwok"),
    _single(
        "crane",
        "github.com/google/go-containerregistry/cmd/crane",
        17,
        module="github.com/google/go-containerregistry",
        stamp="github.com/google/go-containerregistry/cmd/crane/cmd.Version",
    ),
    _single(
        "helm",
        "helm.sh/helm/v3/cmd/helm",
        75,
        module="helm.sh/helm/v3",
        stamp="helm.sh/helm/v3/internal/version.version",
    ),
    _prometheus("prometheus", 110),
    _prometheus("promtool", 20),
    _single(
        "versitygw",
        "github.com/versity/versitygw/cmd/versitygw",
        85,
        module="github.com/versity/versitygw",
        stamp="main.Version",
    ),
)

PROGRAMS: Mapping[str, Program] = {program.name: program for program in _ALL}


def in_folder(folder: str) -> tuple[Program, ...]:
    """The programs that one pinned module builds."""
    return tuple(program for program in _ALL if program.folder == folder)


def linker_flags(program: Program, version: str) -> str:
    """The value of `-ldflags`: no symbol tables, the version where the program looks for it."""
    flags = ["-s", "-w", *([program.link] if program.link else [])]
    flags += [f"-X {variable}={version}" for variable in program.stamps]
    if program.module == "k8s.io/kubernetes":
        major, minor = version.removeprefix("v").split(".")[:2]
        flags += [
            f"-X k8s.io/component-base/version.git{n}={v}" for n, v in (("Major", major), ("Minor", minor))
        ]
    return " ".join(flags)
