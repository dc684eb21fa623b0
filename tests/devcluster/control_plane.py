"""etcd, API server, controllers and scheduler, in the host's network namespace; needs no root.

Shell: starts programs. The command lines are pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.devcluster.addresses import Addresses
from tests.devcluster.api import Api
from tests.devcluster.pki import Authority, Pair
from tests.devcluster.processes import Process, Processes
from tests.devcluster.waiting import PATIENCE_SECONDS, Check

ISSUER = "https://kubernetes.default.svc.cluster.local"
FRONT_PROXY = "front-proxy-client"
CONTROLLER_QPS = 200
"""The default of 20 requests a second is what makes large pools and namespaces slow to settle."""


@dataclass(frozen=True, kw_only=True)
class Secrets:
    """Keys and certificates of one control plane."""

    authority: Authority
    server: Pair
    admin: Pair
    kubelet_client: Pair
    front_proxy: Pair
    accounts: Pair
    controllers: Pair
    scheduler: Pair


@dataclass(frozen=True, kw_only=True)
class ControlPlane:
    """What the command lines are made of."""

    programs: Mapping[str, Path]
    """By plain name, whatever the version."""
    folder: Path
    logs: Path
    addresses: Addresses
    bind_address: str
    port: int
    etcd_port: int
    etcd_peer_port: int
    secrets: Secrets

    @property
    def server(self) -> str:
        return f"https://{self.bind_address}:{self.port}"


def issue_secrets(folder: Path, *, name: str, addresses: Addresses, bind_address: str) -> Secrets:
    """Make a new authority and sign what the control plane needs."""
    authority = Authority(folder, f"devcluster-{name}")
    services = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"]
    hosts = ["localhost", "127.0.0.1", bind_address, addresses.host, addresses.api_service, *services]
    return Secrets(
        authority=authority,
        server=authority.issue(
            "apiserver", "kube-apiserver", hosts=[*dict.fromkeys(hosts), f"{services[-1]}.cluster.local"]
        ),
        admin=authority.issue("admin", "admin", groups=["system:masters"]),
        kubelet_client=authority.issue("kubelet-client", "kube-apiserver", groups=["system:masters"]),
        front_proxy=authority.issue("front-proxy", FRONT_PROXY),
        accounts=authority.signing_pair("service-accounts"),
        controllers=authority.issue("controller-manager", "system:kube-controller-manager"),
        scheduler=authority.issue("scheduler", "system:kube-scheduler"),
    )


def start_server(plane: ControlPlane, processes: Processes, *, check: Check) -> Api:
    """Start etcd and the API server and wait until it is ready."""
    for name, argv in (("etcd", etcd(plane)), ("kube-apiserver", apiserver(plane))):
        processes.start(name, argv, log=plane.logs / f"{name}.log")
    secrets = plane.secrets
    api = Api(plane.server, ca=secrets.authority.certificate, pair=secrets.admin)
    api.until_answering("/readyz", what="the API server to be ready", timeout=PATIENCE_SECONDS, check=check)
    return api


def start_controllers(plane: ControlPlane, processes: Processes) -> list[Process]:
    """Start controllers and scheduler; call it when the API server is ready, they give up after 10 s."""
    programs = (("kube-controller-manager", controllers(plane)), ("kube-scheduler", scheduler(plane)))
    return [processes.start(name, argv, log=plane.logs / f"{name}.log") for name, argv in programs]


def etcd(plane: ControlPlane) -> list[str]:
    client, peer = f"http://127.0.0.1:{plane.etcd_port}", f"http://127.0.0.1:{plane.etcd_peer_port}"
    return [
        str(plane.programs["etcd"]),
        "--name=default",
        f"--data-dir={plane.folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
    ]


def apiserver(plane: ControlPlane) -> list[str]:
    secrets, ca = plane.secrets, plane.secrets.authority.certificate
    return [
        str(plane.programs["kube-apiserver"]),
        f"--etcd-servers=http://127.0.0.1:{plane.etcd_port}",
        f"--bind-address={plane.bind_address}",
        f"--secure-port={plane.port}",
        f"--advertise-address={plane.addresses.host}",
        f"--cert-dir={plane.folder / 'apiserver'}",
        f"--tls-cert-file={secrets.server.certificate}",
        f"--tls-private-key-file={secrets.server.key}",
        f"--client-ca-file={ca}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        f"--service-cluster-ip-range={plane.addresses.services}",
        f"--service-account-issuer={ISSUER}",
        f"--service-account-key-file={secrets.accounts.certificate}",
        f"--service-account-signing-key-file={secrets.accounts.key}",
        f"--kubelet-certificate-authority={ca}",
        f"--kubelet-client-certificate={secrets.kubelet_client.certificate}",
        f"--kubelet-client-key={secrets.kubelet_client.key}",
        "--kubelet-preferred-address-types=InternalIP",
        # The CA signs users too: without the allowed name any of them could speak for all others.
        f"--requestheader-client-ca-file={ca}",
        f"--requestheader-allowed-names={FRONT_PROXY}",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
        f"--proxy-client-cert-file={secrets.front_proxy.certificate}",
        f"--proxy-client-key-file={secrets.front_proxy.key}",
        # No kube-proxy on the host: webhooks and aggregated APIs are called at their pods' addresses.
        "--enable-aggregator-routing=true",
    ]


def controllers(plane: ControlPlane) -> list[str]:
    secrets, ca = plane.secrets, plane.secrets.authority.pair
    kubeconfig = _kubeconfig(plane, "system:kube-controller-manager", secrets.controllers)
    return [
        str(plane.programs["kube-controller-manager"]),
        f"--kubeconfig={kubeconfig}",
        f"--root-ca-file={ca.certificate}",
        f"--cluster-signing-cert-file={ca.certificate}",
        f"--cluster-signing-key-file={ca.key}",
        f"--service-account-private-key-file={secrets.accounts.key}",
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        "--secure-port=0",
        f"--kube-api-qps={CONTROLLER_QPS}",
        f"--kube-api-burst={2 * CONTROLLER_QPS}",
    ]


def scheduler(plane: ControlPlane) -> list[str]:
    kubeconfig = _kubeconfig(plane, "system:kube-scheduler", plane.secrets.scheduler)
    return [
        str(plane.programs["kube-scheduler"]),
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
    ]


def _kubeconfig(plane: ControlPlane, user: str, pair: Pair) -> Path:
    file = plane.folder / "pki" / f"{user.removeprefix('system:')}.kubeconfig"
    return plane.secrets.authority.kubeconfig(
        file, server=plane.server, cluster="devcluster", user=user, pair=pair
    )
