"""Tests on real kubelets: what must run in containers. They need root on Linux."""
