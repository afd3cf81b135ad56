"""A run from a program's own code: built or opened, and what it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepdown.audit.revisions import current_files
from stepdown.builder.artifacts.labelling import Watcher, label_run
from stepdown.builder.artifacts.names import EVIDENCE, MANIFEST
from stepdown.builder.artifacts.rows import Row
from stepdown.builder.common.extras import require_package
from stepdown.builder.common.reading import read_document, read_json_lines
from stepdown.builder.config.loading import Config, config_of, load_config
from stepdown.builder.engine.progress import TELLING_INTERVAL, RunProgress, progress_line, ticking
from stepdown.builder.errors import BadInput
from stepdown.builder.inspect.status import RunStatus, read_status
from stepdown.builder.run.reading import is_run
from stepdown.rows import read_rows

if TYPE_CHECKING:
    import pandas

ConfigLike = Mapping[str, Any] | Path | str
"""A config: what its file holds, as a dict whose paths are relative to the working folder; or the file."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run in its folder. What it holds is read when it is asked for."""

    folder: Path

    def status(self) -> RunStatus:
        """Where it stands: instances by state, labels so far, what was paid, what is blocked and why."""
        found = read_status(self.folder)
        if found is None:
            raise BadInput("the run was never begun", file=self.folder)
        return found

    def rows(self) -> Iterator[Row]:
        """Its labelled steps, one in memory at a time, as its reviewers left them where an audit was applied."""
        return read_rows(self.folder)

    def evidence(self) -> Iterator[dict[str, Any]]:
        """Why each row has its label, in the order of the rows: every trial that led to it. It names models."""
        for _, found in read_json_lines(current_files(self.folder) / EVIDENCE):
            yield found

    def manifest(self) -> dict[str, Any]:
        """Pool, protocol, harness versions, counts, drops by reason, list price, digests of the files."""
        found: dict[str, Any] = read_document(current_files(self.folder) / MANIFEST)
        return found

    def to_pandas(self) -> pandas.DataFrame:
        """Its rows as a table, a column for each of a row's fields. Raises BadInput where pandas is not installed."""
        require_package("pandas")
        import pandas

        return pandas.DataFrame([asdict(row) for row in self.rows()])


def build(config: ConfigLike, run: Path | str, tell: Callable[[str], object] | None = None) -> Run:
    """Label the workloads of a config into the run's folder, made if needed.

    Building into the folder of an unfinished run of the same protocol resumes it. `tell` is given a line of progress
    now and then, for example `print`. No signal handler is installed: Ctrl-C ends the work after the calls in hand,
    and what was paid for is kept.

    A budget that is reached and technical errors leave work, which `Run.status()` shows and `resume` goes on with.
    Raises BadInput for what a person has to mend; RunStopped for a rejected key or an unknown model.
    """
    label_run(Path(run), _config(config), watcher=_Told(tell))
    return Run(Path(run))


def resume(
    run: Path | str,
    config: ConfigLike | None = None,
    drop_blocked: bool = False,
    tell: Callable[[str], object] | None = None,
) -> Run:
    """Go on with an interrupted or blocked run at the very next trial.

    `config` changes its `operation` part (workers, addresses, keys, budget); the protocol must be the run's.
    `drop_blocked` gives up on instances that technical errors have blocked. Raises as `build` does.
    """
    if not is_run(Path(run)):
        raise BadInput("no run is here", file=Path(run))
    label_run(Path(run), None if config is None else _config(config), drop_blocked=drop_blocked, watcher=_Told(tell))
    return Run(Path(run))


def open_run(run: Path | str) -> Run:
    """The run in a folder, to look at. Raises BadInput where no run is there."""
    if not is_run(Path(run)):
        raise BadInput("no run is here", file=Path(run))
    return Run(Path(run))


def _config(given: ConfigLike) -> Config:
    return config_of(given, Path.cwd()) if isinstance(given, Mapping) else load_config(Path(given))


class _Told(Watcher):
    """Tells of progress now and then, and once at the end."""

    def __init__(self, tell: Callable[[str], object] | None) -> None:
        self._tell = tell

    def warned(self, line: str) -> None:
        if self._tell is not None:
            self._tell(f"warning: {line}")

    @contextmanager
    def while_working(self, progress: RunProgress) -> Iterator[None]:
        tell = self._tell
        if tell is None:
            yield
            return
        with ticking(TELLING_INTERVAL, lambda: tell(progress_line(progress))):
            yield
        tell(progress_line(progress))
