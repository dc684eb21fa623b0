"""GPU workspaces for JupyterHub: a versioned catalog, a spawner, and the rules between them.

Imports nothing: the pure core must load in milliseconds and without a hub.
"""
