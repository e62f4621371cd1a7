"""What requests carry in their bodies."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from skerry.sql.surrogates import escaped, is_whole


def _whole(text: str) -> str:
    """What is not would be remembered, and then stand in no answer."""
    if not is_whole(text):
        at = next(i for i, character in enumerate(text) if not is_whole(character))
        raise PydanticCustomError(
            "half_character",
            "{half} at column {column} is half a character: leave it out, or send both halves",
            {"half": escaped(text[at]), "column": at + 1},
        )
    return text


Text = Annotated[str, AfterValidator(_whole)]
#: A number: true is none, and neither is a text.
Whole = Annotated[int, Field(strict=True)]
Coordinate = Annotated[float, Field(allow_inf_nan=False, strict=True)]


class _Body(BaseModel):
    """What is misspelt is no wish to be passed over."""

    model_config = ConfigDict(extra="forbid")


class Command(_Body):
    """A command's argument, or of set_position the place in m, and the mote that runs it: none, all of them."""

    argument: Whole | None = None
    mote: Whole | None = None
    position: tuple[float, float] | None = None


class Ping(_Body):
    """The mote that sends a record, whom it is for, or to whoever stands nearest to a place, in m, and how long it may be under way,
    in s."""

    mote: Whole
    to: Whole | None = None
    within_s: Whole = 120
    place: tuple[Coordinate, Coordinate] | None = None
    #: The motes that it is to lead by, in order.
    by: list[Whole] = []


class Find(_Body):
    """Motes whose static attribute is low to high, and the one that searches for them; None: the root."""

    attribute: Text
    low: Whole
    high: Whole
    mote: Whole | None = None


class Question(_Body):
    """A query and who asks: here or as parameter ``user``."""

    sql: Text
    user: Text | None = None
    #: The query is stopped once nobody has read it for so long, in s.
    linger_s: float | None = Field(None, ge=1, allow_inf_nan=False, strict=True)


class NewUsers(_Body):
    """Who is to be a user."""

    names: Annotated[list[Text], Field(min_length=1)]


class Connecting(_Body):
    """A process that is to serve readers, with those that it has already: open feeds by query."""

    name: str
    host: str
    pid: int
    version: str
    readers: dict[str, int] = {}


class Reading(_Body):
    """A reader at a worker, who may be anybody."""

    query: str
    user: str | None = None


class Closed(_Body):
    """Feeds that a worker has closed, by their queries."""

    closed: list[str] = []
