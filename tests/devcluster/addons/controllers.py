"""Controllers installed from their own manifests, unchanged but for image names and pull policy.

All but the webhooks is applied while the nodes start. Webhooks come when everything else is there: one for
Deployments or pods that cannot be reached yet, as Kueue's, would refuse the other addons'.

Shell: talks to the cluster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from tests.devcluster.addons.registry import Registry
from tests.devcluster.cluster import Cluster
from tests.devcluster.errors import CommandFailedError
from tests.devcluster.waiting import until

Document = Mapping[str, Any]
NOT_ANSWERING = "failed calling webhook"
"""How the API server begins when a webhook cannot be reached or has no valid certificate yet."""
RESOURCE = "CustomResourceDefinition"
WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """One controller of `tests.devcluster.build`: an image and a manifest of the same name."""

    name: str
    namespace: str
    deployment: str
    probe: Document | None = None
    """An object that its webhooks judge; it is only sent as a dry run. `None` where there are no webhooks."""
    needs: tuple[str, ...] = ()
    """Custom resources of other addons without which it gives up."""

    @property
    def programs(self) -> tuple[str, ...]:
        return (f"image:{self.name}", f"manifest:{self.name}")

    def prepare(self, cluster: Cluster) -> None:
        """Apply all but the webhooks; the controller itself when the resources it looks for are served."""
        image = Registry(cluster).publish_built(self.name)
        documents = self._documents(cluster)
        resources = [text for text in documents if kind_of(text) == RESOURCE]
        others = [text for text in documents if kind_of(text) not in (RESOURCE, *WEBHOOKS)]
        _apply(cluster, resources)
        for name in (*map(name_of, resources), *self.needs):
            cluster.wait_for(f"crd/{name}", "condition=Established")
        _apply(cluster, (with_image(text, image) for text in others))

    def install(self, cluster: Cluster) -> Callable[[], None]:
        """What is returned applies the webhooks and waits until they answer."""
        webhooks = [text for text in self._documents(cluster) if kind_of(text) in WEBHOOKS]

        def ready() -> None:
            if webhooks:
                _apply(cluster, webhooks)
            cluster.wait_for(
                f"deployment/{self.deployment}",
                "condition=Available",
                namespace=self.namespace,
            )
            if self.probe is not None:
                _wait_until_judged(cluster, self.probe, what=f"webhooks of {self.name}")

        return ready

    def _documents(self, cluster: Cluster) -> list[str]:
        return split(cluster.programs[f"manifest:{self.name}"].read_text())


def split(manifest: str) -> list[str]:
    """The documents of a YAML file, unread: some are of a size that takes Python seconds to parse."""
    return [text for text in re.split(r"^---\s*$", manifest, flags=re.MULTILINE) if text.strip()]


def kind_of(document: str) -> str:
    """The kind of a Kubernetes object in YAML, unread; raises `ValueError` where there is none."""
    found = re.search(r"^kind: (\w+)\s*$", document, flags=re.MULTILINE)
    if found is None:
        raise ValueError(f"no kind in {document[:200]!r}")
    return found[1]


def name_of(document: str) -> str:
    """The name of a Kubernetes object in YAML, unread; raises `ValueError` where there is none."""
    found = re.search(r"^metadata:\n(?:  .*\n)*?  name: (\S+)$", document, flags=re.MULTILINE)
    if found is None:
        raise ValueError(f"no name in {document[:200]!r}")
    return found[1]


def with_image(document: str, image: str) -> str:
    """Let the containers of a Deployment use `image`, pulled if need be; other kinds stay as they are."""
    if kind_of(document) != "Deployment":
        return document
    deployment = yaml.safe_load(document)
    for container in deployment["spec"]["template"]["spec"]["containers"]:
        container |= {"image": image, "imagePullPolicy": "IfNotPresent"}
    return yaml.safe_dump(deployment)


def _apply(cluster: Cluster, documents: Iterable[str]) -> None:
    # Validating against schemas of this size costs more than applying; the API server judges them anyway.
    flags = ("--server-side", "--force-conflicts", "--validate=ignore", "--field-manager=devcluster")
    text = "\n---\n".join(documents)
    cluster.kubectl("apply", *flags, "--filename=-", input=text)


def _wait_until_judged(cluster: Cluster, probe: Document, *, what: str) -> None:
    def missing() -> str | None:
        try:
            flags = ("--dry-run=server", "--validate=ignore", "--filename=-")
            cluster.kubectl("create", *flags, input=yaml.safe_dump(dict(probe)))
        except CommandFailedError as error:
            if NOT_ANSWERING in error.output:
                return error.output
            raise
        return None

    until(missing, what=f"{what} to answer", check=cluster.check)
