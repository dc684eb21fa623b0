"""Preflight: what is missing or wrong on a cluster and in a hub's values, before users find out.

It observes a live cluster, or files that `kubectl get -o json` wrote, the chart's values and the catalog;
judges each against what the catalog promises; and changes nothing.
"""
