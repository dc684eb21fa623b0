"""A small catalog with something of everything that a choice can meet, and the people who meet it."""

from __future__ import annotations

from datetime import date
from functools import cache

import yaml

from hub_ext.catalog.load import load_catalog
from hub_ext.catalog.model import Catalog
from hub_ext.selection_access import Person

TODAY = date(2026, 12, 1)

ADA = Person(name="ada", groups=frozenset({"nlp"}))
"""In the team that may start all."""
BOB = Person(name="bob")
"""In no team: sees what is open to everyone."""
EVE = Person(name="eve", groups=frozenset({"nlp", "vision"}))
"""In two teams."""

_A, _B, _C = ("a" * 64, "b" * 64, "c" * 64)

TEXT = f"""
apiVersion: gpu-workspaces/v1
kind: Catalog
images:
  base: {{ref: "registry.example.com/base@sha256:{_A}", displayName: Plain Python}}
  torch: {{ref: "registry.example.com/torch@sha256:{_B}", displayName: "PyTorch, CUDA 13.0", cuda: "13.0"}}
  old-torch:
    ref: "registry.example.com/torch@sha256:{_C}"
    displayName: PyTorch, CUDA 12.4
    cuda: "12.4"
pools:
  h200: {{nodeSelector: {{pool: h200}}, gpu: {{product: NVIDIA-H200, sharing: exclusive, perNode: 8}}}}
  mig:
    nodeSelector: {{pool: mig}}
    gpu: {{product: NVIDIA-H200, sharing: mig, geometry: {{1g.18gb: 7}}}}
  turns:
    nodeSelector: {{pool: turns}}
    gpu: {{product: NVIDIA-L40S, sharing: time-slicing, replicas: 4, renameByDefault: true}}
teams:
  nlp: {{displayName: Language, groups: [nlp], costCenter: CC-1}}
  vision: {{groups: [vision], users: [ivy]}}
aliases: {{llm: full}}
defaults:
  profile: cpu
  storage: {{home: {{size: 10Gi}}}}
  session: {{idleTimeout: 90m, maxDuration: 12h, warnBefore: [30m, 2m]}}
profiles:
  - name: cpu
    version: 1
    displayName: Notebook
    description: For reading data.
    images: [base]
    resources: {{cpu: {{request: 1, limit: 2}}, memory: 4Gi}}
    choices:
      size:
        displayName: Size
        options:
          usual: {{displayName: Usual}}
          large:
            displayName: Large
            resources: {{cpu: 8, memory: 32Gi}}
            price: {{perHour: 0.4, currency: EUR}}
          huge: {{displayName: Huge, resources: {{cpu: 64, memory: 512Gi}}, access: {{teams: [nlp]}}}}
    price: {{perHour: 0.05, currency: EUR}}
  - name: full
    version: 3
    displayName: One full card
    images: [torch, old-torch]
    resources: {{cpu: 8, memory: 64Gi, gpu: {{pool: h200}}}}
    choices:
      cards:
        displayName: Cards
        options:
          one: {{displayName: One card}}
          two:
            displayName: Two cards
            resources: {{gpu: {{pool: h200, count: 2}}}}
            requires: {{image: [torch]}}
    storage: {{scratch: {{sizeLimit: 500Gi}}}}
    access: {{teams: [nlp]}}
    price: {{perHour: 4.2, currency: EUR}}
  - name: full
    version: 2
    state: deprecated
    replacedBy: 3
    until: 2027-03-31
    message: CUDA 12.4 images end on 31 March.
    displayName: One full card
    images: [torch, old-torch]
    resources: {{cpu: 8, memory: 64Gi, gpu: {{pool: h200}}}}
    access: {{teams: [nlp]}}
  - name: full
    version: 1
    state: retired
    replacedBy: 2
    displayName: One full card
    images: [old-torch]
    resources: {{cpu: 8, memory: 64Gi, gpu: {{pool: h200}}}}
    access: {{teams: [nlp]}}
  - name: slice
    version: 1
    displayName: GPU slice
    images: [torch]
    resources: {{cpu: 4, memory: 16Gi, gpu: {{pool: mig}}}}
    access: {{teams: [nlp, vision]}}
  - name: turns
    version: 1
    displayName: Shared GPU
    images: [torch]
    choices:
      image:
        displayName: Image
        options: {{torch: {{displayName: PyTorch, image: torch}}}}
        custom: {{registries: [registry.example.com/nlp]}}
    resources: {{cpu: 2, memory: 8Gi, gpu: {{pool: turns}}}}
  - name: lab
    version: 1
    state: hidden
    displayName: Laboratory
    images: [base]
    resources: {{cpu: 1, memory: 1Gi}}
  - name: gone
    version: 1
    state: retired
    message: Its nodes are sold.
    displayName: Old pool
    images: [base]
    resources: {{cpu: 1, memory: 1Gi}}
"""


@cache
def workspaces() -> Catalog:
    """Give the catalog; it is frozen, so all tests can share it."""
    return load_catalog(yaml.safe_load(TEXT))


@cache
def open_catalog() -> Catalog:
    """Give the same catalog with nothing kept from anybody."""
    data = yaml.safe_load(TEXT)
    for profile in data["profiles"]:
        profile.pop("access", None)
        for choice in profile.get("choices", {}).values():
            for option in choice["options"].values():
                option.pop("access", None)
    return load_catalog(data)
