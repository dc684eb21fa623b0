"""What runs are on the cluster: objects in API spelling, made from a `Plan` and nothing that a user wrote.

Pure: no clock, no network.
"""
