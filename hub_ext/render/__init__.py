"""One catalog, many targets: pods, chart values, GPU Operator configuration, quotas, queues.

Everything here is a pure function: the same input gives the same bytes, and no input is changed.
"""
