"""One request through LiteLLM, read into plain records. LiteLLM is imported here, at the first request."""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any

from stepdown.builder.models.envelope import RawCompletion, chat_completion, read_answer
from stepdown.builder.models.errors import CutOff, Rejected, Unusable, WrongCall
from stepdown.builder.models.messages_form import as_chat_completion

_GRACE = 2.0
"""Seconds beyond the time-out that a call may take, so that the library's own time-out comes first."""
_LONGEST_TIMEOUT = 7 * 24 * 3600.0
"""Seconds. A longer time-out would overflow the clocks of the libraries below."""

_OURS = frozenset({"model", "messages", "tools", "response_format", "api_base", "api_key"})
_ORDERS = re.compile(
    r"api_version|azure_ad_token.*|base_url|client|config|custom_llm_provider|deployment_id|(additional_)?drop_params"
    r"|engine|fallbacks|functions|gigachat_.*|(extra_)?headers|logger_fn|max_retries|mock_.*|model_list|models|num_retries"
    r"|organization|original_function|route|session_id|shared_session|stream(_options)?|timeout|(\w+_)?callbacks?|_.*"
)
"""Parameters that LiteLLM reads beside those it lists, and OpenRouter's fallbacks. None is about generation."""


@cache
def load_library() -> Any:
    """Import LiteLLM, silent and without retries, callbacks, telemetry or a download of prices."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.pop("USE_LITELLM_PROXY", None)  # it would send every request to another address
    import litellm  # 4 to 5 seconds and 190 MiB: only where a model is really called
    from litellm.litellm_core_utils.litellm_logging import Logging

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.set_verbose = False
    litellm.drop_params = False
    litellm.modify_params = False
    litellm.num_retries = 0
    litellm.model_fallbacks = None
    litellm.model_alias_map = {}
    litellm.use_litellm_proxy = False
    litellm.cache = None
    litellm.callbacks = []
    litellm.success_callback = []
    litellm.failure_callback = []
    Logging.response_cost_calculator = _no_cost
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "openai"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # Odd answers are dealt with here; pydantic's warnings about their types would only fill the terminal.
    warnings.filterwarnings("ignore", message="Pydantic serializer warnings", category=UserWarning)
    return litellm


def _no_cost(*_: object, **__: object) -> None:
    """Stands in for LiteLLM's calculation of a call's cost, which takes a fifth of its time; prices are the pool's."""


def ask(request: Mapping[str, Any], timeout: float) -> RawCompletion:
    """Ask by LiteLLM's `completion(**request)`; the answer must come within `timeout` seconds.

    Raises Unusable, CutOff, Rejected, WrongCall, or what LiteLLM raised for an HTTP error or a broken connection.
    """
    completion = load_library().completion
    from litellm._internal_context import is_internal_call

    more = request.get("extra_body")  # added to the body as it is
    # Its `messages` are those of the request once more, with fields that LiteLLM drops.
    names = {*(request.keys() - _OURS), *(more.keys() - {"messages"} if isinstance(more, Mapping) else ())}
    if orders := sorted(name for name in names if _is_an_order(name)):
        raise WrongCall(f"{orders[0]!r} is no generation parameter but says where or how the request goes")
    timeout = min(timeout, _LONGEST_TIMEOUT)
    request = {**request, "messages": list(request["messages"])}  # it may add to the list
    bodies: list[str] = []

    def note(details: Mapping[str, Any]) -> None:
        # Some of LiteLLM's handlers also report an error in this way while they handle it.
        if details.get("log_event_type") == "post_api_call" and sys.exc_info()[0] is None:
            bodies.append(str(details.get("original_response")))

    outcome: list[Any] = []
    failure: list[Exception] = []

    def run() -> None:
        is_internal_call.set(True)  # else it hands each answer to a thread of its own, which logs it
        try:
            outcome.append(completion(**request, timeout=timeout, num_retries=0, max_retries=0, logger_fn=note))
        except Exception as error:
            failure.append(error)

    worker = threading.Thread(target=run, name="stepdown-call", daemon=True)
    worker.start()
    worker.join(timeout + _GRACE)
    if failure and not bodies:
        raise failure[0]
    if not failure and not outcome:
        raise CutOff("no whole answer")
    # The first is the body itself: some handlers report afterwards what they made of it.
    body = (chat_completion(bodies[0]) or as_chat_completion(bodies[0])) if bodies else None
    if failure:
        if body is None:
            raise Unusable(f"HTTP 200 with a body that is no answer: {bodies[0]}")
        return read_answer(body, body)
    if not bodies and not getattr(outcome[0], "choices", None):
        # A server whose chat template wants roles to alternate gets the messages once more with blank ones between;
        # when it rejects these too, LiteLLM returns an empty response instead of the error.
        raise Rejected("the provider rejects the order of the messages, also with blank ones between them")
    # Calls are read from the body: LiteLLM makes real ones of a tool that models invent, `multi_tool_use.parallel`.
    # An answer without tools is LiteLLM's to read: it asks some providers for a schema by a tool of its own.
    return read_answer(body if body and request.get("tools") else outcome[0], body)


def _is_an_order(name: str) -> bool:
    """Whether the parameter could lead to other models, invented answers, retries or another provider."""
    from litellm.types.utils import all_litellm_params

    return name in _OURS or name in all_litellm_params or bool(_ORDERS.fullmatch(name))
