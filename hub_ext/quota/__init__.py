"""Quota: what the cluster allows, and what its refusals mean for the person who meets them.

Pure: no clock, no network.
"""
