"""The pages of a run, for whom the gate has let in. Every request reads the ledger as it is then."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from pydantic import Field
from starlette.exceptions import HTTPException

from stepdown.builder.errors import StepdownError
from stepdown.builder.pages.blocks import Region, blocks
from stepdown.builder.pages.rendering import page_templates, pages_app, portion_json, wants_json
from stepdown.builder.pages.styled import search_pattern
from stepdown.builder.pages.turns import TextView
from stepdown.builder.pages.windows import portion_end
from stepdown.builder.records import OutcomeState, Verdict
from stepdown.builder.run.ledger import InstanceRecord, InstanceState
from stepdown.builder.run.ledger.browsing import TrialInShort
from stepdown.builder.run.ledger.finding import SearchPosition, SearchTerms
from stepdown.builder.view.comparing import compared
from stepdown.builder.view.listing import listing
from stepdown.builder.view.prefix import whole_prefix
from stepdown.builder.view.reading import PageReader, TextSource, texts_at
from stepdown.builder.view.shown_run import ShownRun
from stepdown.builder.view.timeline import timeline
from stepdown.builder.view.trial import read_trial

HERE = Path(__file__).parent
LONGEST = 200
"""Characters of what is looked for."""

_Words = Annotated[str, Query(max_length=LONGEST)]
_Name = Annotated[str, Query(max_length=1000)]
_Number = Annotated[int, Query(ge=0, lt=1 << 53)]
_Id = Annotated[int, Field(ge=0, lt=1 << 53)]
_TrialId = Annotated[int, Query(alias="id", ge=0, lt=1 << 53)]
_Optional = Annotated[int | None, Query(ge=0, lt=1 << 53)]


class NotThere(StepdownError):
    """What an address names is not in the run."""


def view_app(run: ShownRun) -> FastAPI:
    """The app. Every request must carry an `access` in its scope."""
    app = pages_app(HERE)
    shared = _Shared(run)
    app.exception_handler(StepdownError)(shared.refused)
    app.exception_handler(RequestValidationError)(shared.invalid)
    app.exception_handler(HTTPException)(shared.unknown)
    _add_lists(app, shared)
    _add_instance(app, shared)
    _add_trials(app, shared)
    _add_texts(app, shared)
    return app


class _Shared:
    """What all requests share."""

    def __init__(self, run: ShownRun) -> None:
        self.run = run
        self._templates = page_templates(HERE)

    def page(self, request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        common = {
            "run": self.run,
            "path": request.scope["access"].path,
            "longest": LONGEST,
            "pattern": None,
            "query": "",
        }
        return HTMLResponse(self._templates.get_template(template).render({**common, **values}), status)

    def refused(self, request: Request, error: Exception) -> Response:
        return self._refusal(request, 404 if isinstance(error, NotThere) else 400, str(error))

    def invalid(self, request: Request, error: Exception) -> Response:
        return self._refusal(request, 422, "That address is not one of these pages.")

    def unknown(self, request: Request, error: Exception) -> Response:
        return self._refusal(request, 404, "There is no such page.")

    def _refusal(self, request: Request, status: int, problem: str) -> Response:
        if wants_json(request):
            return JSONResponse({"problem": problem}, status)
        return self.page(request, "refused.html", status, problem=problem)

    def instance(self, name: str) -> InstanceRecord:
        """The instance of a name, `benchmark/instance_id`. Raises NotThere."""
        benchmark, _, instance_id = name.partition("/")
        try:
            return self.run.ledger.instance(benchmark, instance_id)
        except KeyError:
            raise NotThere(f"The run has no instance {name[:LONGEST]!r}.") from None

    def trial(self, number: int) -> TrialInShort:
        """The trial of a number. Raises NotThere."""
        found = self.run.ledger.browsing.trial(number)
        if found is None:
            raise NotThere(f"The run has no trial {number}.")
        return found


def _add_lists(app: FastAPI, shared: _Shared) -> None:
    run = shared.run

    @app.get("/run/{name}/")
    def instances(
        request: Request,
        workload: _Name = "",
        state: _Words = "",
        label: _Name = "",
        tier: _Name = "",
        model: _Name = "",
        verdict: _Words = "",
        outcome: _Words = "",
        reason: _Words = "",
        q: _Words = "",
        after: Annotated[str, Query(max_length=60)] = "",
    ) -> Response:
        """The instances that are wanted."""
        asked = {
            "workload": workload,
            "state": state,
            "label": label,
            "tier": tier,
            "model": model,
            "verdict": verdict,
            "outcome": outcome,
            "reason": reason.strip(),
            "q": q.strip(),
        }
        wanted = SearchTerms(
            benchmark=workload,
            state=state,
            label=_index(run, label),
            tier=_index(run, tier),
            model=model,
            verdict=verdict,
            outcome=outcome,
            reason=reason.strip(),
            text=q.strip(),
        )
        found = listing(run, wanted, SearchPosition.from_text(after))
        given = {key: value for key, value in asked.items() if value}
        return shared.page(
            request,
            "instances.html",
            asked=asked,
            given=given,
            after=after,
            found=found,
            following=urlencode({**given, "after": str(found.rest)}) if found.rest else "",
            counts=run.counts(),
            paid=run.paid(),
            nodes=run.nodes(),
            states=[one.value for one in InstanceState],
            verdicts=[one.value for one in Verdict],
            outcomes=[one.value for one in OutcomeState],
            has_states=run.ledger.browsing.has_states(),
            query=q.strip(),
        )


def _index(run: ShownRun, tier: str) -> int | None:
    """The index of a tier's name; None for no name. Raises NotThere for one that the pool has not."""
    if not tier:
        return None
    if tier not in run.tiers:
        raise NotThere(f"The pool has no tier {tier[:LONGEST]!r}.")
    return run.tiers.index(tier)


def _add_instance(app: FastAPI, shared: _Shared) -> None:
    @app.get("/run/{name}/instance")
    def instance(
        request: Request,
        instance: Annotated[str, Query(alias="id", max_length=1000)],
        step: _Number = 1,
        skip: _Number = 0,
        q: _Words = "",
    ) -> Response:
        """The timeline of an instance, from a step on."""
        record = shared.instance(instance)
        shown = timeline(shared.run, record, step, skip, PageReader(shared.run.ledger.browsing))
        pattern = search_pattern(q.strip())
        return shared.page(
            request, "instance.html", name=instance, timeline=shown, skip=skip, query=q.strip(), pattern=pattern
        )

    @app.get("/run/{name}/row")
    def row(request: Request, row: Annotated[str, Query(alias="id", max_length=1000)]) -> Response:
        """The step of a row's id: the page of its instance that has it."""
        name, _, number = row.rpartition("/")
        step = int(number) if number.isascii() and number.isdigit() and len(number) < 10 else 1
        address = urlencode({"id": name, "step": step})
        return RedirectResponse(f"{request.scope['access'].path}instance?{address}#step-{step}", 303)

    @app.get("/run/{name}/prefix")
    def prefix(request: Request, trial: _Number, step: _Number, until: _Optional = None, q: _Words = "") -> Response:
        """The whole prefix of a step."""
        owner = shared.trial(trial)
        found = whole_prefix(shared.run, owner.id, step, until, PageReader(shared.run.ledger.browsing))
        if found is None:
            raise NotThere("The ledger keeps no such step.")
        record = shared.run.ledger.browsing.records([owner.instance])[0]
        return shared.page(
            request,
            "prefix.html",
            record=record,
            step=step,
            trial=trial,
            prefix=found,
            query=q.strip(),
            pattern=search_pattern(q.strip()),
        )


def _add_trials(app: FastAPI, shared: _Shared) -> None:
    @app.get("/run/{name}/trial")
    def trial(
        request: Request, trial: Annotated[int, Query(alias="id", ge=0, lt=1 << 53)], step: _Number = 1
    ) -> Response:
        """All of one trial."""
        short = shared.trial(trial)
        (record,) = shared.run.ledger.browsing.records([short.instance])
        shown = read_trial(shared.run, short, record, step, PageReader(shared.run.ledger.browsing))
        return shared.page(request, "trial.html", shown=shown, from_step=step)

    @app.get("/run/{name}/compare")
    def compare(request: Request, trial: Annotated[list[_Id], Query()]) -> Response:
        """Two trials side by side."""
        if len(trial) != 2:
            raise NotThere(f"Two trials are compared, not {len(trial)}: go back and mark two.")
        shown = compared(shared.run, shared.trial(trial[0]), shared.trial(trial[1]))
        return shared.page(request, "compare.html", shown=shown)


def _add_texts(app: FastAPI, shared: _Shared) -> None:
    @lru_cache(maxsize=4)
    def numbered(source: TextSource, number: int) -> tuple[TextView, list[Region]] | None:
        """A text, cached while it is fetched in portions: what a ledger keeps does not change."""
        texts = texts_at(shared.run.ledger.browsing, source)
        return (texts[number], texts[number].regions()) if number < len(texts) else None

    @app.get("/run/{name}/text")
    def text(
        request: Request,
        number: _Number = 0,
        start: _Number = 0,
        end: _Optional = None,
        message: _Optional = None,
        trial: _Optional = None,
        step: _Optional = None,
        grading: _Optional = None,
        tools: _Optional = None,
        q: _Words = "",
    ) -> Response:
        """A portion of a long text, as a page of its own or as JSON for the page that has it."""
        source, query = TextSource(message, trial, step, grading, tools), q.strip()
        found = numbered(source, number)
        if found is None:
            raise NotThere("There is no such text.")
        whole, regions = found
        end = len(whole.text) if end is None else end
        if not 0 <= start <= end <= len(whole.text):
            raise NotThere("There is no such part of the text.")
        last = portion_end(whole.text, start, end)
        portion = blocks(whole.text, regions, start, last, search_pattern(query))
        if wants_json(request):
            return JSONResponse(portion_json(last, portion))
        more = f"text?{source.address}" + (f"&{urlencode({'q': query})}" if query else "")
        return shared.page(
            request, "text.html", whole=whole, blocks=portion, start=start, last=last, more=more, query=query
        )
