"""What is changed in controllers' own manifests, and what is not."""

from __future__ import annotations

import copy

from tests.devcluster.addons.controllers import is_webhook, with_image

DEPLOYMENT = {
    "kind": "Deployment",
    "metadata": {"name": "queue"},
    "spec": {
        "replicas": 1,
        "template": {
            "spec": {
                "serviceAccountName": "queue",
                "containers": [
                    {
                        "name": "manager",
                        "image": "far.test/queue:main",
                        "imagePullPolicy": "Always",
                        "args": ["-v"],
                    }
                ],
            }
        },
    },
}


def test_only_image_and_pull_policy_change() -> None:
    before = copy.deepcopy(DEPLOYMENT)
    changed = copy.deepcopy(dict(with_image(DEPLOYMENT, "near.test/queue@sha256:1")))
    assert before == DEPLOYMENT, "the input is kept"
    (container,) = changed["spec"]["template"]["spec"]["containers"]
    assert container.pop("image") == "near.test/queue@sha256:1"
    assert container.pop("imagePullPolicy") == "IfNotPresent"
    for key in ("image", "imagePullPolicy"):
        del before["spec"]["template"]["spec"]["containers"][0][key]  # type: ignore[index]
    assert changed == before


def test_other_kinds_stay_as_they_are() -> None:
    service = {"kind": "Service", "metadata": {"name": "queue"}}
    assert with_image(service, "near.test/queue") is service


def test_webhooks_are_told_apart() -> None:
    kinds = ["MutatingWebhookConfiguration", "Service", "ValidatingWebhookConfiguration", "APIService"]
    assert [kind for kind in kinds if is_webhook({"kind": kind})] == [kinds[0], kinds[2]]
