"""What the cluster is doing: one shared watch, one snapshot, and what it means for somebody who waits.

`watch` is the shell; the rest is pure. Imports nothing by itself.
"""
