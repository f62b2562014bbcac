"""Every form of correction, for threads and for asyncio alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, TypeVar, Union

from ._errors import invalid
from ._generated.messages import (
    Correction,
    EdgeRelation,
    Feedback,
    Outcome,
    SearchRatingValue,
    SearchTuningValue,
    SynonymRelation,
    TrustLevel,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

R = TypeVar("R")

_Level = Literal["primary", "government", "academic", "trusted", "low", "unverified"]
_Synonyms = Literal["equivalent", "one_way", "misspelling"]
_Edge = Literal["supports", "refutes", "neutral"]
_Rating = Literal[1, 0, -1]

# What the words are called on the wire: type checkers hold both sides to the contract.
LEVELS: Mapping[_Level, TrustLevel] = {
    "primary": "TRUST_LEVEL_PRIMARY",
    "government": "TRUST_LEVEL_GOVERNMENT",
    "academic": "TRUST_LEVEL_ACADEMIC",
    "trusted": "TRUST_LEVEL_TRUSTED",
    "low": "TRUST_LEVEL_LOW",
    "unverified": "TRUST_LEVEL_UNVERIFIED",
}
SYNONYMS: Mapping[_Synonyms, SynonymRelation] = {
    "equivalent": "SYNONYM_RELATION_EQUIVALENT",
    "one_way": "SYNONYM_RELATION_ONE_WAY",
    "misspelling": "SYNONYM_RELATION_TYPO",
}
EDGES: Mapping[_Edge, EdgeRelation] = {
    "supports": "EDGE_RELATION_SUPPORTS",
    "refutes": "EDGE_RELATION_REFUTES",
    "neutral": "EDGE_RELATION_NEUTRAL",
}
RATINGS: Mapping[_Rating, SearchRatingValue] = {
    1: "SEARCH_RATING_VALUE_UP",
    0: "SEARCH_RATING_VALUE_NEUTRAL",
    -1: "SEARCH_RATING_VALUE_DOWN",
}


class Said(TypedDict, total=False):
    """What every correction may say beside what is wrong and right."""

    reporter: str
    """The person or agent behind it: a stable id, unique in the namespace."""
    session: str
    """The session in which it was made."""
    client: str
    """The client software, for example ``"web/4.2"``."""
    client_key: str
    """A keyed hash of the end user's address, made by the backend."""
    namespace: str
    """The search application. Default: the client's."""
    query_id: str
    """The query that it is about."""
    reason: str
    """Why, in the reporter's words."""
    context: Mapping[str, str]
    """Anything that helps a reviewer."""
    only_for_reporter: bool
    """It is learned for the reporter alone."""
    wait: bool
    """Answer once it is evaluated, or after at most 2 s while it is pending. Default: once it is stored."""
    request_id: str
    """Makes it count once across processes, too. Default: an id is made, with which it is safely repeated."""
    deadline: float
    """How many seconds it may take."""


class Recorded:
    """A stored correction."""

    def __init__(self, feedback: Feedback) -> None:
        self.feedback = feedback
        """As it is stored."""

    @property
    def feedback_id(self) -> str:
        """Its id."""
        return self.feedback.feedback_id

    @property
    def outcome(self) -> Outcome:
        """What became of it so far."""
        return self.feedback.outcome or Outcome()

    @property
    def state(self) -> str:
        """In one word: ``"pending"``, ``"applied"``, ``"awaiting_review"``, ``"rejected"``, ``"no_effect"``, ``"refused"`` or
        ``"withdrawn"``."""
        return (self.outcome.state or "").removeprefix("OUTCOME_STATE_").lower()

    @property
    def message(self) -> str:
        """For the person who said it."""
        return self.outcome.message

    @property
    def reason(self) -> str:
        """A stable reason in UPPER_SNAKE_CASE; empty if the state alone says enough."""
        return self.outcome.reason

    @property
    def applied_revision(self) -> int | None:
        """If it is applied, the revision that did it: `Node.wait_for_revision` waits for it."""
        return self.outcome.revision if self.state == "applied" else None

    def __repr__(self) -> str:
        return f"Recorded({self.feedback_id!r}, {self.state!r}, {self.message!r})"


def request(correction: Any, said: Mapping[str, Any], namespace: str | None) -> dict[str, Any]:
    """The request that submits a correction."""
    known = Said.__annotations__
    for name in said:
        if name not in known:
            raise TypeError(f"a correction says nothing of the name {name!r}; there are {', '.join(known)}")
    reporter = {
        "id": said.get("reporter"),
        "session_id": said.get("session"),
        "client": said.get("client"),
        "client_key": said.get("client_key"),
    }
    reporter = {name: value for name, value in reporter.items() if value is not None}
    return {
        "request_id": said.get("request_id"),
        "namespace": said.get("namespace", namespace),
        "reporter": reporter or None,
        "query_id": said.get("query_id"),
        "reason": said.get("reason"),
        "context": said.get("context"),
        "scope": "SCOPE_USER" if said.get("only_for_reporter") else None,
        "wait": "WAIT_EVALUATED" if said.get("wait") else None,
        "correction": correction,
    }


class Corrections(Generic[R]):
    """Every form of correction. Which fields there are, and their bounds, the service says: it names every one that is wrong."""

    def submit(self, correction: Union[Correction, Mapping[str, Any]], **said: Unpack[Said]) -> R:
        """Stores a correction of any form. When it returns, it is stored and will not be lost."""
        raise NotImplementedError

    def verb(self, phrase: str, *, correct: str, instead_of: str | None = None, **said: Unpack[Said]) -> R:
        """The wrong verb was chosen for what the user said; ``correct`` is right."""
        form = _given(original_input=phrase, correct_choice=correct, system_choice=instead_of)
        return self.submit({"verb": form}, **said)

    def phrase_mapping(self, phrase: str, *, verb: str, **said: Unpack[Said]) -> R:
        """A phrase means a verb."""
        return self.submit({"phrase_mapping": {"phrase": phrase, "verb": verb}}, **said)

    def entity(self, alias: str, *, correct: str, instead_of: str | None = None, **said: Unpack[Said]) -> R:
        """The wrong entity was chosen for what the user said; ``correct`` is the right one's id."""
        form = _given(original_input=alias, correct_choice=correct, system_choice=instead_of)
        return self.submit({"entity": form}, **said)

    def prohibit(self, phrase: str, *, choice: str, **said: Unpack[Said]) -> R:
        """Never offer this choice for this phrase."""
        return self.submit({"prohibition": {"phrase": phrase, "forbidden_choice": choice}}, **said)

    def synonyms(
        self,
        term: str,
        equivalents: Sequence[str],
        *,
        relation: _Synonyms = "equivalent",
        **said: Unpack[Said],
    ) -> R:
        """Other terms stand for this one: who searches for one finds the others. ``"one_way"``: who searches for another finds this
        one, and not the other way round; ``"misspelling"``: they are misspellings of it."""
        form = {"term": term, "equivalents": list(equivalents), "relation": _wire("relation", SYNONYMS, relation)}
        return self.submit({"term": form}, **said)

    def block_domain(self, pattern: str, *, task_id: str | None = None, **said: Unpack[Said]) -> R:
        """The sources of a domain must not be shown. The reason is required."""
        return self.submit({"domain_block": _given(pattern=pattern, task_id=task_id)}, **said)

    def unblock_domain(
        self, pattern: str, *, level: _Level | None = None, task_id: str | None = None, **said: Unpack[Said]
    ) -> R:
        """The sources of a domain are shown again. The reason is required."""
        form = _given(pattern=pattern, level=_wire("level", LEVELS, level), task_id=task_id)
        return self.submit({"domain_unblock": form}, **said)

    def clear_domain(self, pattern: str, *, task_id: str | None = None, **said: Unpack[Said]) -> R:
        """What people decided about a domain no longer applies. The reason is required."""
        return self.submit({"domain_clear_override": _given(pattern=pattern, task_id=task_id)}, **said)

    def trust_domain(
        self, pattern: str, *, level: _Level, task_id: str | None = None, **said: Unpack[Said]
    ) -> R:
        """The sources of a domain are trusted this far. The reason is required."""
        form = _given(pattern=pattern, level=_wire("level", LEVELS, level), task_id=task_id)
        return self.submit({"domain_set_trust": form}, **said)

    def reject_claim(
        self, claim_id: str, *, code: str | None = None, task_id: str | None = None, **said: Unpack[Said]
    ) -> R:
        """A claim is hidden from results. The reason is required."""
        form = _given(claim_id=claim_id, reason_code=code, task_id=task_id)
        return self.submit({"claim_reject": form}, **said)

    def restore_claim(self, claim_id: str, *, task_id: str | None = None, **said: Unpack[Said]) -> R:
        """A claim is shown, whatever speaks against it. The reason is required."""
        return self.submit({"claim_restore": _given(claim_id=claim_id, task_id=task_id)}, **said)

    def label_edge(
        self,
        edge_id: str,
        *,
        relation: _Edge,
        task_id: str | None = None,
        **said: Unpack[Said],
    ) -> R:
        """An edge between a fragment and a claim has this label."""
        form = _given(edge_id=edge_id, correct_relation=_wire("relation", EDGES, relation), task_id=task_id)
        return self.submit({"edge_correct": form}, **said)

    def rate(self, query_id: str, value: _Rating, /, **said: Unpack[Said]) -> R:
        """What a search returned is good (1), or is not (-1). The query is the one that its backend recorded under that id."""
        rating = {"value": _wire("value", RATINGS, value)}
        said = {**said, "query_id": query_id}
        return self.submit({"search_rating": rating}, **said)

    def rate_output(
        self,
        target: str,
        value: str,
        *,
        target_id: str,
        input_text: str,
        output_text: str,
        prompt_version: str | int | None = None,
        issues: Sequence[str] = (),
        corrected_text: str | None = None,
        correct_judgement: str | None = None,
        **said: Unpack[Said],
    ) -> R:
        """What an AI made is good, or is not: the newest such ratings of a target are its examples."""
        form = _given(
            target=target,
            value=value,
            target_id=target_id,
            input_text=input_text,
            output_text=output_text,
            prompt_version=None if prompt_version is None else str(prompt_version),
            issues=list(issues) or None,
            corrected_text=corrected_text,
            correct_judgement=correct_judgement,
        )
        return self.submit({"rating": form}, **said)

    def tune(
        self, query_type: str, tuning: Union[SearchTuningValue, Mapping[str, Any]], **said: Unpack[Said]
    ) -> R:
        """Queries of one type are searched so."""
        return self.submit({"tuning": {"query_type": query_type, "tuning": tuning}}, **said)


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _wire(field: str, words: Mapping[Any, str], word: Any) -> str | None:
    """What a word is called on the wire."""
    if word is None:
        return None
    if word not in words:
        raise invalid(field, f"must be one of {', '.join(map(repr, words))}, is {word!r}")
    return words[word]
