"""What is asked of the API server for one server, and its answers as refusals in the user's words.

Overridden seams of KubeSpawner 7.0 and 7.1, and why nothing else will do:

- `_make_create_pod_request` (its part `_create_pod`): upstream writes the manifest, tokens included, to the
  log when the API server refuses it, and takes each conflict for a pod of the same name.
- `_make_create_pvc_request`, `_make_delete_pod_request`: clear refusals, and a grace period of at least a
  second.

Shell: talks to the hub and the Kubernetes API; judges nothing by itself.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, Final

from jupyterhub.utils import exponential_backoff
from kubernetes_asyncio.client.rest import ApiException
from kubespawner import KubeSpawner
from tornado import web

from .attempt import Attempt
from .hub_errors import hub_error
from .quota.verdicts import Reason
from .quota.verdicts import Refusal as QuotaRefusal
from .selection import Refusal
from .spawner_objects import NO_ANSWER, explain_api_error

_CREATE_SHARE: Final = 0.8
"""Part of the start timeout in which creating the pod is retried; after it the reason can still be told."""


class RequestSpawner(KubeSpawner):
    """Creates and deletes, and says clearly why not."""

    namespace: str  # KubeSpawner's traits
    start_timeout: int

    _attempt: Attempt | None = None

    async def _create_pod(self, pod: Any, request_timeout: int) -> None:
        problem = NO_ANSWER

        async def attempt() -> bool:
            nonlocal problem
            try:
                await asyncio.wait_for(self.api.create_namespaced_pod(self.namespace, pod), request_timeout)
            except TimeoutError:
                return False
            except ApiException as error:
                problem = explain_api_error(error)
                self.log.warning("No pod %s: reason=%s", pod.metadata.name, problem.reason)
                if not problem.retry:
                    if self._attempt is not None:
                        self._attempt.refuse(problem.reason.value)
                    raise self._refuse_by_api(problem) from None
                if problem.reason is Reason.NAME_TAKEN:
                    await self.stop(now=True)
                return False
            return True

        try:
            await exponential_backoff(attempt, problem.text, timeout=_CREATE_SHARE * self.start_timeout)
        except TimeoutError:
            raise self._refuse_by_api(problem) from None

    async def _make_create_pvc_request(self, pvc: Any, request_timeout: int) -> bool:
        try:
            return bool(await super()._make_create_pvc_request(pvc, request_timeout))
        except ApiException as error:
            raise self._refuse_by_api(explain_api_error(error)) from None

    async def _make_delete_pod_request(
        self, pod_name: str, delete_options: Any, grace_seconds: int, request_timeout: int
    ) -> bool:
        """Give the kubelet at least a second: a pod that is gone at once can still hold its device."""
        grace = max(1, grace_seconds)
        delete_options.grace_period_seconds = grace
        return bool(await super()._make_delete_pod_request(pod_name, delete_options, grace, request_timeout))

    # Refusals

    def _refuse(self, refusal: Refusal) -> web.HTTPError:
        """Make the exception that shows one text on the form, the progress page and in REST answers."""
        self.log.warning(
            "Refused to start %s: reason=%s status=%d", self._log_name, refusal.reason, refusal.status
        )
        return hub_error(refusal, self.handler.settings if self.handler else None)

    def _refuse_by_api(self, problem: QuotaRefusal) -> web.HTTPError:
        self.log.warning("The API server on %s: %r", self._log_name, problem.detail)
        if self._attempt is not None:
            self._attempt.reason = problem.reason.value
        status = HTTPStatus.SERVICE_UNAVAILABLE if problem.retry else HTTPStatus.FORBIDDEN
        return self._refuse(Refusal(reason=problem.reason, text=problem.text, status=status))
