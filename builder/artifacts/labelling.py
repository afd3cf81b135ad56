"""A run labelled from its opening to its files: what the command line and a program's own code have in common."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from stepdown.builder.artifacts.summary import Summary
from stepdown.builder.artifacts.writing import write_artifacts
from stepdown.builder.cluster.choice import executor_of
from stepdown.builder.config.loading import Config
from stepdown.builder.config.protocol import ProtocolConfig
from stepdown.builder.engine.build import Build
from stepdown.builder.engine.probing import Probing
from stepdown.builder.engine.progress import RunProgress
from stepdown.builder.errors import BudgetReached, JudgeBelowBar
from stepdown.builder.run.folder import open_for_work
from stepdown.builder.run.ledger import InstanceState, Origin


@dataclass(frozen=True, slots=True)
class LabellingResult:
    """What labelling a run came to. Its files are written, whether or not work is left."""

    protocol: ProtocolConfig
    summary: Summary
    blocked: int
    """Instances that technical errors left without labels."""
    budget: BudgetReached | None
    """The budget that ended the work; None where none did."""
    below: JudgeBelowBar | None = None
    """The judge that probes have shown to be below its bar; None where there is none."""
    untold: int = 0
    """Probes of labelled steps that came to no verdict for technical reasons, and will be executed anew."""


class Watcher:
    """Told how labelling a run goes on. This one leaves it at that."""

    def begins(self, protocol: ProtocolConfig) -> None:
        """The run is open, and no code of its workloads has been loaded."""

    def gave_up(self, instances: int) -> None:
        """So many blocked instances were dropped."""

    def warned(self, line: str) -> None:
        """Something in the input is probably not as it was meant. The work goes on."""

    def while_working(self, progress: RunProgress) -> AbstractContextManager[None]:
        """Entered while instances are labelled; `progress` is kept up to date."""
        return nullcontext()


def label_run(
    folder: Path,
    config: Config | None = None,
    *,
    stop: threading.Event | None = None,
    drop_blocked: bool = False,
    origin: Origin | None = None,
    watcher: Watcher | None = None,
) -> LabellingResult:
    """Label the open instances of the run in a folder, probe their steps where the protocol asks for it, and write the
    run's files. `stop` ends it after the calls in hand.

    A budget that is reached, and a judge that falls below its bar, end the work as blocked instances do: what is
    finished is in the files. Raises BadInput, RunStopped or Interrupted; what was paid for is then kept, and the files
    are as they were, or as labelling left them where probes were begun.
    """
    watcher, stop = watcher or Watcher(), stop or threading.Event()
    with open_for_work(folder, config, origin) as run:
        run.config.check_keys()
        watcher.begins(run.config.protocol)
        build = Build(run, stop, executor_of(run.config.operation))
        if drop_blocked:
            watcher.gave_up(run.ledger.drop_blocked())
        build.admit()
        for line in build.unplaced_seeds():
            watcher.warned(line)
        budget: BudgetReached | None = None
        with watcher.while_working(build.progress):
            try:
                build.execute()
            except BudgetReached as reached:
                budget = reached
            except JudgeBelowBar:
                pass  # the build says which one
        if budget is None and build.below is None and build.probing.admit(again=not drop_blocked):
            write_artifacts(run, build.multi_step)  # whoever wants the labels need not wait for the grid
            budget = _probe(build.probing, watcher)
        summary = write_artifacts(run, build.multi_step)
        blocked = run.ledger.counts().get(InstanceState.BLOCKED, 0)
        untold = 0 if drop_blocked else build.probing.technical()
        return LabellingResult(run.config.protocol, summary, blocked, budget, build.below, untold)


def _probe(probing: Probing, watcher: Watcher) -> BudgetReached | None:
    """Probe the steps of what is labelled. The budget that ended this, if one did."""
    with watcher.while_working(probing.progress):
        try:
            probing.execute()
        except BudgetReached as reached:
            return reached
        except JudgeBelowBar:
            pass  # the build says which one
    return None
