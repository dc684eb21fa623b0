"""Tests that end at the API server: real control plane, machines played by kwok."""
