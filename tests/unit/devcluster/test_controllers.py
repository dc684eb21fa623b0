"""What is changed in controllers' own manifests, and what is not."""

from __future__ import annotations

import pytest
import yaml

from tests.devcluster.addons.controllers import kind_of, name_of, split, with_image

MANIFEST = """\
apiVersion: v1
kind: Namespace
metadata:
  labels:
    name: other
  name: queues
---
apiVersion: v1
data:
  settings: |
    ---
    kind: Deployment
kind: ConfigMap
metadata: {name: queue}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: queue}
spec:
  replicas: 1
  template:
    spec:
      serviceAccountName: queue
      containers:
        - {name: manager, image: "far.test/queue:main", imagePullPolicy: Always, args: [-v]}
"""


def test_documents_are_told_apart_without_reading_them() -> None:
    documents = split(MANIFEST)
    assert [kind_of(document) for document in documents] == ["Namespace", "ConfigMap", "Deployment"]
    assert [yaml.safe_load(text) for text in documents] == list(yaml.safe_load_all(MANIFEST))


def test_a_document_without_a_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="no kind in"):
        kind_of("metadata: {name: queue}")


def test_the_name_of_a_document_is_its_own() -> None:
    assert name_of(split(MANIFEST)[0]) == "queues"


def test_only_image_and_pull_policy_change() -> None:
    *_, deployment = split(MANIFEST)
    before, after = (
        yaml.safe_load(deployment),
        yaml.safe_load(with_image(deployment, "near.test/queue@sha256:1")),
    )
    (was,), (is_now,) = (
        document["spec"]["template"]["spec"].pop("containers") for document in (before, after)
    )
    assert after == before
    assert is_now == {**was, "image": "near.test/queue@sha256:1", "imagePullPolicy": "IfNotPresent"}


def test_other_kinds_stay_as_they_are() -> None:
    namespace, config, _ = split(MANIFEST)
    assert [with_image(text, "near.test/queue") for text in (namespace, config)] == [namespace, config]
