"""What a model does, as the list of its operations: two runs that give equal lists are one computation.

An operation is noted with all that it is applied to: a tensor by its given name, or by the operation that made it; any
other value as it is written. On the meta device nothing is computed, so that a model of any size is traced at once.

`Shortcut` finds whether a block is residual, from what its operations are applied to and never from names:

    block(z) = h(p(z) + f(z))        f meets more nonlinearities than the shortcut p

p is the identity, or linear up to norms and pooling where it changes the shape. Before activation (ResNetV2, NF-ResNet)
such a p has an activation ahead of it, so one is allowed there. On the way through p and h together there is at most
one. Sums of linear branches (RepVGG, MobileOne) are one linear map, and no skip.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

Entry = tuple[str, tuple[str, ...]]
SUMS = ("add", "add_", "sub", "sub_")
JOINS = (*SUMS, "cat", "stack")
LINEAR = (*JOINS, "mul", "mul_", "div", "div_", "neg", "clone", "copy_", "_to_copy")
"""Operations that are linear in each argument, or jointly so (`JOINS`), though torch may tag them as pointwise, as it
does activations."""
UNTAGGED = ("hardswish", "hardswish_", "_prelu_kernel", "glu")
"""Activations that torch does not tag."""


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


@dataclass(frozen=True)
class _Path:
    """The way from a block's input with the fewest nonlinearities. `ahead` counts those ahead of the first sum with a
    branch that has more; it is None where there is no such sum."""

    nonlinear: int
    ahead: int | None = None


class Shortcut(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Use as a context around one block's run on `z`; then ask `adds(out)`."""

    def __init__(self, z: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._z = z
        self._paths = {id(z): _Path(0)}
        self._kept: list[Any] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = [self._paths[id(one)] for one in tree_leaves((args, kwargs)) if id(one) in self._paths]
        out = func(*args, **(kwargs or {}))
        if given:
            self._kept.append(out)
            path = _after(func, given)
            self._paths.update({id(made): path for made in tree_leaves(out) if isinstance(made, Tensor)})
        return out

    def adds(self, out: Tensor) -> bool:
        """Whether `out` holds the sum of a shortcut from the input and a branch."""
        path = self._paths.get(id(out), _Path(0))
        return path.ahead is not None and path.ahead <= (out.shape != self._z.shape) and path.nonlinear <= 1


def _after(func: Any, given: list[_Path]) -> _Path:
    name = func.overloadpacket.__name__
    fewest = min(path.nonlinear for path in given)
    ahead = min((path.ahead for path in given if path.nonlinear == fewest and path.ahead is not None), default=None)
    if name in SUMS and ahead is None and any(path.nonlinear > fewest for path in given):
        ahead = fewest
    pointwise = torch.Tag.pointwise in func.tags or name in UNTAGGED
    bent = name not in JOINS if len(given) > 1 else pointwise and name not in LINEAR
    return _Path(fewest + bent, ahead)
