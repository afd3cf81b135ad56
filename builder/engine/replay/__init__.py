"""One trajectory executed in a live environment of its harness, each step by the model that it is assigned to.

`replayer` is what is asked for: trials, seeds, fresh draws. `episodes` opens environments and rules on their ends,
`recorded` replays recorded steps and keeps checkpoints, `live` makes steps, `outcomes` keeps what breaks in one
execution from ending more than that.
"""

from stepdown.builder.engine.replay.live import Assigned
from stepdown.builder.engine.replay.outcomes import no_answer
from stepdown.builder.engine.replay.replayer import UNREPEATABLE, Replayer

__all__ = ["UNREPEATABLE", "Assigned", "Replayer", "no_answer"]
