"""What all pages and all calls of the REST interface have in common.

Shell: speaks HTTP.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from hub_ext.errors import KubeError
from hub_ext.selection_access import Person
from services.base import Api
from services.base.handlers import Handler

from .parts import Parts
from .people import Asker, ask_hub
from .seen import Seen
from .store import StoreError, refusal
from .verdicts import RefusalReason, RunRefusedError

log = logging.getLogger(__name__)


class Asked(Handler):
    """Knows the parts of the service and who asks, and gives refusals their own status."""

    @property
    def handoff(self) -> Parts:
        found: Parts = self.settings["service"]
        return found

    async def asker(self) -> Asker:
        """Read the one who asks from the hub, as they are at this moment."""
        return await ask_hub(self.handoff.core.hub, self.user)

    async def person(self) -> Person:
        """Give the one who asks."""
        return (await self.asker()).person

    async def found(self) -> tuple[tuple[Seen, ...], str]:
        """Find the runs of the one who asks; without the store, those that are on the cluster, and why."""
        person = await self.person()
        try:
            return await self.handoff.board.mine(person), ""
        except StoreError as error:
            live = await self.handoff.board.mine(person, filed=False)
            return live, f"{refusal(error).message} Runs that ended before are not shown."

    def send_error(self, status_code: int = 500, **kwargs: Any) -> None:
        """Give refusals and failures of the store their own status."""
        error = refused(kwargs)
        super().send_error(error.status if error else status_code, **kwargs)

    def log_exception(self, typ: Any, value: BaseException | None, tb: Any) -> None:
        """Log a refusal as one line: it is the answer, not a fault."""
        if isinstance(value, RunRefusedError):
            log.info("request refused: path=%s reason=%s", self.request.path, value.reason)
        else:
            super().log_exception(typ, value, tb)


class HandoffApi(Asked, Api):
    """Base of the interface: whoever asks, asks about their own runs."""

    def body(self) -> Any:
        """Read the body as JSON of any shape; a page of another site cannot send that type by itself."""
        sent = self.request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if sent != "application/json":
            raise RunRefusedError(
                RefusalReason.BAD_REQUEST, "Send application/json.", status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE
            )
        try:
            return json.loads(self.request.body or b"{}")
        except (ValueError, RecursionError) as error:
            raise RunRefusedError(RefusalReason.BAD_REQUEST, "The body is not JSON.") from error

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer a refusal with its reason and its remedy."""
        error = refused(kwargs)
        if error is None:
            super().write_error(status_code, **kwargs)
        else:
            self.finish({"status": status_code, **error.as_dict()})


def refused(kwargs: Mapping[str, Any]) -> RunRefusedError | None:
    """Read the refusal off what tornado hands to the writers of errors."""
    _, error, _ = kwargs.get("exc_info") or (None, None, None)
    if isinstance(error, RunRefusedError):
        return error
    if isinstance(error, StoreError):
        return refusal(error)
    if isinstance(error, KubeError):
        return RunRefusedError(
            RefusalReason.CLUSTER_UNAVAILABLE,
            "The cluster does not answer at the moment.",
            help="Try again in a minute.",
        )
    return None
