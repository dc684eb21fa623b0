"""What all services have in common: settings, sign-in, periodic work, metrics, an orderly end.

A service is a subclass of `Service` and runs by ``raise SystemExit(main(IdleCuller))`` in its `__main__`, as
a process of the hub and as a Deployment alike: both tell it the same in environment variables.
"""

from .catalog import CatalogFile
from .handlers import ANYONE, Api, Page, Refusal
from .loop import Loop
from .program import main
from .service import Context, Service
from .settings import PrometheusSettings, ServiceSettings, SettingsError, read_settings

__all__ = [
    "ANYONE",
    "Api",
    "CatalogFile",
    "Context",
    "Loop",
    "Page",
    "PrometheusSettings",
    "Refusal",
    "Service",
    "ServiceSettings",
    "SettingsError",
    "main",
    "read_settings",
]
