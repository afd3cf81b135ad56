"""Step-level tier labels for LLM routers, proved by executing mixed-model trajectories.

All that code of your own needs stands on this page; nothing else of the package is public.

A workload of your own is an `Episode` and a `Harness`, written with `Instance`, `Prefix`, `Message`, `Tool`,
`Response`, `ToolCall`, `Stop`, `Sample`, `Verdict` and `Ruling`; where it has them, with `Terms`, `Need`,
`JudgeCase`, and `Signs` of an `OutcomeState` by `ToolReceipt`, `ReceiptPattern` and `RefusalCase`. A `Checkpoint` is
any object of yours that an episode can go on from: all that its other methods depend on, never changed by use. It
raises `BadInput` for what a person has to mend and `Technical` or `Lost` where the apparatus failed.
`stepdown/examples/` has a complete one, which is labelled here by its own two pseudo-models:

>>> import stepdown, tempfile
>>> folder = tempfile.TemporaryDirectory()
>>> def model(name):
...     return {"name": name, "model": f"workload/{name}"}
>>> pool = {
...     "version": "page-1",
...     "tiers": [
...         {"name": "low", "id": 0, "models": [model("hasty")]},
...         {"name": "high", "id": 3, "models": [model("reference")]},
...     ],
... }
>>> workload = {
...     "harness": "stepdown.examples.till:Till",
...     "source": {"bills": [[3, 12, 4]]},
...     "seeds": {"source": "reference"},
... }
>>> config = {"protocol": {"pool": pool, "workloads": [workload]}}
>>> run = stepdown.build(config, f"{folder.name}/run")

A `Run` says where it stands, and has rows and the evidence behind each of them. Of the four steps, only the second one
adds a price that the hasty model gets wrong:

>>> run.status().is_finished
True
>>> [(row.id, row.target_tier) for row in run.rows()]
[('till/bill-1/1', 'low'), ('till/bill-1/2', 'high'), ('till/bill-1/3', 'low'), ('till/bill-1/4', 'low')]
>>> second = list(run.evidence())[1]
>>> [(trial["model"], trial["verdict"], trial["reason"]) for trial in second["trials"]]
[('hasty', 'fail', 'the bill has no 2')]

`resume` goes on with a run that was interrupted, `open_run` looks at one, and `read_rows` reads the rows of a run, a
release or a file. `score` says how well a router's tiers do against them:

>>> routed = {row.id: "low" for row in stepdown.read_rows(run.folder)}
>>> stepdown.score(run.folder, routed, resamples=0).overall.metrics["RowPass"].value
75.0

A `Policy` is what chooses a tier for a call: it is shown a `View` (the messages, the tools, the tiers and, where a call
is really made, the models on `Offer`) and answers with a `Choice`, or raises `NoChoice`. One of your own needs a name,
a version and `choose`; `stepdown score`, `route serve`, `live` and `hints` take it as `module:Class`. `load_policy`
gives one that is there: a folder that `stepdown route train` made, or one by name.

>>> class Careful:
...     name, version = "careful", "1"
...     def choose(self, view):
...         if not view.messages:
...             raise stepdown.NoChoice("nothing is asked")
...         return stepdown.Choice(view.tiers[-1 if "price" in str(view.messages[-1]["content"]) else 0])
>>> view = stepdown.View([{"role": "user", "content": "What is the price?"}], tiers=("low", "high"))
>>> Careful().choose(view).tier
'high'
>>> stepdown.load_policy("always:low").choose(view).tier
'low'
>>> folder.cleanup()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepdown.builder.artifacts.rows import Row as Row
    from stepdown.builder.errors import BadInput as BadInput
    from stepdown.builder.errors import Interrupted as Interrupted
    from stepdown.builder.errors import Lost as Lost
    from stepdown.builder.errors import RunStopped as RunStopped
    from stepdown.builder.errors import StepdownError as StepdownError
    from stepdown.builder.errors import Technical as Technical
    from stepdown.builder.inspect.status import RunStatus as RunStatus
    from stepdown.builder.records import Instance as Instance
    from stepdown.builder.records import Message as Message
    from stepdown.builder.records import OutcomeState as OutcomeState
    from stepdown.builder.records import Prefix as Prefix
    from stepdown.builder.records import Response as Response
    from stepdown.builder.records import Ruling as Ruling
    from stepdown.builder.records import Sample as Sample
    from stepdown.builder.records import Signs as Signs
    from stepdown.builder.records import Stop as Stop
    from stepdown.builder.records import Tool as Tool
    from stepdown.builder.records import ToolCall as ToolCall
    from stepdown.builder.records import Verdict as Verdict
    from stepdown.harnesses.base import Checkpoint as Checkpoint
    from stepdown.harnesses.base import Episode as Episode
    from stepdown.harnesses.base import Harness as Harness
    from stepdown.harnesses.base import Need as Need
    from stepdown.harnesses.base import Terms as Terms
    from stepdown.harnesses.receipts import ReceiptPattern as ReceiptPattern
    from stepdown.harnesses.receipts import ToolReceipt as ToolReceipt
    from stepdown.judges.case import JudgeCase as JudgeCase
    from stepdown.judges.case import RefusalCase as RefusalCase
    from stepdown.routing.policies.contract import Choice as Choice
    from stepdown.routing.policies.contract import NoChoice as NoChoice
    from stepdown.routing.policies.contract import Offer as Offer
    from stepdown.routing.policies.contract import Policy as Policy
    from stepdown.routing.policies.contract import View as View
    from stepdown.routing.policies.loading import load_policy as load_policy
    from stepdown.rows import read_rows as read_rows
    from stepdown.rows import score as score
    from stepdown.runs import Run as Run
    from stepdown.runs import build as build
    from stepdown.runs import open_run as open_run
    from stepdown.runs import resume as resume
    from stepdown.scoring.result import Score as Score
else:
    from importlib import import_module

    _HOMES = {
        "builder.artifacts.rows": ("Row",),
        "builder.errors": ("BadInput", "Interrupted", "Lost", "RunStopped", "StepdownError", "Technical"),
        "builder.inspect.status": ("RunStatus",),
        "builder.records": (
            *("Instance", "Message", "OutcomeState", "Prefix", "Response", "Ruling", "Sample", "Signs", "Stop", "Tool"),
            *("ToolCall", "Verdict"),
        ),
        "harnesses.base": ("Checkpoint", "Episode", "Harness", "Need", "Terms"),
        "harnesses.receipts": ("ReceiptPattern", "ToolReceipt"),
        "judges.case": ("JudgeCase", "RefusalCase"),
        "routing.policies.contract": ("Choice", "NoChoice", "Offer", "Policy", "View"),
        "routing.policies.loading": ("load_policy",),
        "rows": ("read_rows", "score"),
        "runs": ("Run", "build", "open_run", "resume"),
        "scoring.result": ("Score",),
    }
    _HOME_OF = {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}
    __all__ = sorted(_HOME_OF)

    def __getattr__(name):
        """Imports a public name when it is first asked for: `import stepdown` alone loads none of it."""
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
        return found

    def __dir__():
        return sorted({*globals(), *__all__})
