"""What an arm's training was, as the tables of expansions name it (`schemas.expanded.TRAINED`)."""

from typing import Any

from jumpboard.training.engine import Training


def outcome(training: Training, member: int) -> dict[str, Any]:
    """Status, steps, parameters and cost of one member. A member that diverged counts the steps until then."""
    state, net = training.state, training.net
    alive = bool(state.alive[member])
    steps = state.step if alive else int(state.diverged[member])
    free = net.parameter_count() if training.free is None else int(training.free.count_nonzero())
    return {
        "status": "trained" if alive else "diverged",
        "steps": steps,
        "parameters": net.parameter_count(),
        "trained_parameters": free,
        "training_flops": float(3 * net.forward_flops() * training.batches.batch * steps),
    }
