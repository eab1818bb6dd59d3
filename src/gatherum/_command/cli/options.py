"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import click
import numpy as np
from click.core import ParameterSource

from gatherum._model import errors
from gatherum._model.defaults import MEMORY
from gatherum._model.modes import FILLING, MODES
from gatherum._model.narrow_floats import FORMATS
from gatherum._model.reductions import REDUCTIONS

from .numbers import Integer, number_or_text, short

if TYPE_CHECKING:
    from gatherum.directml import FeatureLevel

F = TypeVar("F", bound=Callable[..., Any])


def combined_decorators(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    """Combine several decorators. The first one is the outermost."""
    return lambda function: reduce(lambda f, decorate: decorate(f), reversed(decorators), function)


def _size(_: click.Context, __: click.Parameter, text: str) -> str:
    from gatherum.files.resources.resources import Budget

    try:
        Budget.parse("gather", text)
    except ValueError as error:
        raise click.BadParameter(f"{str(error).partition('`memory` ')[2]}.") from None
    return text


def named_dtype(_: click.Context, __: click.Parameter, text: str | None) -> np.dtype[Any] | None:
    """Return the dtype with this name."""
    if text is None:
        return None
    wrong = click.BadParameter(f"must be a dtype such as float32, got {short(text)}.")
    try:
        return np.dtype(text)
    except TypeError:
        pass
    except (ValueError, SyntaxError):  # the name contains sizes that no dtype has
        raise wrong from None
    try:
        extension: np.dtype[Any] = np.dtype(getattr(import_module("ml_dtypes"), text))
        return extension
    except ImportError:
        if text not in FORMATS:
            raise wrong from None
        raise click.UsageError(f"{errors.needs_ml_dtypes('--dtype', text)}.") from None
    except (AttributeError, TypeError):
        raise wrong from None


dtype = click.option(
    "--dtype", default="float32", show_default=True, callback=named_dtype,
    help="The dtype of the data.",
)  # fmt: skip


def flag(name: str) -> str:
    """Return the option for a parameter."""
    return f"--{name.replace('_', '-')}"


def _level(_: click.Context, __: click.Parameter, text: str) -> FeatureLevel:
    from gatherum import directml

    try:
        return directml.FeatureLevel.of(text)
    except ValueError as error:
        raise click.BadParameter(f"{error}.") from None


def _levels(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    from gatherum import directml

    return [str(level) for level in directml.FeatureLevel if str(level).startswith(incomplete)]


# A path may be FILE:MEMBER, so click does not check it. Shells complete file names.
FILE = click.Path()

axis = click.option(
    "--axis", type=Integer(), default=0, show_default=True, help="The axis that is indexed."
)
batch_dims = click.option(
    "--batch-dims", type=Integer(), default=0, show_default=True,
    help="The number of leading dimensions that TABLE and INDICES share.",
)  # fmt: skip
mode = click.option(
    "--mode", type=click.Choice(MODES), default="raise", show_default=True,
    help="The handling of out-of-bounds indices: they are an error (raise), become the nearest "
    "valid index (clip), wrap around (wrap), or address nothing (fill, drop).",
)  # fmt: skip
negative = click.option(
    "--negative/--no-negative", default=True, show_default=True,
    help="Whether negative indices count from the end.",
)  # fmt: skip


def check_fill_value(mode: str) -> None:
    """Raise UsageError for a fill value if the mode does not fill."""
    source = click.get_current_context().get_parameter_source("fill_value")
    if source not in (None, ParameterSource.DEFAULT) and mode not in FILLING:
        raise click.UsageError(f"--fill-value is for --mode fill or drop, got --mode {mode}.")


fill_value = click.option(
    "--fill-value", default="0", show_default=True, callback=number_or_text, metavar="X",
    help="The value for out-of-bounds indices with --mode fill or drop.",
)  # fmt: skip
reduction = click.option(
    "--reduction", type=click.Choice(REDUCTIONS), default="none", show_default=True,
    help="How updates combine with existing values.",
)  # fmt: skip
decode = click.option(
    "--decode/--no-decode", default=True, show_default=True,
    help="Whether to decode packed numbers of netCDF and Zarr (scale_factor, add_offset, "
    "_FillValue, missing_value, _Unsigned), or to use the stored numbers.",
)  # fmt: skip
memory = click.option(
    "--memory", default=MEMORY, show_default=True, callback=_size, metavar="BYTES",
    help="The maximum memory to use.",
)  # fmt: skip
spill_dir = click.option(
    "--spill-dir", type=click.Path(file_okay=False), metavar="DIR",
    help="The folder for scratch files, by default the folder of OUT.",
)  # fmt: skip
no_clobber = click.option("--no-clobber", is_flag=True, help="Do not replace an existing output.")
no_progress = click.option("--no-progress", is_flag=True, help="Show no progress bar.")
device = click.option(
    "--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True,
    help="Where the calls run: on this processor, or on a CUDA device.",
)  # fmt: skip
exclude_self = click.option(
    "--exclude-self", is_flag=True, help="Leave existing values out of the reduction."
)


def fold_keywords(reduction: str, exclude_self: bool) -> dict[str, Any]:
    """Return the keyword arguments of a scatter for these two options."""
    return {"reduction": reduction, "include_self": not exclude_self}


feature_level = click.option(
    "--feature-level", default="6_4", show_default=True, metavar="LEVEL", callback=_level,
    help="DirectML's feature level, 1_0 to 6_4.", shell_complete=_levels,
)  # fmt: skip
