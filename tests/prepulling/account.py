"""An account of the prepuller's own, with the rights that it declares and nothing more.

Shell: talks to the cluster.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hub_ext.rights import Where
from services.prepuller.rights import RIGHTS
from tests.devcluster.kube import KubeCluster


def build_roles(name: str, namespace: str) -> list[dict[str, Any]]:
    """Account, roles and bindings: rules of the whole cluster in one, those of the namespace in the other."""
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": namespace},
    }
    objects: list[dict[str, Any]] = [account]
    for where, kind, metadata in (
        (Where.CLUSTER, "ClusterRole", {"name": f"{name}-{namespace}"}),
        (Where.PULLS, "Role", {"name": name, "namespace": namespace}),
    ):
        rules = [
            {"apiGroups": [rule.group], "resources": list(rule.resources), "verbs": list(rule.verbs)}
            for rule in RIGHTS.rules
            if rule.where is where
        ]
        version = "rbac.authorization.k8s.io/v1"
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": metadata["name"]}
        objects.append({"apiVersion": version, "kind": kind, "metadata": metadata, "rules": rules})
        objects.append(
            {
                "apiVersion": version,
                "kind": f"{kind}Binding",
                "metadata": metadata,
                "roleRef": reference,
                "subjects": [subject],
            }
        )
    return objects


@contextmanager
def account(cluster: KubeCluster, namespace: str, folder: Path, name: str = "prepuller") -> Iterator[Path]:
    """Make the account; gives a kubeconfig file of it. The namespace takes `restricted` pods only."""
    enforce = "pod-security.kubernetes.io/enforce=restricted"
    cluster.kubectl("label", "namespace", namespace, enforce, "--overwrite")
    cluster.apply(*build_roles(name, namespace))
    try:
        config = json.loads(cluster.kubectl("config", "view", "--raw", "--flatten", "--output=json"))
        token = cluster.kubectl("create", "token", name, f"--namespace={namespace}", "--duration=2h").strip()
        config["users"][0]["user"] = {"token": token}
        file = folder / f"{name}.kubeconfig"
        file.write_text(json.dumps(config))
        yield file
    finally:
        for kind in ("clusterrolebinding", "clusterrole"):
            cluster.kubectl("delete", kind, f"{name}-{namespace}", "--ignore-not-found")
