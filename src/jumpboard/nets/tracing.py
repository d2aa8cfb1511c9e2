"""What a model does, as the list of its operations: two runs that give equal lists are one computation.

An operation is noted with all that it is applied to: a tensor by its given name, or by the operation that made it; any
other value as it is written. On the meta device nothing is computed, so that a model of any size is traced at once.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

Entry = tuple[str, tuple[str, ...]]


class Trace(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Use as a context. `entries` are the operations so far; `random` names the first that draws random numbers."""

    def __init__(self, names: Mapping[int, str]) -> None:
        """`names` holds the `id` of each tensor that has a name."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.entries: list[Entry] = []
        self.random: str | None = None
        self._labels = dict(names)
        self._kept: list[Tensor] = []  # an id is that of one tensor for as long as the tensor lives

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = tree_leaves((args, kwargs))
        labels = tuple(self._labels.get(id(one), "?") if isinstance(one, Tensor) else repr(one) for one in given)
        out = func(*args, **(kwargs or {}))
        for number, made in enumerate(tree_leaves(out)):
            if isinstance(made, Tensor) and id(made) not in self._labels:
                self._labels[id(made)] = f"{len(self.entries)}:{number}"
                self._kept.append(made)
        if torch.Tag.nondeterministic_seeded in func.tags:
            self.random = self.random or str(func)
        self.entries.append((str(func), labels))
        return out
