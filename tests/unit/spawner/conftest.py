"""KubeSpawner 7.0 warns about a trait of its own when it is imported; nothing here can mend that."""

import warnings

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "metadata {'default'", DeprecationWarning)
    import kubespawner  # noqa: F401
