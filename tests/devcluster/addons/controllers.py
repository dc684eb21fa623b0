"""Controllers installed from their own manifests, unchanged but for image names and pull policy.

Webhooks come last: a failing webhook for Deployments or pods, as Kueue has, would refuse the next addon's.

Shell: talks to the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from tests.devcluster.addons.registry import Registry
from tests.devcluster.cluster import Cluster
from tests.devcluster.errors import CommandFailedError
from tests.devcluster.waiting import until

Document = Mapping[str, Any]
READY_SECONDS = 180
APPLY_SECONDS = 120
NOT_ANSWERING = "failed calling webhook"
"""How the API server begins when a webhook cannot be reached or has no valid certificate yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """One controller of `tests.devcluster.build`: an image and a manifest of the same name."""

    name: str
    namespace: str
    deployment: str
    probe: Document | None = None
    """An object that its webhooks judge; it is only sent as a dry run. `None` where there are no webhooks."""

    @property
    def programs(self) -> tuple[str, ...]:
        return (f"image:{self.name}", f"manifest:{self.name}")

    def install(self, cluster: Cluster) -> Callable[[], None]:
        """Apply all but the webhooks; what is returned applies them and waits until they answer."""
        text = cluster.programs[f"manifest:{self.name}"].read_text()
        image = Registry(cluster).publish_built(self.name)
        documents = [with_image(document, image) for document in yaml.safe_load_all(text) if document]
        webhooks = [document for document in documents if is_webhook(document)]
        others = [document for document in documents if not is_webhook(document)]
        cluster.apply(*others, timeout=APPLY_SECONDS)

        def ready() -> None:
            if webhooks:
                cluster.apply(*webhooks, timeout=APPLY_SECONDS)
            cluster.wait_for(
                f"deployment/{self.deployment}",
                "condition=Available",
                namespace=self.namespace,
                timeout=READY_SECONDS,
            )
            if self.probe is not None:
                _wait_until_judged(cluster, self.probe, what=f"webhooks of {self.name}")

        return ready


def with_image(document: Document, image: str) -> Document:
    """Let the containers of a Deployment use `image`, pulled if need be; other kinds stay as they are."""
    if document["kind"] != "Deployment":
        return document
    template = document["spec"]["template"]
    containers = [
        {**container, "image": image, "imagePullPolicy": "IfNotPresent"}
        for container in template["spec"]["containers"]
    ]
    spec = {**template["spec"], "containers": containers}
    return {**document, "spec": {**document["spec"], "template": {**template, "spec": spec}}}


def is_webhook(document: Document) -> bool:
    """Whether the document makes the API server ask somebody before it takes an object."""
    return str(document["kind"]).endswith("WebhookConfiguration")


def _wait_until_judged(cluster: Cluster, probe: Document, *, what: str) -> None:
    def missing() -> str | None:
        try:
            cluster.kubectl("create", "--dry-run=server", "--filename=-", input=yaml.safe_dump(dict(probe)))
        except CommandFailedError as error:
            if NOT_ANSWERING in error.output:
                return error.output
            raise
        return None

    until(missing, what=f"{what} to answer", timeout=READY_SECONDS, check=cluster.check)
