"""What is asked of the API server for one server, and its answers as refusals in the user's words.

Overridden seams of KubeSpawner 7.0 and 7.1, and why nothing else will do:

- `_make_create_pod_request` (its part `_create_pod`): upstream writes the manifest, tokens included, to the
  log when the API server refuses it, and takes each conflict for a pod of the same name.
- `_make_create_pvc_request`, `_make_delete_pod_request`: clear refusals, also before a claim is made, and a
  grace period of at least a second.

Shell: talks to the hub and the Kubernetes API; judges nothing by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, TypeVar

import aiohttp
from jupyterhub.utils import exponential_backoff, maybe_future
from kubernetes_asyncio.client.rest import ApiException
from kubespawner import KubeSpawner
from tornado import web

from .attempt import Attempt
from .cluster.shared import shared_metrics
from .hub_errors import hub_error
from .patience import Patience
from .quota.refusals import explain, read_answer
from .quota.texts import gave_up
from .quota.verdicts import Reason
from .quota.verdicts import Refusal as QuotaRefusal
from .selection import Refusal
from .spawner_objects import NO_ANSWER, explain_api_error, to_object

UNANSWERED: Final = (aiohttp.ClientError, ConnectionError)
"""What a client raises when the API server cannot be reached."""

_LEAST_SECONDS: Final = 15
"""The API server waits ten seconds for a webhook or for a quota, and only then says which one was silent."""

_Answer = TypeVar("_Answer")

_CREATE_SHARE: Final = 0.8
"""Part of the start timeout in which creating the pod is retried; after it the reason can still be told."""


class RequestSpawner(KubeSpawner):
    """Creates and deletes, and says clearly why not."""

    namespace: str  # KubeSpawner's trait

    _attempt: Attempt | None = None
    _patience = Patience(own=60, queue=0)
    """What the current attempt may take, and a minute beside one."""

    async def _create_pod(self, manifest: Mapping[str, Any], request_timeout: int) -> None:
        problem = NO_ANSWER

        async def attempt() -> bool:
            nonlocal problem
            try:
                refusal = await self._post(manifest, request_timeout)
            except (TimeoutError, *UNANSWERED):
                refusal = NO_ANSWER
            if refusal is None:
                return True
            problem = refusal
            self.log.warning("No pod %s: reason=%s", manifest["metadata"]["name"], problem.reason)
            if self._attempt is not None:
                self._attempt.note(problem)
            if not problem.retry:
                raise self._refuse_by_api(await self._helped(problem))
            if problem.reason is Reason.NAME_TAKEN:
                await self.stop(now=True)
            return False

        try:
            await exponential_backoff(attempt, problem.text, timeout=_CREATE_SHARE * self._patience.own)
        except TimeoutError:
            raise self._refuse_by_api(problem) from None

    async def _post(
        self, manifest: Mapping[str, Any], request_timeout: int, **options: str
    ) -> QuotaRefusal | None:
        """Ask for a pod once. What was made is not read from the answer: the watch shows it anyway.

        Raises
        ------
        TimeoutError
            No answer in time.
        """
        create = self.api.create_namespaced_pod(self.namespace, manifest, _preload_content=False, **options)
        answer = await asyncio.wait_for(create, max(request_timeout, _LEAST_SECONDS))
        try:
            if answer.status < HTTPStatus.MULTIPLE_CHOICES:
                return None
            return explain(read_answer(answer.status, await answer.read()))
        finally:
            answer.release()

    async def _make_create_pvc_request(self, pvc: Any, request_timeout: int) -> bool:
        """Make a claim only where the API server would take the pod: a refusal leaves nothing behind."""
        problem = await self._try_out(request_timeout)
        if problem is not None and not problem.retry and problem.reason is not Reason.INVALID_POD:
            if self._attempt is not None:
                self._attempt.note(problem)
            raise self._refuse_by_api(await self._helped(problem))
        try:
            return bool(await super()._make_create_pvc_request(pvc, request_timeout))
        except ApiException as error:
            raise self._refuse_by_api(explain_api_error(error)) from None

    async def _ask(self, request: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """Make a request until the API server answers; those who wait are told that it does not."""
        found: list[_Answer] = []

        async def once() -> bool:
            try:
                found.append(await asyncio.wait_for(request(), self.k8s_api_request_timeout))
            except (TimeoutError, *UNANSWERED):
                if self._attempt is not None:
                    self._attempt.note(NO_ANSWER)
                return False
            return True

        try:
            await exponential_backoff(once, NO_ANSWER.text, timeout=_CREATE_SHARE * self._patience.own)
        except TimeoutError:
            raise self._refuse_by_api(NO_ANSWER) from None
        return found[0]

    async def _try_out(self, request_timeout: int) -> QuotaRefusal | None:
        """Ask what would become of the pod; without an answer nothing speaks against it.

        A webhook that cannot be asked so makes it an `INVALID_POD`.
        """
        pod = await self.get_pod_manifest()
        if self.modify_pod_hook:
            pod = await maybe_future(self.modify_pod_hook(self, pod))
        try:
            return await self._post(to_object(self.api.api_client, pod), request_timeout, dry_run="All")
        except (TimeoutError, *UNANSWERED):
            return None

    async def _make_delete_pod_request(
        self, pod_name: str, delete_options: Any, grace_seconds: int, request_timeout: int
    ) -> bool:
        """Give the kubelet at least a second: a pod that is gone at once can still hold its device."""
        grace = max(1, grace_seconds)
        delete_options.grace_period_seconds = grace
        return bool(await super()._make_delete_pod_request(pod_name, delete_options, grace, request_timeout))

    # Refusals

    @property
    def _asked_profile(self) -> str:
        """Name of the catalog that is asked for; empty for one that is not there."""
        raise NotImplementedError

    async def _helped(self, problem: QuotaRefusal) -> QuotaRefusal:
        """Add to a refusal what would fit instead, if anything would."""
        raise NotImplementedError

    def _refuse(self, refusal: Refusal) -> web.HTTPError:
        """Make the exception of a start that may not be, and count it."""
        shared_metrics().count_refusal(refusal.reason, profile=self._asked_profile)
        return self._end(refusal)

    def _end(self, refusal: Refusal) -> web.HTTPError:
        """Make the exception that shows one text on the form, the progress page and in REST answers."""
        self.log.warning(
            "Refused to start %s: reason=%s status=%d text=%r",
            self._log_name,
            refusal.reason,
            refusal.status,
            refusal.text,
        )
        return hub_error(refusal, self.handler.settings if self.handler else None)

    def _refuse_by_limit(self, problem: QuotaRefusal) -> web.HTTPError:
        return self._refuse(Refusal(reason=problem.reason, text=problem.text, status=HTTPStatus.FORBIDDEN))

    def _refuse_by_api(self, problem: QuotaRefusal) -> web.HTTPError:
        self.log.warning("The API server on %s: %r", self._log_name, problem.detail)
        if self._attempt is not None:
            self._attempt.reason = problem.reason.value
        status = HTTPStatus.SERVICE_UNAVAILABLE if problem.retry else HTTPStatus.FORBIDDEN
        text = gave_up(problem.text) if problem.retry else problem.text
        return self._refuse(Refusal(reason=problem.reason, text=text, status=status))
