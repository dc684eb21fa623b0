"""The enterprise set on the development cluster, installed by the guide's own commands with the real chart.

`guide` reads the commands, `files` makes the changes that an administrator makes, `around` has what an
enterprise has already (a registry, a database, an identity provider, a store), `admin` types, and `person`
works with what came of it.
"""
