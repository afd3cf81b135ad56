"""The pages of the review, for the reviewer whom `gate.py` let in. A verdict is on disk before it is answered."""

from __future__ import annotations

import threading
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Form, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from stepdown.audit.cases import CaseReader
from stepdown.audit.store import AuditStore
from stepdown.audit.verdicts import LONGEST_NOTES, AuditStep, AuditVerdict
from stepdown.audit.web.outline import outline
from stepdown.audit.web.session import RequestRefused, ReviewSession, Submission, verdict_stamp
from stepdown.builder.errors import StepdownError
from stepdown.builder.pages.blocks import Region, blocks
from stepdown.builder.pages.rendering import page_templates, pages_app, portion_json, wants_json
from stepdown.builder.pages.styled import search_pattern
from stepdown.builder.pages.turns import TextView
from stepdown.builder.pages.windows import portion_end

HERE = Path(__file__).parent
LONGEST_SEARCH = 200
VERDICTS = {
    AuditVerdict.TIGHT: ("1", "tight", "one tier lower would not do"),
    AuditVerdict.UNCERTAIN: ("2", "uncertain", "I can not tell"),
    AuditVerdict.LOWER: ("3", "further-downgradeable", "one tier lower would still handle it"),
}
"""The key, the name and the meaning of each verdict."""

_Step = Annotated[str, Query(alias="id", max_length=1000)]
_Saved = Annotated[str, Query(max_length=1000)]
_Search = Annotated[str, Query(max_length=LONGEST_SEARCH)]
_Sent = Annotated[str, Form(max_length=1000)]
_Known = Annotated[str, Form(alias="known", max_length=1000)]
_Notes = Annotated[str, Form(max_length=2 * LONGEST_NOTES)]


def review_app(store: AuditStore, cases: CaseReader) -> FastAPI:
    """The app. Every request must carry the `access` of its reviewer in its scope."""
    app = pages_app(HERE)
    shared = _SharedState(store, cases)
    app.exception_handler(StepdownError)(shared.refused)
    _add_pages(app, shared)
    _add_texts(app, shared)
    _add_forms(app, shared)
    return app


class _SharedState:
    """What all requests share."""

    def __init__(self, store: AuditStore, cases: CaseReader) -> None:
        self.store, self.cases = store, cases
        self.writing = threading.Lock()
        """Held from reading what stands until the change to it is on disk."""
        self._templates = page_templates(HERE)

    def session(self, request: Request) -> ReviewSession:
        return ReviewSession(self.store, self.cases, request.scope["access"])

    def page(self, name: str, session: ReviewSession, status: int = 200, **values: Any) -> HTMLResponse:
        latest = self.store.latest(session.reviewer)
        common = {
            "session": session,
            "progress": self.store.progress(session.reviewer),
            "verdicts": VERDICTS,
            "latest": latest,
            "latest_known": verdict_stamp(latest),
            "longest_notes": LONGEST_NOTES,
            "longest_search": LONGEST_SEARCH,
        }
        return HTMLResponse(self._templates.get_template(name).render({**common, **values}), status)

    def refused(self, request: Request, error: Exception) -> Response:
        at = error.at if isinstance(error, RequestRefused) else request.scope["access"].path
        status = 409 if isinstance(error, RequestRefused) else 400
        if wants_json(request):
            return JSONResponse({"problem": str(error), "at": at}, status)
        return self.page("refused.html", self.session(request), status, problem=str(error), at=at)


def _add_pages(app: FastAPI, shared: _SharedState) -> None:
    @app.get("/review/{reviewer}/")
    def begin(request: Request) -> Response:
        """The first step that is still open."""
        session = shared.session(request)
        step = session.next_open()
        return RedirectResponse(session.page(step) if step else f"{session.path}end", 303)

    @app.get("/review/{reviewer}/step")
    def step(request: Request, step: _Step, q: _Search = "", saved: _Saved = "") -> Response:
        session = shared.session(request)
        case, place, said = session.case(step), session.places[step], session.said.get(step)
        pattern = search_pattern(q.strip())
        return shared.page(
            "step.html",
            session,
            case=case,
            outline=outline(case, pattern),
            pattern=pattern,
            query=q.strip(),
            place=place,
            before=session.neighbour(place, -1),
            after=session.neighbour(place, 1),
            said=said,
            known=verdict_stamp(said),
            guess=session.guess(step),
            former=[old for old in shared.store.former(step) if old.reviewer == session.reviewer],
            saved=session.saved(saved),
        )

    @app.get("/review/{reviewer}/queue")
    def queue(request: Request) -> Response:
        return shared.page("queue.html", shared.session(request))

    @app.get("/review/{reviewer}/end")
    def end(request: Request, saved: _Saved = "") -> Response:
        session = shared.session(request)
        return shared.page("end.html", session, saved=session.saved(saved), first_open=session.next_open())


def _add_texts(app: FastAPI, shared: _SharedState) -> None:
    @lru_cache(maxsize=4)
    def numbered(sampled: AuditStep, number: int) -> tuple[TextView, list[Region]]:
        """A text of a step, cached while it is fetched in portions. Raises IndexError where there is none."""
        case = shared.cases.read(sampled.benchmark, sampled.instance_id, sampled.step_index)
        text = outline(case).texts[max(number, 0)]
        return text, text.regions()

    @app.get("/review/{reviewer}/text")
    def text(request: Request, step: _Step, number: int, start: int, end: int, q: _Search = "") -> Response:
        """A portion of a long text, as a page of its own or as JSON for the page that has it."""
        session, query = shared.session(request), q.strip()
        try:
            whole, found = numbered(session.sampled_step(step), number)
        except IndexError:
            raise RequestRefused("There is no such text.", session.page(step)) from None
        if not 0 <= start < end <= len(whole.text):
            raise RequestRefused("There is no such part of the text.", session.page(step))
        last = portion_end(whole.text, start, end)
        portion = blocks(whole.text, found, start, last, search_pattern(query))
        if wants_json(request):
            return JSONResponse(portion_json(last, portion))
        return shared.page(
            "text.html", session, step=step, whole=whole, blocks=portion, start=start, last=last, query=query
        )


def _add_forms(app: FastAPI, shared: _SharedState) -> None:
    @app.post("/review/{reviewer}/verdict")
    def verdict(
        request: Request,
        step: _Sent,
        prefix: _Sent,
        known_verdict: _Known = "",
        verdict: _Sent = "",
        notes: _Notes = "",
    ) -> Response:
        """Keep a verdict, then name the next step."""
        with shared.writing:
            shared.session(request).record(Submission(step, prefix, known_verdict, verdict, notes))
        return _go_on(request, shared.session(request).page_after(step))

    @app.post("/review/{reviewer}/undo")
    def undo(request: Request, step: _Sent, known_verdict: _Known = "") -> Response:
        """Take back the latest verdict and go to its step."""
        with shared.writing:
            session = shared.session(request)
            session.take_back(step, known_verdict)
        return _go_on(request, session.page(step))


def _go_on(request: Request, address: str) -> Response:
    return JSONResponse({"at": address}) if wants_json(request) else RedirectResponse(address, 303)
