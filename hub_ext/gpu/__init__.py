"""Shared by the CPU profiles and the GPU ones: what a GPU resource is, and which layouts exist.

Pure: no clock, no network.
"""
