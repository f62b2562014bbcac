"""What a node answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from ._message import NONE, Message

Level = Literal["primary", "government", "academic", "trusted", "low", "unverified", "blocked"]


class Group(Message):
    """What to search for where a term stands in a text."""

    start: int = 0
    """Where it begins in the original."""
    end: int = 0
    """Where it ends."""
    alternatives: Sequence[str] = ()
    """What to search for, as people write it; one of them must be found."""


class Expanded(Message):
    """A text with what else to search for where terms stand in it."""

    original: str = ""
    """The text as it was."""
    groups: Sequence[Group] = ()
    """Where terms stand for which there is something else to search, from left to right."""
    text: str = ""
    """As one text: by keyword with ``A OR B`` where a term stands, by embedding with the representatives behind it."""

    _kinds: ClassVar[Mapping[str, str]] = {"groups": "Group[]"}


class Confidence(Message):
    """A name of confidence."""

    name: str = ""
    """The name."""
    min_score: float = 0.0
    """The least score that has it."""


class SearchAttempt(Message):
    """One search of a plan."""

    number: int = 0
    """Which one, from 1."""
    namespaces: Sequence[str] = ()
    """Where to search; empty: where the backend does without being told."""
    more_namespaces: Sequence[str] = ()
    """Where to search beside that."""
    min_score: float = 0.0
    """The score from which on results are given, 0.0 to 1.0."""
    top_k: int = 0
    """How many results, 1 to 100."""
    expand: bool = False
    """Whether the text is embedded with its synonyms. A search by words always has them."""


class SearchTuning(Message):
    """How queries of a type are searched."""

    top_k: int = 0
    """How many results, 1 to 100."""
    min_score: float = 0.0
    """The score from which on results are given, 0.0 to 1.0."""
    confidences: Sequence[Confidence] = ()
    """Names of confidence and the score from which on a result has it, from the highest down."""
    weights: Mapping[str, float] = NONE
    """What lists of results weigh when they are merged, by name."""
    namespaces: Sequence[str] = ()
    """Where to search; empty: where the backend does without being told."""
    suggestion: str = ""
    """What to tell the user when no search found anything; empty: a text of the backend's own."""
    attempts: Sequence[SearchAttempt] = ()
    """The searches of `retry_plan`."""

    _kinds: ClassVar[Mapping[str, str]] = {"confidences": "Confidence[]", "attempts": "SearchAttempt[]"}
    _renamed: ClassVar[Mapping[str, str]] = {"retry_plan": "attempts"}

    def retry_plan(self) -> Sequence[SearchAttempt]:
        """The searches to try until one finds something, first the one as configured. Then there is `suggestion`."""
        return self.attempts

    def confidence(self, score: float) -> str | None:
        """The confidence of a result with this score; ``None`` below all of them."""
        return next((known.name for known in self.confidences if score >= known.min_score), None)


class Trust(Message):
    """How far a source is trusted."""

    level: Level = "unverified"
    """The level; ``"unverified"`` also where nothing was decided."""
    weight: float = 0.0
    """What a result from it weighs in a ranking, 0.0 to 1.0."""
    blocked: bool = False
    """It must not be shown."""
    pattern: str = ""
    """The pattern of domains whose rule decided; empty: none did."""
    layer: str = ""
    """Who made the rule; empty: there is none."""
    decision: str = ""
    """What it decided; empty: there is none."""
    revision: int = 0
    """The revision that applied it; 0: there is none."""


class RenderedPrompt(Message):
    """A prompt as it is sent to the AI."""

    text: str = ""
    """The whole text."""
    version: int = 0
    """The version of the prompt: send it as ``prompt_version`` with ratings of what it makes."""
    settings: Mapping[str, str] = NONE
    """The settings of the model that belong to it, by name."""


class CurrentPrompt(Message):
    """The version of a prompt that is current under a label."""

    text: str = ""
    """Its text, with ``{{name}}`` where variables stand."""
    version: int = 0
    """Its version."""
    variables: Mapping[str, str | None] = NONE
    """Its variables, and what stands there where a call says nothing; ``None``: each call must say."""
    settings: Mapping[str, str] = NONE
    """The settings of the model, by name."""
    revision: int = 0
    """The revision that made it current."""


class RatedExample(Message):
    """One rated output of an AI."""

    input: str = ""
    """What the AI was given."""
    output: str = ""
    """What it made of it."""
    corrected: str = ""
    """What it should have made of it; empty if nobody said."""
    issues: Sequence[str] = ()
    """What is wrong with the output, most named first."""


class Examples(Message):
    """The newest rated examples for what an AI is asked."""

    language: Literal["en", "ja"] = "en"
    """The language of the headings around them."""
    good: Sequence[RatedExample] = ()
    """Examples of good outputs."""
    bad: Sequence[RatedExample] = ()
    """Examples to avoid."""

    _kinds: ClassVar[Mapping[str, str]] = {"good": "RatedExample[]", "bad": "RatedExample[]"}


class UserProfile(Message):
    """What a user knows and wants to learn."""

    experience_years: int | None = None
    """How many years of experience the user has, if that is known."""
    specialties: Sequence[str] = ()
    """What the user is a specialist in."""
    known_technologies: Sequence[str] = ()
    """The technologies that the user knows."""
    learning_goals: Sequence[str] = ()
    """What the user wants to learn."""


class Decided(Message):
    """What people decided about a claim or an edge."""

    state: str = ""
    """Of a claim ``"rejected"`` or ``"restored"``; of an edge ``"supports"``, ``"refutes"`` or ``"neutral"``."""
    reason_code: str = ""
    """Why a claim was rejected, as a code; empty if nobody said."""
    revision: int = 0
    """The revision that applied it."""


class NodeStatus(Message):
    """What a node holds, and how current it is."""

    connected: bool = False
    """Whether its stream is open."""
    revision: int = 0
    """The revision at or below which everything is applied."""
    installation: str = ""
    """Whose resources it answers from; empty before the first state."""
    other_installation: str = ""
    """The installation that answers instead, and that it was not told to accept; empty: none."""
    epoch: str = ""
    """The epoch of the log that the revision belongs to; empty before the first state."""
    origin: Literal["nothing", "disk_copy", "stream"] = "nothing"
    """Where its state came from."""
    age_seconds: float | None = None
    """How long ago it was known to hold everything there was; ``None``: never."""
    in_doubt: bool = False
    """Something is missing or wrong, and a new snapshot is on its way."""
    last_error: str = ""
    """Why the last stream ended, for people; empty while one is open."""


class ChangedResource(Message):
    """One key that changed."""

    kind: str = ""
    """The kind, for example ``"invocation_phrase"``."""
    namespace: str = ""
    """The search application."""
    key: str = ""
    """The key, in normal form."""
    qualifier: str = ""
    """What else identifies it; empty for most kinds."""
    user_id: str = ""
    """Whose it is; empty: everybody's."""
    revision: int = 0
    """The revision that changed it."""
    removed: bool = False
    """It is gone."""


class Change(Message):
    """Something that happened to a node."""

    event: Literal[
        "updated",
        "snapshot",
        "restored",
        "connected",
        "disconnected",
        "mismatch",
        "copy_refused",
        "in_doubt",
        "missed",
    ] = "updated"
    """What. ``snapshot``: all that was held is replaced; ``restored``: from the copy on disk; ``mismatch``: another installation
    answers; ``missed``: the callback was too slow for some."""
    revision: int | None = None
    """The revision at or below which everything is applied, where one is known."""
    changes: Sequence[ChangedResource] = ()
    """What changed, ordered by revision; empty unless ``updated``."""
    detail: str = ""
    """More of it in words for people."""

    _kinds: ClassVar[Mapping[str, str]] = {"changes": "ChangedResource[]"}


class RecorderCounts(Message):
    """What became of what was recorded."""

    sent: int = 0
    """Accepted by the service."""
    dropped: int = 0
    """Lost: there was no room, the program ended, or the service did not answer in time."""
    invalid: int = 0
    """Refused by the service as invalid."""
