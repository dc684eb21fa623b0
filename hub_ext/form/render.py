"""The page as HTML, for JupyterHub to put into its own.

Shell: reads the files beside it, once.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from .view import Page

_FILES: Final = {"css": "page.css", "js": "page.js", "tokens": "templates/gpu-workspaces/tokens.css"}


def render(page: Page) -> str:
    """Give the part of the form between the hub's `<form>` and its button; every value is escaped."""
    return _template().render(page=page)


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("hub_ext.form", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    loader = environment.loader
    assert loader is not None  # noqa: S101
    for name, file in _FILES.items():
        # Files of this package, not values: `</style>` and `</script>` do not occur in them.
        environment.globals[name] = Markup(loader.get_source(environment, file)[0])  # noqa: S704
    return environment.get_template("page.html")
