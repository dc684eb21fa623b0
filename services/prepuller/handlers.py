"""The prepuller's page and API.

Shell: speaks HTTP.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from tornado import web

from hub_ext.cluster.images import short_name
from hub_ext.errors import KubeError

from ..base import Api, Page
from .board import MARKS, build_board, build_headline, size_text
from .gate import Question, judge
from .judge import Moment
from .reports import find_stray, plan_report


class _Looks:
    """What all of them need."""

    service: Any

    @property
    def moment(self) -> Moment:
        """What was judged last; raises `KubeError` while there is nothing, which is answered with 503."""
        found: Moment | None = self.service.moment
        if found is None:
            raise KubeError("nodes and pods are not in sight", kind="Node")
        return found


class Warm(_Looks, Api):
    """What the spawn page asks for: a few numbers for each image and pool."""

    async def get(self) -> None:
        self.finish(self.moment.summary.warm())


class Status(_Looks, Api):
    """Everything that is known."""

    async def get(self) -> None:
        self.finish(self.moment.summary.as_dict())


class PlanView(_Looks, Api):
    """What is done next, and what a release would free."""

    async def get(self) -> None:
        moment = self.moment
        self.finish(plan_report(moment.picture, moment.plan))


class Gate(_Looks, Api):
    """Whether enough is warm: `?least=0.9&pool=gpu&profile=gpu-full&catalog=…`."""

    async def get(self) -> None:
        try:
            least = float(self.get_query_argument("least", "0.9"))
        except ValueError:
            least = -1.0
        if not 0 <= least <= 1:
            raise web.HTTPError(HTTPStatus.BAD_REQUEST, "least is a share from 0 to 1")
        question = Question(
            least=least,
            pool=self.get_query_argument("pool", ""),
            profile=self.get_query_argument("profile", ""),
            catalog=self.get_query_argument("catalog", ""),
        )
        self.finish(judge(self.moment.summary.as_dict(), question).as_dict())


class Board(_Looks, Page):
    """The picture of nodes and images."""

    async def get(self) -> None:
        self.show(
            "board.html",
            **facts_of(self.moment),
            catalog_problem=self.service.catalog.problem,
            loop_problem=self.service.loop.problem,
        )


def facts_of(moment: Moment) -> dict[str, Any]:
    """Give what the page shows of a moment."""
    summary = moment.summary
    return {
        "sections": build_board(moment.picture, moment.plan, summary),
        "headline": build_headline(summary),
        "summary": summary,
        "problems": [{**one.as_dict(), "short": short_name(one.subject)} for one in summary.problems],
        "strays": [find_stray(one) for one in moment.picture.desired.strays],
        "freed": [
            (one.node, [short_name(image) for image in one.images], size_text(one.bytes))
            for one in moment.plan.freed
        ],
        "marks": {state.value: mark for state, mark in MARKS.items()},
    }
