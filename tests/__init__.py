"""Tests, and the development cluster that they run on."""
