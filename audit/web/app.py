"""The pages of the review, for the desk that `gate.py` let in. A verdict is on disk before it is answered."""

from __future__ import annotations

import threading
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Form, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from audit.cases import Cases
from audit.store import AuditStore
from audit.verdicts import LONGEST_NOTES, AuditVerdict, Choice
from audit.web.blocks import Region, blocks
from audit.web.desk import Refused, ReviewDesk, Submission, known
from audit.web.outline import Text, outline, parts
from audit.web.pieces import pieces, searched
from audit.web.windows import portion_end
from builder.errors import StepdownError

HERE = Path(__file__).parent
LONGEST_SEARCH = 200
VERDICTS = {
    AuditVerdict.TIGHT: ("1", "tight", "one tier lower would not do"),
    AuditVerdict.UNCERTAIN: ("2", "uncertain", "I can not tell"),
    AuditVerdict.LOWER: ("3", "further-downgradeable", "one tier lower would still handle it"),
}
"""Key, name and meaning of each."""

_Step = Annotated[str, Query(alias="id", max_length=1000)]
_Saved = Annotated[str, Query(max_length=1000)]
_Search = Annotated[str, Query(max_length=LONGEST_SEARCH)]
_Sent = Annotated[str, Form(max_length=1000)]
_Known = Annotated[str, Form(alias="known", max_length=1000)]
_Notes = Annotated[str, Form(max_length=2 * LONGEST_NOTES)]


def review_app(store: AuditStore, cases: Cases) -> FastAPI:
    """The app; every request carries the `desk` of its reviewer in its scope."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.mount("/static", StaticFiles(directory=HERE / "static"))
    room = _Room(store, cases)
    app.exception_handler(StepdownError)(room.refused)
    _add_pages(app, room)
    _add_texts(app, room)
    _add_forms(app, room)
    return app


class _Room:
    """What all requests share."""

    def __init__(self, store: AuditStore, cases: Cases) -> None:
        self.store, self.cases = store, cases
        self.writing = threading.Lock()
        """Held from looking at what stands until the change of it is on disk."""
        self._templates = _templates()

    def desk(self, request: Request) -> ReviewDesk:
        return ReviewDesk(self.store, self.cases, request.scope["desk"])

    def page(self, name: str, desk: ReviewDesk, status: int = 200, **values: Any) -> HTMLResponse:
        latest = self.store.latest(desk.reviewer)
        common = {
            "desk": desk,
            "progress": self.store.progress(desk.reviewer),
            "verdicts": VERDICTS,
            "latest": latest,
            "latest_known": known(latest),
            "longest_notes": LONGEST_NOTES,
            "longest_search": LONGEST_SEARCH,
        }
        return HTMLResponse(self._templates.get_template(name).render({**common, **values}), status)

    def refused(self, request: Request, error: Exception) -> Response:
        at = error.at if isinstance(error, Refused) else request.scope["desk"].path
        status = 409 if isinstance(error, Refused) else 400
        if _wants_json(request):
            return JSONResponse({"problem": str(error), "at": at}, status)
        return self.page("refused.html", self.desk(request), status, problem=str(error), at=at)


def _add_pages(app: FastAPI, room: _Room) -> None:
    @app.get("/review/{reviewer}/")
    def begin(request: Request) -> Response:
        """The first step that is still open."""
        desk = room.desk(request)
        step = desk.next_open()
        return RedirectResponse(desk.page(step) if step else f"{desk.path}end", 303)

    @app.get("/review/{reviewer}/step")
    def step(request: Request, step: _Step, q: _Search = "", saved: _Saved = "") -> Response:
        desk = room.desk(request)
        case, place, said = desk.case(step), desk.places[step], desk.said.get(step)
        pattern = searched(q.strip())
        return room.page(
            "step.html",
            desk,
            case=case,
            outline=outline(case, pattern),
            pattern=pattern,
            query=q.strip(),
            place=place,
            before=desk.neighbour(place, -1),
            after=desk.neighbour(place, 1),
            said=said,
            known=known(said),
            guess=desk.guess(step),
            former=[old for old in room.store.former(step) if old.reviewer == desk.reviewer],
            saved=desk.saved(saved),
        )

    @app.get("/review/{reviewer}/queue")
    def queue(request: Request) -> Response:
        return room.page("queue.html", room.desk(request))

    @app.get("/review/{reviewer}/end")
    def end(request: Request, saved: _Saved = "") -> Response:
        desk = room.desk(request)
        return room.page("end.html", desk, saved=desk.saved(saved), first_open=desk.next_open())


def _add_texts(app: FastAPI, room: _Room) -> None:
    @lru_cache(maxsize=4)
    def numbered(choice: Choice, number: int) -> tuple[Text, list[Region]]:
        """A text of a step, kept while it is fetched in portions. Raises IndexError where there is none."""
        case = room.cases.of(choice.benchmark, choice.instance_id, choice.step_index)
        text = outline(case).texts[max(number, 0)]
        return text, text.regions()

    @app.get("/review/{reviewer}/text")
    def text(request: Request, step: _Step, number: int, start: int, end: int, q: _Search = "") -> Response:
        """A portion of a long text, as a page of its own or as JSON for the page that has it."""
        desk, query = room.desk(request), q.strip()
        try:
            whole, found = numbered(desk.choice(step), number)
        except IndexError:
            raise Refused("There is no such text.", desk.page(step)) from None
        if not 0 <= start < end <= len(whole.text):
            raise Refused("There is no such part of the text.", desk.page(step))
        last = portion_end(whole.text, start, end)
        portion = blocks(whole.text, found, start, last, searched(query))
        if _wants_json(request):
            return JSONResponse({"end": last, "blocks": [[block.mono, block.runs] for block in portion]})
        return room.page("text.html", desk, step=step, whole=whole, blocks=portion, start=start, last=last, query=query)


def _add_forms(app: FastAPI, room: _Room) -> None:
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
        with room.writing:
            room.desk(request).answer(Submission(step, prefix, known_verdict, verdict, notes))
        return _on(request, room.desk(request).page_after(step))

    @app.post("/review/{reviewer}/undo")
    def undo(request: Request, step: _Sent, known_verdict: _Known = "") -> Response:
        """Take back the latest verdict and go to its step."""
        with room.writing:
            desk = room.desk(request)
            desk.take_back(step, known_verdict)
        return _on(request, desk.page(step))


def _wants_json(request: Request) -> bool:
    return request.headers.get("accept") == "application/json"


def _on(request: Request, address: str) -> Response:
    return JSONResponse({"at": address}) if _wants_json(request) else RedirectResponse(address, 303)


def _templates() -> Environment:
    templates = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"pieces": pieces, "parts": parts, "thousands": "{:,}".format}
    return templates
