"""Argilla, by its own SDK: a data set in a workspace, a record a step."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, redirect_stderr
from typing import Any

from stepdown.audit.exchange.argilla import SETTINGS, argilla_record, read_records
from stepdown.audit.exchange.records import IncomingAnswer, OutgoingStep
from stepdown.audit.servers.base import BATCH, ServerFailed
from stepdown.audit.servers.link import ServerLink
from stepdown.builder.common.secrets import SECRETS
from stepdown.builder.errors import BadInput, StepdownError

_EXTRA_METADATA = ("row", "digest")
"""Kept with a record, and nothing to filter by."""


@contextmanager
def open_argilla(link: ServerLink) -> Iterator[ArgillaServer]:
    """The run's data set on a server; it is made where there is none. Raises BadInput and ServerFailed."""
    with _in_plain_words(link):
        import argilla

        logging.getLogger("argilla").setLevel(logging.ERROR)
        client = argilla.Argilla(api_url=link.address, api_key=link.read_key(), retries=1)
    with closing(client.http_client):
        yield ArgillaServer(link, client)


class ArgillaServer:
    """A data set of records."""

    def __init__(self, link: ServerLink, client: Any) -> None:
        self._link, self._client = link, client
        self.place = f"data set {link.name} on {link.address}"
        with _in_plain_words(link):
            self._data_set = self._find() or self._create()

    def read_ids(self) -> set[str]:
        with _in_plain_words(self._link):
            listed = self._data_set.records(with_suggestions=False, with_responses=False, batch_size=BATCH)
            return {str(record.id) for record in listed}

    def add(self, steps: Sequence[OutgoingStep]) -> None:
        import argilla

        records = []
        for step in steps:
            made = argilla_record(step)
            fields = {name: storable(text) for name, text in made["fields"].items() if text}
            metadata = {name: value for name, value in made["metadata"].items() if value}
            records.append(argilla.Record(id=made["id"], fields=fields, metadata=metadata))
        with _in_plain_words(self._link), redirect_stderr(io.StringIO()):  # the SDK draws a bar for every call
            self._data_set.records.log(records=records)

    def read_answers(self) -> Iterator[IncomingAnswer]:
        return read_records(self._exported())

    def _exported(self) -> Iterator[dict[str, Any]]:
        with _in_plain_words(self._link):
            accounts = self._accounts()
            for record in self._data_set.records(with_suggestions=False, with_responses=True, batch_size=BATCH):
                yield _as_exported(record, accounts)

    def _find(self) -> Any:
        with warnings.catch_warnings(action="ignore"):  # of a data set that is not there yet
            found = self._client.datasets(self._link.name, workspace=self._workspace())
        if found is None:
            return None
        names = {question.name for question in found.settings.questions}
        if not {"verdict", "notes"} <= names:
            raise BadInput(f"{self.place} asks other questions: choose another --name")
        return found

    def _workspace(self) -> Any:
        if not self._link.workspace:
            return self._client.workspaces.default
        found = next((one for one in self._client.workspaces if one.name == self._link.workspace), None)
        if found is None:
            raise BadInput(f"no workspace {self._link.workspace!r} on {self._link.address}", field="--workspace")
        return found

    def _create(self) -> Any:
        import argilla

        first, *others = SETTINGS["fields"]
        verdict, notes = SETTINGS["questions"]
        settings = argilla.Settings(
            guidelines=SETTINGS["guidelines"],
            fields=[
                argilla.TextField(name=str(first), use_markdown=False),
                *(argilla.TextField(name=str(name), use_markdown=False, required=False) for name in others),
            ],
            questions=[
                argilla.LabelQuestion(name=verdict["name"], labels=verdict["labels"]),
                argilla.TextQuestion(name=notes["name"], required=False, use_markdown=False),
            ],
            metadata=[
                argilla.TermsMetadataProperty(name=str(name))
                for name in SETTINGS["metadata"]
                if name not in _EXTRA_METADATA
            ],
            allow_extra_metadata=True,
            distribution=argilla.TaskDistribution(min_submitted=self._link.answers),
        )
        made = argilla.Dataset(
            name=self._link.name, workspace=self._workspace(), settings=settings, client=self._client
        )
        return made.create()

    def _accounts(self) -> Mapping[str, str]:
        """Names of accounts by their ids; none where this key may not list them."""
        from argilla._exceptions import ForbiddenError

        try:
            return {str(user.id): str(user.username) for user in self._client.users}
        except ForbiddenError:
            return {}


def _as_exported(record: Any, accounts: Mapping[str, str]) -> dict[str, Any]:
    """A record in the form of an export, with the names of those who answered and the status of each answer."""
    responses: dict[str, list[dict[str, Any]]] = {}
    for response in record.responses:
        user = str(response.user_id)
        given = {"value": response.value, "user_id": accounts.get(user, user), "status": _word(response.status)}
        responses.setdefault(str(response.question_name), []).append(given)
    return {"metadata": dict(record.metadata), "responses": responses, "status": _word(record.status)}


def _word(status: Any) -> str:
    return str(getattr(status, "value", status))


def storable(text: str) -> str:
    """Text for a server's database: not every one stores NUL."""
    return text.replace("\0", "\u2400")


@contextmanager
def _in_plain_words(link: ServerLink) -> Iterator[None]:
    import httpx
    from argilla._exceptions import ArgillaAPIError, ArgillaCredentialsError, ArgillaError, ForbiddenError

    try:
        yield
    except ArgillaCredentialsError:
        raise BadInput(f"{link.address} does not know the key in {link.key}", field="--key") from None
    except ForbiddenError as error:
        told = SECRETS.line(str(error))
        raise BadInput(f"the account of {link.key} may not do this on {link.address}: {told}", field="--key") from None
    except ArgillaAPIError as error:
        raise _refusal(link, error) from None
    except httpx.HTTPError as error:
        told = SECRETS.line(str(error) or type(error).__name__)
        raise ServerFailed(f"{link.address} can not be reached: {told}; the same command goes on") from None
    except (ArgillaError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        told = SECRETS.line(f"{type(error).__name__}: {error}")
        raise BadInput(f"{link.address} does not answer as Argilla does: {told}") from None


def _refusal(link: ServerLink, error: Any) -> StepdownError:
    told = SECRETS.line(str(error))
    if error.status_code == 429 or error.status_code >= 500:
        return ServerFailed(f"{link.address} answers {error.status_code}: {told}; the same command goes on")
    return BadInput(f"{link.address} answers {error.status_code}: {told}")
