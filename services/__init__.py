"""Services beside the hub; each runs as ``python -m services.<name>``."""
