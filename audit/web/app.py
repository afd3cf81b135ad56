"""The pages of the review, for the desk that `gate.py` let in. A verdict is on disk before it is answered."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import FastAPI, Form, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from audit.cases import Cases, ReviewCase
from audit.store import AuditStore, plain_notes
from audit.verdicts import LONGEST_NOTES, AuditVerdict, Choice, Recorded
from audit.web.blocks import Region, blocks
from audit.web.gate import Desk
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
_Search = Annotated[str, Query(max_length=LONGEST_SEARCH)]
_FormText = Annotated[str, Form(max_length=1000)]
_Notes = Annotated[str, Form(max_length=2 * LONGEST_NOTES)]


class Refused(StepdownError):
    """A submission that does not fit what stands now. `at` is the page to look at instead."""

    def __init__(self, problem: str, at: str) -> None:
        super().__init__(problem)
        self.at = at


class _Desk:
    """One reviewer's view of the store."""

    def __init__(self, store: AuditStore, cases: Cases, desk: Desk) -> None:
        self.store, self.cases, self.reviewer, self.path = store, cases, desk.reviewer, desk.path
        self.queue = store.queue(desk.reviewer)
        self.places = {item.step.id: place for place, item in enumerate(self.queue)}

    def choice(self, step: str) -> Choice:
        """A step of this queue."""
        place = self.places.get(step)
        if place is None:
            raise Refused("That step is not in your queue.", self.path)
        return self.queue[place].step

    def case(self, step: str) -> ReviewCase:
        choice = self.choice(step)
        return self.cases.of(choice.benchmark, choice.instance_id, choice.step_index)

    def page(self, step: str, **more: str) -> str:
        """The address of a step's page."""
        return f"{self.path}step?{urlencode({'id': step, **{k: v for k, v in more.items() if v}}, quote_via=quote)}"

    def next_open(self, after: int = -1) -> str | None:
        """The next step without a verdict after a place in the queue, from its beginning again at the end."""
        for item in [*self.queue[after + 1 :], *self.queue[: after + 1]]:
            if not item.done:
                return item.step.id
        return None

    def neighbour(self, place: int, by: int) -> str | None:
        """The address of the step beside, or of the queue's end."""
        if place + by < 0:
            return None
        return self.page(self.queue[place + by].step.id) if place + by < len(self.queue) else f"{self.path}end"


def known(said: Recorded | None) -> str:
    """What a page knew of a step's verdict when it was made: another page may have changed it since."""
    return f"{said.verdict.value}@{said.at}" if said else ""


def review_app(store: AuditStore, cases: Cases) -> FastAPI:
    """The app; every request carries the `desk` of its reviewer in its scope."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.mount("/static", StaticFiles(directory=HERE / "static"))
    templates = _templates()
    writing = threading.Lock()

    def desk_of(request: Request) -> _Desk:
        return _Desk(store, cases, request.scope["desk"])

    def page(request: Request, name: str, desk: _Desk, status: int = 200, **values: Any) -> HTMLResponse:
        said = store.progress(desk.reviewer)
        latest = store.latest(desk.reviewer)
        common = {
            "desk": desk,
            "progress": said,
            "verdicts": VERDICTS,
            "latest": latest,
            "latest_known": known(latest),
            "longest_notes": LONGEST_NOTES,
            "longest_search": LONGEST_SEARCH,
        }
        return HTMLResponse(templates.get_template(name).render({**common, **values}), status)

    @app.exception_handler(StepdownError)
    def refused(request: Request, error: StepdownError) -> Response:
        at = error.at if isinstance(error, Refused) else request.scope["desk"].path
        status = 409 if isinstance(error, Refused) else 400
        if _wants_json(request):
            return JSONResponse({"problem": str(error), "at": at}, status)
        return page(request, "refused.html", desk_of(request), status, problem=str(error), at=at)

    @app.get("/review/{reviewer}/")
    def begin(request: Request) -> Response:
        """The first step that is still open."""
        desk = desk_of(request)
        step = desk.next_open()
        return RedirectResponse(desk.page(step) if step else f"{desk.path}end", 303)

    @app.get("/review/{reviewer}/step")
    def step(
        request: Request, step: _Step, q: _Search = "", saved: Annotated[str, Query(max_length=1000)] = ""
    ) -> Response:
        desk = desk_of(request)
        case = desk.case(step)
        place = desk.places[step]
        said = store.current(desk.reviewer).get(step)
        pattern = searched(q.strip())
        return page(
            request,
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
            guess=store.prelabel(desk.reviewer, step),
            former=[old for old in store.former(step) if old.reviewer == desk.reviewer],
            saved=_saved(desk, saved),
        )

    def _saved(desk: _Desk, step: str) -> Mapping[str, Any] | None:
        """What was answered just before, with the model's guess at it."""
        said = store.current(desk.reviewer).get(step)
        return {"said": said, "guess": store.prelabel(desk.reviewer, step), "at": desk.page(step)} if said else None

    @lru_cache(maxsize=4)
    def numbered(choice: Choice, number: int) -> tuple[Text, list[Region]]:
        """A text of a step, kept while it is fetched in portions. Raises IndexError where there is none."""
        case = cases.of(choice.benchmark, choice.instance_id, choice.step_index)
        text = outline(case).texts[max(number, 0)]
        return text, text.regions()

    @app.get("/review/{reviewer}/text")
    def text(request: Request, step: _Step, number: int, start: int, end: int, q: _Search = "") -> Response:
        """A portion of a long text, as a page of its own or as JSON for the page that has it."""
        desk = desk_of(request)
        try:
            whole, of_it = numbered(desk.choice(step), number)
        except IndexError:
            raise Refused("There is no such text.", desk.page(step)) from None
        if not 0 <= start < end <= len(whole.text):
            raise Refused("There is no such part of the text.", desk.page(step))
        last = portion_end(whole.text, start, end)
        found = blocks(whole.text, of_it, start, last, searched(q.strip()))
        if _wants_json(request):
            return JSONResponse({"end": last, "blocks": [[block.mono, block.runs] for block in found]})
        return page(
            request, "text.html", desk, step=step, whole=whole, blocks=found, start=start, last=last, query=q.strip()
        )

    @app.get("/review/{reviewer}/queue")
    def queue(request: Request) -> Response:
        return page(request, "queue.html", desk_of(request))

    @app.get("/review/{reviewer}/end")
    def end(request: Request, saved: Annotated[str, Query(max_length=1000)] = "") -> Response:
        desk = desk_of(request)
        return page(request, "end.html", desk, saved=_saved(desk, saved), first_open=desk.next_open())

    @app.post("/review/{reviewer}/verdict")
    def verdict(
        request: Request,
        step: _FormText,
        prefix: _FormText,
        known_verdict: Annotated[str, Form(alias="known", max_length=200)] = "",
        verdict: Annotated[str, Form(max_length=100)] = "",
        notes: _Notes = "",
    ) -> Response:
        """Keep a verdict, then name the next step. Without a verdict: the notes of one that stands."""
        with writing:
            desk = desk_of(request)
            case = desk.case(step)
            here = desk.page(step)
            said = store.current(desk.reviewer).get(step)
            if not verdict and said:
                verdict = said.verdict.value
            _fitting(case, prefix, verdict, notes, here)
            notes = plain_notes(notes).strip()
            if said is None or (said.verdict.value, said.notes) != (verdict, notes):
                if known_verdict != known(said):
                    raise Refused("This step was answered meanwhile, in another window. Nothing was changed.", here)
                store.record(desk.reviewer, step, verdict, notes, prefix=prefix)
        after = _Desk(store, cases, request.scope["desk"])
        following = after.next_open(desk.places[step])
        end = f"{desk.path}end?{urlencode({'saved': step}, quote_via=quote)}"
        return _on(request, after.page(following, saved=step) if following else end)

    @app.post("/review/{reviewer}/undo")
    def undo(
        request: Request, step: _FormText, known_verdict: Annotated[str, Form(alias="known", max_length=200)] = ""
    ) -> Response:
        """Take back the latest verdict, if it is the one that the page knew, and go to its step."""
        with writing:
            desk = desk_of(request)
            latest = store.latest(desk.reviewer)
            if latest is None or (latest.step, known(latest)) != (step, known_verdict):
                at = desk.page(step) if step in desk.places else desk.path
                raise Refused("That verdict is not the latest one any more. Nothing was taken back.", at)
            store.undo(desk.reviewer, step)
        return _on(request, desk.page(step))

    return app


def _fitting(case: ReviewCase, prefix: str, verdict: str, notes: str, here: str) -> None:
    """Refuses what can not be a verdict on the case as it is now."""
    if prefix != case.prefix:
        raise Refused("The step has changed since the page was made. Nothing was saved: look at it again.", here)
    if verdict not in set(AuditVerdict):
        raise Refused("Choose one of the three verdicts. Nothing was saved.", here)
    if verdict == AuditVerdict.LOWER and case.below is None:
        raise Refused("The label is the lowest tier: nothing is below it. Nothing was saved.", here)
    if len(notes.replace("\r\n", "\n")) > LONGEST_NOTES:
        raise Refused(f"Notes have at most {LONGEST_NOTES} characters. Nothing was saved.", here)


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
    templates.filters["pieces"] = pieces
    templates.filters["parts"] = _parts
    templates.filters["thousands"] = lambda number: f"{number:,}"
    return templates


def _parts(text: Text, pattern: re.Pattern[str] | None = None) -> Any:
    return parts(text, pattern)
