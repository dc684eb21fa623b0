"""GPU nodes without GPUs: NVIDIA's own device plugin and feature discovery over an imitation of the driver.

`products`, `setup` and `config` are pure and say what a node carries; `driver` builds the imitated library,
`hardware` shows its cards to NVIDIA's programs, `node` runs those programs on one node of a cluster.
"""
