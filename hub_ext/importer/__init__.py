"""Coming from what people have: a KubeSpawner profile list becomes a draft catalog.

`values` finds the list in chart values, `entries` reads it as KubeSpawner does, `settings` turns overrides
into plain facts, `draft` writes the catalog, and `compare` checks that each pod stays what it was. What
could not be carried over is a finding; nothing is dropped silently.

Pure: no clock, no network.
"""
