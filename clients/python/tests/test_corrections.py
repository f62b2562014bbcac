"""Every form of correction, with each word that it may have, against a real pair."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

import pytest

import emend
from emend import _corrections
from emend._generated import messages

from .services import Pair


@pytest.mark.parametrize(
    ("words", "offered", "known"),
    [
        (_corrections.LEVELS, _corrections._Level, messages.TrustLevel),
        (_corrections.SYNONYMS, _corrections._Synonyms, messages.SynonymRelation),
        (_corrections.EDGES, _corrections._Edge, messages.EdgeRelation),
        (_corrections.RATINGS, _corrections._Rating, messages.SearchRatingValue),
    ],
)
def test_each_word_is_one_of_the_contract(words: Mapping[object, str], offered: object, known: object) -> None:
    assert set(words) == set(get_args(offered))
    assert set(words.values()) <= set(get_args(known))


def test_the_service_stores_each_word(feedback: emend.Feedback) -> None:
    for relation in _corrections.SYNONYMS:
        term = feedback.synonyms(f"term {relation}", ["other"], relation=relation).feedback.correction
        assert term and term.term and term.term.relation == _corrections.SYNONYMS[relation]
    for level in _corrections.LEVELS:
        host = f"{level}.example"
        trusted = feedback.trust_domain(host, level=level, reason="a test").feedback.correction
        assert trusted and trusted.domain_set_trust
        assert trusted.domain_set_trust.level == _corrections.LEVELS[level]
        shown = feedback.unblock_domain(host, level=level, reason="a test").feedback.correction
        assert shown and shown.domain_unblock and shown.domain_unblock.level == _corrections.LEVELS[level]
    for label in _corrections.EDGES:
        edge = feedback.label_edge(f"edge-{label}", relation=label).feedback.correction
        assert edge and edge.edge_correct and edge.edge_correct.correct_relation == _corrections.EDGES[label]
    for value in _corrections.RATINGS:
        rated = feedback.rate(f"q{value}", value).feedback.correction
        assert rated and rated.search_rating and rated.search_rating.value == _corrections.RATINGS[value]


def test_a_word_that_there_is_not_is_refused_with_those_there_are(feedback: emend.Feedback) -> None:
    refused: list[tuple[str, Callable[[], object]]] = [
        ("relation", lambda: feedback.synonyms("a", ["b"], relation="typo")),  # type: ignore[arg-type]
        ("relation", lambda: feedback.label_edge("e", relation="cites")),  # type: ignore[arg-type]
        ("level", lambda: feedback.trust_domain("a.example", level="blocked", reason="x")),  # type: ignore[arg-type]
        ("value", lambda: feedback.rate("q", 2)),  # type: ignore[arg-type]
    ]
    for field, call in refused:
        with pytest.raises(emend.InvalidArgument, match="must be one of") as said:
            call()
        assert [violation.field for violation in said.value.violations] == [field]


def agreed(node: emend.Node, say: Callable[[str], emend.Recorded]) -> None:
    """Three people say it, and the node has learned it."""
    for reporter in ("jane", "ana", "mia"):
        said = say(reporter)
    assert said.applied_revision is not None, said
    node.wait_for_revision(said.applied_revision)


def test_a_misspelling_finds_the_word_and_not_the_other_way_round(
    feedback: emend.Feedback, node: emend.Node, namespace: str
) -> None:
    agreed(node, lambda who: feedback.synonyms("dog", ["dgo"], relation="misspelling", reporter=who, wait=True))
    assert node.synonyms(namespace, "dgo") == ["dog"]
    assert node.synonyms(namespace, "dog") == []


def test_phrases_and_entities_are_learned(feedback: emend.Feedback, node: emend.Node, namespace: str) -> None:
    agreed(node, lambda who: feedback.phrase_mapping("go", verb="walk", reporter=who, wait=True))
    assert node.resolve(namespace, "Go").choice == "walk"
    agreed(node, lambda who: feedback.entity("the tower", correct="e-1", instead_of="e-2", reporter=who, wait=True))
    assert node.resolve(namespace, "The Tower", kind="entity").choice == "e-1"
    own = feedback.phrase_mapping("mine", verb="open", reporter="ana", only_for_reporter=True, wait=True)
    assert own.applied_revision is not None, own
    node.wait_for_revision(own.applied_revision)
    assert node.resolve(namespace, "mine", user="ana").scope == "user"
    assert node.resolve(namespace, "mine", user="jane").choice is None


def test_a_domain_is_unblocked_and_cleared(feedback: emend.Feedback, node: emend.Node, namespace: str) -> None:
    def applied(said: emend.Recorded) -> Any:
        assert said.applied_revision is not None, said
        node.wait_for_revision(said.applied_revision)
        return node.trust(namespace, "www.spam.example")

    trust = applied(feedback.block_domain("spam.example", reporter="jane", reason="spam", wait=True))
    assert trust.blocked
    trust = applied(
        feedback.unblock_domain("spam.example", level="low", reporter="jane", reason="it got better", wait=True)
    )
    assert (trust.blocked, trust.level, trust.pattern) == (False, "low", "spam.example")
    trust = applied(feedback.clear_domain("spam.example", reporter="jane", reason="nobody knows", wait=True))
    assert (trust.blocked, trust.pattern) == (False, "")


def test_a_claim_is_restored(pair: Pair, feedback: emend.Feedback, node: emend.Node, namespace: str) -> None:
    with emend.Evidence(pair.learning, namespace=namespace) as evidence:
        evidence.upsert_evidence(claims=[{"claim_id": "c-1", "text": "Water is wet."}])
    feedback.reject_claim("c-1", code="SPAM", reporter="jane", reason="no", wait=True)
    said = feedback.restore_claim("c-1", reporter="jane", reason="it is right", wait=True)
    assert said.applied_revision is not None, said
    node.wait_for_revision(said.applied_revision)
    state = node.claim_state(namespace, "c-1")
    assert state is not None and state.state == "restored"
