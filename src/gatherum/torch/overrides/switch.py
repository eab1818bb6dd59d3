"""Turn the overrides on and off: ``reproducible()`` and ``set_reproducible``.

Kernels and contexts belong to the process. Entering the first context overrides torch's
kernels, and exiting the last active context restores them.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from contextlib import ContextDecorator
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

import torch

from . import kernels


class Report(NamedTuple):
    """The number of calls to each operator, on gatherum's and on torch's kernels."""

    gatherum: dict[str, int]
    torch: dict[str, int]

    def __str__(self) -> str:
        lines = [
            f"{name}: {self.gatherum.get(name, 0)} calls on gatherum, "
            f"{self.torch.get(name, 0)} on torch"
            for name in sorted({*self.gatherum, *self.torch})
        ]
        return "\n".join(lines) or "no calls"


class _Use:
    """One use of a context, with the counts at its start and end."""

    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self.counts_at_start = kernels.counts()
        self.counts_at_end: tuple[Any, Any] | None = None

    def report(self) -> Report:
        end, start = self.counts_at_end or kernels.counts(), self.counts_at_start
        return Report(dict(end[0] - start[0]), dict(end[1] - start[1]))


class _Switch:
    """The active uses of all contexts, and the state of torch outside of them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.active: list[_Use] = []
        self.library: torch.library.Library | None = None
        self.state_outside = False, False  # torch's switch, and whether it only warns

    def start(self, strict: bool) -> _Use:
        """Override the kernels for a new use, if it is the first one."""
        with self.lock:
            use = _Use(strict)
            if not self.active:
                only_warns = torch.is_deterministic_algorithms_warn_only_enabled()
                self.state_outside = torch.are_deterministic_algorithms_enabled(), only_warns
                self.library = kernels.override()
            self.active.append(use)
            self._set_torch_mode()
            return use

    def stop(self, use: _Use) -> None:
        """End a use, and restore torch's kernels after the last one."""
        with self.lock:
            use.counts_at_end = kernels.counts()
            self.active.remove(use)
            if not self.active and self.library is not None:
                kernels.restore(self.library)
                self.library = None
            self._set_torch_mode()

    def _set_torch_mode(self) -> None:
        """Set torch's switch for the newest active use."""
        enabled, only_warns = (
            (True, not self.active[-1].strict) if self.active else self.state_outside
        )
        torch.use_deterministic_algorithms(enabled, warn_only=only_warns)


_SWITCH = _Switch()
_Function = TypeVar("_Function", bound=Callable[..., Any])
# The kinds of functions whose calls return before their bodies run.
_RUN_LATER = inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction


class reproducible(ContextDecorator):
    """Run torch's own gather and scatter operators in a fixed order while the context is active.

    Inside, ``index_add``, ``scatter_reduce``, ``x[i] = y``, the gradients of ``x[i]`` and
    embeddings, and the other operators on the page "Reproducible training" run on gatherum's
    kernels. Updates reach each destination in row-major order of the indices. The results have the
    same bits in every run, with any number of threads, on the CPU and on CUDA devices. Shapes,
    dtypes and errors are torch's.

    The kernels are overridden in the whole process, even for calls from other threads. The context
    can be nested, used more than once, and used as a decorator.
    ``torch.are_deterministic_algorithms_enabled()`` returns True inside.

    Parameters
    ----------
    strict : bool, optional
        Whether an operator that torch cannot run deterministically raises torch's RuntimeError.
        If False, torch warns.

    Examples
    --------
    >>> import torch
    >>> from gatherum.torch import reproducible
    >>> with reproducible() as context:
    ...     torch.zeros(2).index_add_(0, torch.tensor([1, 1]), torch.tensor([1.0, 2.0]))
    tensor([0., 3.])
    >>> print(context.report())
    index_add_: 1 calls on gatherum, 0 on torch
    """

    def __init__(self, *, strict: bool = True) -> None:
        if not isinstance(strict, bool):
            raise TypeError(f"reproducible: `strict` must be a bool, got {strict!r}")
        self._strict = strict
        self._uses: list[_Use] = []
        self._last: _Use | None = None

    def __call__(self, function: _Function) -> _Function:
        """Return a function that runs `function` inside the context."""
        of_objects = inspect.getattr_static(type(function), "__call__", None)
        called = getattr(function, "__func__", function), of_objects
        if any(check(body) for check in _RUN_LATER for body in called):
            name = getattr(function, "__qualname__", repr(function))
            raise TypeError(
                f"reproducible: cannot decorate {name}, which is a generator or a coroutine: its "
                "body would run outside the context; use `with reproducible():` in the body"
            )
        return super().__call__(function)

    def __enter__(self) -> reproducible:
        self._last = _SWITCH.start(self._strict)
        self._uses.append(self._last)
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._uses:
            raise RuntimeError(
                "reproducible: __exit__ must follow __enter__, but this context is not active"
            )
        _SWITCH.stop(self._uses.pop())

    def report(self) -> Report:
        """Return the number of calls to each operator in the last use, by gatherum and by torch."""
        return Report({}, {}) if self._last is None else self._last.report()


_process_uses: list[_Use] = []  # the use of `set_reproducible`


def set_reproducible(flag: bool, *, strict: bool = True) -> None:
    """Turn `reproducible` on for the rest of the process, or off again."""
    if not isinstance(flag, bool):
        raise TypeError(f"set_reproducible: `flag` must be a bool, got {flag!r}")
    while _process_uses:
        _SWITCH.stop(_process_uses.pop())
    if flag:
        _process_uses.append(_SWITCH.start(strict))


def is_reproducible() -> bool:
    """Return True while torch's operators run on gatherum's kernels."""
    return bool(_SWITCH.active)
