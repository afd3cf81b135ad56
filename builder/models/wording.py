"""What providers say where a status alone does not tell what went wrong. One table of codes and phrases for each kind.

The phrases are whole statements, never single words: an error of another kind may repeat the request's own words. They
are searched for in a provider's own words only, without what it quotes (`error_body.own_words`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

_OVERFLOW_CODE = re.compile(
    r"context_length_exceeded|exceed_context_size(_error)?|context_window_exceeded|model_context_window_exceeded"
    r"|request_too_large|(prompt|input)_too_long|model_max_prompt_tokens_exceeded|tokens_limit_reached|1261",
    re.IGNORECASE,
)
_POLICY_CODE = re.compile(
    r"content_policy(_violation)?|content_filter(ed)?|responsibleaipolicyviolation|data_?inspection_?failed"
    r"|moderation_blocked",
    re.IGNORECASE,
)
_OVERFLOW = re.compile(
    r"context_length_exceeded|context_window_exceeded|exceed_context_size"
    r"|maximum (context|input|prompt) length (is|of) \d|\d maximum context length|context length of only \d"
    r"|(prompt|input)( tokens?| length)? (is |are )?too long"
    r"( *[:;] *(\d|exceeded)|\.|$| for (the|requested) (model|context))"
    r"|too many (input )?tokens *[:.(]"
    r"|exceed(s|ed)? (the |this |its )?(model'?s? )?(max(imum)? |available |configured |allowed )*"
    r"(context (size|window|limit|length)\b|limit of \d|(number of )?(input )?tokens\b"
    r"|(token|input) (limit|size|length)\b"
    r"|message tokens\b|max_(num_tokens|model_len|seq_len)\b)"
    r"|(prompt|input|tokens?|request|sum)\b[^.\n]{0,80}\bexceeds? (the )?(max(imum)? |allowed )+length\b"
    r"|context (size|window|length) (has been |was |is )?exceed(s|ed)\b"
    r"|range of input length should be|input length should be (between|in the range)"
    r"|n_keep\W+\d+\W+n_ctx|tokens to keep from the initial prompt is greater than the context"
    r"|input token count is \d+ but .{0,40}supports? (only )?up to \d|must have less than \d+ tokens"
    r"|messages? (is |are )?too long: \d|context window is full|sequence length exceeds"
    r"|expected maxLength: \d+, actual: \d|too large for .{0,60}\bmax size: \d+ tokens"
    r"|\btokens?( length)?( of messages)? exceeds? (the )?model('s)? limit|maximum model length"
    r"|(input|prompt|inputs) (is |are )?longer than the (context|model)|context length is \d+ tokens, but"
    r"|\b(input|prompt|request)\b.{0,40}\bis too long and exceeds"
    r"|(prompt|input) ?\u8d85\u957f|\u8d85\u8fc7.{0,12}(\u957f\u5ea6|token)"
    r"|reduce the length of (the|your) (messages|prompt|input)"
    r"|longer than the (model's|maximum) (maximum )?(context|model|input) length"
    r"|tokens\W+\+\W+(\w+\W+)?must be <=|current length is \d+ while limit is|input tokens, limit is \d",
    re.IGNORECASE,
)
_POLICY = re.compile(
    r"content[ _]policy[ _]violation|triggering .{0,30}content management policy|by content filter(ing)?\b"
    r"|result of (our|the) safety system|(content|input|prompt|request|it) was (flagged|blocked) (for|as|by)\b"
    r"|requires moderation|violat\w+ (of )?(our|the|\w+'s) (usage|content) polic(y|ies)|data may contain inappropriate",
    re.IGNORECASE,
)
_UNKNOWN_MODEL = re.compile(
    r"model[_ ]not[_ ](found|exist)|not a valid model|invalid model|unknown model|unsupported model|no such model"
    r"|model\b.{0,120}\b(decommissioned|no longer (supported|available)|retired|has been (disabled|shut down))"
    r"|only (available|supported) (via|in|through) .{0,20}responses|not (supported )?in (the )?v1/chat/completions"
    r"|model .{0,120}(does not exist|doesn't exist|not found|is not supported|not available)|LLM Provider NOT provided",
    re.IGNORECASE,
)
_NO_KEY = re.compile(r"missing (credentials|\w* ?api key)|api_key client option must be set", re.IGNORECASE)

_BAD_KEY = re.compile(
    r"(invalid|incorrect|wrong|expired) api[ _-]?key|api[ _-]?key (is )?(not valid|invalid|expired)|api_key_invalid",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(
    r"credit balance is too low|insufficient (account )?(balance|credits?|funds)|account is in good standing|arrearage"
    r"|(out of|no|not enough) credits?\b",
    re.IGNORECASE,
)

_NO_PARSER = re.compile(
    r"requires\W+enable-auto-tool-choice|tool-call-parser to be set|(tools?|tool_choice) (param )?requires?\W+jinja"
    r"|tool[- ]call[- ]parser is (not (set|configured)|required|missing)",
    re.IGNORECASE,
)
_NO_TOOLS = re.compile(
    r"does(n't| not) support (native )?(tools?\b|tool[_ -]?(use|call(s|ing)?|choice)|function[_ -]?call(s|ing)?)"
    r"|(tools?|tool[_ -]?(use|call(s|ing)?)|functions?|function[_ -]?call(s|ing)?) (is|are) not"
    r" (supported|enabled|available)"
    r"|(tool use|tool calling|function calling) with \S+ is (not supported|unsupported)"
    r"|no endpoints found that support tool",
    re.IGNORECASE,
)
FEATURES = frozenset({"tool calling", "function calling", "tool use"})
"""What providers also put into quotes where they do not support it."""
_NO_SCHEMA = re.compile(
    r"does(n't| not) support (structured outputs?|response[_ ]format|json[_ ]schema|guided decoding)"
    r"|response_format\b.{0,60}(not supported|unsupported|unavailable|must be|not permitted)"
    r"|(json_schema|structured outputs?) (is|are) not (supported|available)"
    r"|no endpoints found that support .{0,20}(response_format|structured)",
    re.IGNORECASE,
)
_UNSUITED_CODE = re.compile(
    r"(unsupported|unknown|unrecognized|invalid)_(parameter|value|param)|invalid_parameter_(value|error)|value_error(\..*)?"
    r"|extra_forbidden|less_than(_equal)?|greater_than(_equal)?|literal_error|\w+_(type|parsing)|invalidparameter",
    re.IGNORECASE,
)
_UNSUITED = re.compile(
    r"unsupported|unrecogni[sz]ed|unknown|invalid|deprecated|too (large|big|high|small|low)|out of range|valid range"
    r"|not (supported|permitted|allowed|valid|recogni[sz]ed|available|compatible|accepted)"
    r"|(do|does|may|can|must|is|are) ?n[o']t|cannot|(must|should|may|can) (only )?be"
    r"|only (allowed|supported|valid|available) (when|with|if|for)\b|must have|range of|only \S+ (is|are) allowed"
    r"|at (most|least)|supports only|only supports|maximum allowed|(greater|less) than",
    re.IGNORECASE,
)
"""What is said of a parameter that will never do. It counts only where a parameter of ours is named."""
_ABOUT_THE_PREFIX = re.compile(
    r"\b(messages?|prompts?|input (tokens?|length|messages?)|contexts?|conversations?)\b", re.IGNORECASE
)
_STREAMING = re.compile(
    r"only (supports?|accepts?) stream|\bnon-?stream(ing)? (calls?|requests?|mode)\b"
    r"|stream(ing)? mode only|(set|must be) stream(ing)?\W+true",
    re.IGNORECASE,
)


def tells_overflow(codes: Iterable[str], words: str) -> bool:
    """Whether the prefix does not fit the model's context."""
    return _tells(codes, words, _OVERFLOW_CODE, _OVERFLOW)


def tells_refusal(codes: Iterable[str], words: str) -> bool:
    """Whether the provider's policy forbids the request."""
    return _tells(codes, words, _POLICY_CODE, _POLICY)


def tells_unknown_model(codes: Iterable[str], words: str) -> bool:
    return "model_not_found" in codes or bool(_UNKNOWN_MODEL.search(words))


def names_a_model(codes: Iterable[str], words: str) -> bool:
    """Whether a 404 speaks of a model, and not of a path at which nothing is."""
    return "model_not_found" in codes or bool(
        re.search(r"model|deployment|endpoints found|provider", words, re.IGNORECASE)
    )


def tells_no_key(words: str) -> bool:
    return bool(_NO_KEY.search(words))


def tells_bad_key(codes: Iterable[str], words: str) -> bool:
    """Whether the key is no key of this provider's; some say so with a 400."""
    return _tells(codes, words, _BAD_KEY, _BAD_KEY) or "invalid_api_key" in codes


def tells_no_credit(codes: Iterable[str], words: str) -> bool:
    """Whether the account must be paid first; some say so with a 400 or a 403."""
    return _tells(codes, words, _NO_CREDIT, _NO_CREDIT)


def remedy(codes: Iterable[str], words: str, blamed: Collection[str], parameters: Collection[str]) -> str | None:
    """What to change in the config where the provider can never take such a request, whatever its messages hold; None
    where it may be about these messages.

    `blamed` are the parameters that the error's fields name, `parameters` those of the request beside its messages.

    >>> remedy([], "top_k is not supported with this model", (), {"top_k", "seed"})
    'change or leave out `top_k` in its `parameters`'
    """
    if _NO_PARSER.search(words):
        return "start its server with its tool parser, or give it `actions: json_schema` or `actions: text`"
    if "tools" in parameters and _NO_TOOLS.search(words):
        return "give it `actions: json_schema` or `actions: text`"
    if "response_format" in parameters and (_NO_SCHEMA.search(words) or "response_format" in blamed):
        return "give it `actions: tools` or `actions: text`"
    if _STREAMING.search(words):
        return "it answers only as a stream, which stepdown does not read: name another model"
    wrong = _unsuited(codes, words, blamed, parameters)
    return f"change or leave out `{wrong}` in its `parameters`" if wrong else None


def _unsuited(codes: Iterable[str], words: str, blamed: Collection[str], parameters: Collection[str]) -> str | None:
    """The parameter of ours that will never do."""
    ours = sorted(set(parameters) - {"messages", "tools", "response_format"}, key=len, reverse=True)
    is_told = any(_UNSUITED_CODE.fullmatch(code) for code in codes)
    for name in ours:
        if name in blamed and (is_told or not _ABOUT_THE_PREFIX.search(words)):
            return name
    if _ABOUT_THE_PREFIX.search(words) or not _UNSUITED.search(words):
        return None
    return next((name for name in ours if _names_parameter(name, words)), None)


def _names_parameter(name: str, words: str) -> bool:
    if name == "stop":  # it is a word like another
        return bool(re.search(r"\b(parameter|argument|field)\W+stop\b|\bstop is not supported", words, re.IGNORECASE))
    return bool(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", words))


def _tells(codes: Iterable[str], words: str, code: re.Pattern[str], phrase: re.Pattern[str]) -> bool:
    return any(code.fullmatch(each) for each in codes) or bool(phrase.search(words))
