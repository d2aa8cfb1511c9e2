"""Tables by name: those of a net, which figures and claims read, and those of the whole run that figures are drawn
from. Imports none of them; outside the code digest."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jumpboard.artefacts.tables import Schema

MODULES = {
    "metrics": "jumpboard.schemas.metrics",
    "curves": "jumpboard.schemas.curves",
    "signal": "jumpboard.schemas.signal",
    "moments": "jumpboard.schemas.moments",
    "covariance": "jumpboard.schemas.covariance",
    "correlations": "jumpboard.schemas.correlations",
    "jumpboard": "jumpboard.schemas.jumpboard",
    "step_gains": "jumpboard.schemas.step_gains",
    "expansion": "jumpboard.schemas.expansion",
    "widening": "jumpboard.schemas.widening",
    "chain": "jumpboard.schemas.chain",
    "routes": "jumpboard.schemas.routes",
    "ladder": "jumpboard.schemas.ladder",
    "fits": "jumpboard.schemas.fits",
    "fitted": "jumpboard.schemas.fitted",
    "betas": "jumpboard.schemas.betas",
    "fitted_chain": "jumpboard.schemas.fitted_chain",
}
RUN_MODULES = {"claims": "jumpboard.schemas.claims"}


def table_schema(name: str) -> "Schema":
    """The schema of a table, which its module holds under the table's name in capitals."""
    schema: Schema = getattr(importlib.import_module((MODULES | RUN_MODULES)[name]), name.upper())
    return schema
