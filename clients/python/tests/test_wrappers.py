"""Every class does what its language's users expect, against a real pair."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pytest

import emend
from emend import messages
from emend.answers import Change

from .services import Pair, Proxy, eventually


def learn(feedback: emend.Feedback, node: emend.Node, phrase: str, verb: str) -> emend.Recorded:
    for reporter in ("jane", "ana", "mia"):
        said = feedback.verb(phrase, correct=verb, reporter=reporter, wait=True)
    assert said.applied_revision is not None, said
    node.wait_for_revision(said.applied_revision)
    return said


def test_what_three_people_say_is_answered(
    feedback: emend.Feedback, node: emend.Node, namespace: str
) -> None:
    candidates = [("create_csa", 0.71), ("create_isda", 0.69)]
    hit = node.resolve(namespace, "Set up a CSA", candidates=candidates)
    assert (hit.choice, hit.score, hit.feedback_hint) == (None, 0.0, True)
    first = feedback.verb(
        "set up a CSA", correct="create_isda", instead_of="create_csa", reporter="jane", wait=True
    )
    assert (first.state, first.reason) == ("pending", "BELOW_THRESHOLD")
    assert first.message
    learn(feedback, node, "set up a CSA", "create_isda")
    hit = node.resolve(namespace, "SET UP  a csa", candidates)
    assert (hit.choice, hit.score, hit.scope, hit.feedback_hint) == ("create_isda", 1.0, "global", False)
    assert hit.normalized_phrase == "set up a csa"
    assert hit.learned_revision and hit.learned_revision <= hit.revision


def test_what_is_prohibited_is_never_offered(
    feedback: emend.Feedback, review: emend.Review, node: emend.Node, namespace: str
) -> None:
    feedback.prohibit("close it", choice="delete_all", reporter="jane", wait=True)
    waiting = list(review.list_candidates())
    assert [found.value.prohibition for found in waiting if found.value] != []
    decided = review.approve_candidate(
        candidate_id=waiting[0].candidate_id, etag=waiting[0].etag, reason="it deletes"
    )
    assert decided.candidate is not None
    eventually("the prohibition arrives", lambda: node.resolve(namespace, "close it").prohibited == ["delete_all"])


def test_synonyms_expand_a_text(feedback: emend.Feedback, node: emend.Node, namespace: str) -> None:
    for reporter in ("jane", "ana", "mia"):
        feedback.synonyms("leader", ["face"], reporter=reporter, wait=True)
    text = "𠮷 damage to the face"
    expanded = eventually("the synonym arrives", lambda: node.expand(namespace, text).groups)
    group = expanded[0]
    assert text[group.start : group.end] == "face"
    assert "leader" in group.alternatives
    assert node.synonyms(namespace, "face") == ["leader"]
    assert "OR" in node.expand(namespace, text).text
    assert node.expand(namespace, text, mode="embedding").text.endswith("leader")


def test_tuning_comes_with_its_plan(feedback: emend.Feedback, node: emend.Node, namespace: str) -> None:
    default = node.tuning(namespace, "HYBRID")
    assert [attempt.number for attempt in default.retry_plan()] == [1, 2, 3]
    said = feedback.tune("HYBRID", {"top_k": 7, "min_score": 0.5}, reporter="ops", wait=True)
    assert said.applied_revision, said
    node.wait_for_revision(said.applied_revision)
    assert node.tuning(namespace, "HYBRID").top_k == 7


def test_sources_are_trusted_blocked_and_ranked(
    feedback: emend.Feedback, node: emend.Node, namespace: str
) -> None:
    blocked = feedback.block_domain("spam.example", reporter="jane", reason="spam", wait=True)
    trusted = feedback.trust_domain("arxiv.org", level="academic", reporter="jane", reason="papers", wait=True)
    assert blocked.applied_revision and trusted.applied_revision
    node.wait_for_revision(max(blocked.applied_revision, trusted.applied_revision))
    assert node.is_blocked(namespace, "www.spam.example")
    trust = node.trust(namespace, "arxiv.org")
    assert (trust.level, trust.blocked, trust.pattern) == ("academic", False, "arxiv.org")
    results = [("a", "spam.example", 1.0), ("b", "other.example", 0.6), ("c", "arxiv.org", 0.6)]
    assert [result for result, _, _ in node.rank(namespace, results)] == ["c", "b"]


def test_evidence_is_upserted_judged_and_read(
    pair: Pair, namespace: str, feedback: emend.Feedback, node: emend.Node
) -> None:
    with emend.Evidence(pair.learning, namespace=namespace) as evidence:
        evidence.upsert_evidence(claims=[{"claim_id": "c-1", "text": "Water is wet."}])
        rejected = feedback.reject_claim("c-1", code="SPAM", reporter="jane", reason="no", wait=True)
        assert rejected.applied_revision
        node.wait_for_revision(rejected.applied_revision)
        state = node.claim_state(namespace, "c-1")
        assert state is not None and (state.state, state.reason_code) == ("rejected", "SPAM")
        assert node.edge_label(namespace, "e-1") is None
        found = evidence.get_claim(claim_id="c-1")
        assert found.claim is not None


def test_prompts_are_rendered_with_examples(
    pair: Pair, feedback: emend.Feedback, review: emend.Review, node: emend.Node, namespace: str
) -> None:
    assert node.render_prompt(namespace, "SUMMARIZE_DAILY") is None
    put = review.put_resource(
        key={"kind": "RESOURCE_KIND_PROMPT", "key": "SUMMARIZE_DAILY", "namespace": namespace},
        value={"prompt": {"text": "Summarize {{day}}.", "variables": [{"name": "day"}]}},
        reason="first",
    )
    assert put.resource is not None
    eventually("the prompt arrives", lambda: node.prompt(namespace, "SUMMARIZE_DAILY"))
    feedback.rate_output(
        "SUMMARIZE_DAILY",
        "GOOD",
        target_id="o-1",
        input_text="a long day",
        output_text="It was long.",
        reporter="ana",
        wait=True,
    )
    eventually("the example arrives", lambda: node.examples(namespace, "SUMMARIZE_DAILY").good)
    rendered = node.render_prompt(namespace, "SUMMARIZE_DAILY", variables={"day": "Monday"}, user="ana")
    assert rendered is not None
    assert rendered.text.startswith("Summarize Monday.") and "It was long." in rendered.text
    assert rendered.version == 1
    with emend.Outputs(pair.learning, namespace=namespace) as outputs:
        served = outputs.render_prompt(target="SUMMARIZE_DAILY", variables={"day": "Monday"}, user_id="ana")
        assert served.text == rendered.text
    assert node.profile(namespace, "ana").experience_years is None
    with emend.Outputs(pair.learning, namespace=namespace) as outputs:
        outputs.update_profile(
            profile={
                "namespace": namespace,
                "user_id": "ben",
                "known_technologies": ["Docker"],
                "learning_goals": ["Kubernetes"],
            }
        )
        learnings = [("docker-101", "Docker"), ("go-101", "Go"), ("k8s-101", "Kubernetes")]
        ranked = outputs.rank_learnings(
            user_id="ben", learnings=[{"id": id, "topics": [topic]} for id, topic in learnings]
        )
    assert (list(ranked.ids), list(ranked.left_out_ids)) == (["k8s-101", "go-101"], ["docker-101"])
    with pytest.raises(emend.InvalidArgument) as refused:
        node.render_prompt(namespace, "SUMMARIZE_DAILY")
    assert "day" in str(refused.value)


def test_queries_are_recorded_and_rated(
    pair: Pair, feedback: emend.Feedback, namespace: str
) -> None:
    with emend.QueryRecorder(pair.feedback, namespace=namespace) as recorder:
        assert recorder.query(query_id="q-1", query_text="red face", hit_count=0)
        result = messages.QueryResult(object_id="card-1", score=0.5)
        assert recorder.query(messages.Query(query_id="q-2", query_text="blue", top_results=[result]))
        assert recorder.interaction(query_id="q-2", object_id="card-1", action="click", position=1)
        recorder.flush()
        assert recorder.counts().sent == 3
        with pytest.raises(emend.InvalidArgument):
            recorder.query({"nonsense": 1})
    said = feedback.rate("q-1", -1, reporter="jane", reason="nothing found")
    assert said.feedback.query_id == "q-1"

    def stored() -> dict[str, messages.Query] | None:
        queries = {query.query_id: query for query in feedback.list_queries()}
        # The service answers before it stores, so that no search waits for it.
        return queries if len(queries) == 2 and queries["q-2"].interactions else None

    recorded = eventually("they are stored", stored)
    assert recorded["q-1"].hit_count == 0
    assert recorded["q-2"].top_results[0].object_id == "card-1"
    at = recorded["q-2"].recorded_at
    assert at is not None and abs(datetime.now(timezone.utc) - at) < timedelta(minutes=1)


def test_lists_are_fetched_page_by_page(feedback: emend.Feedback) -> None:
    requests = [
        {"correction": {"verb": {"original_input": f"phrase {number}", "correct_choice": "go"}}}
        for number in range(7)
    ]
    stored = feedback.submit_all(requests)
    assert all(isinstance(one, emend.Recorded) for one in stored)
    listed = feedback.list_feedback(page_size=3)
    assert len(list(listed)) == 7
    assert [len(page.feedback) for page in listed.pages()] == [3, 3, 1]


def test_of_a_batch_only_what_is_wrong_fails(feedback: emend.Feedback) -> None:
    good = messages.Correction(verb=messages.VerbCorrection(original_input="a", correct_choice="b"))
    stored = feedback.submit_all(
        [messages.SubmitFeedbackRequest(correction=good, namespace=feedback.namespace or ""), {"correction": {}}]
    )
    assert isinstance(stored[0], emend.Recorded)
    assert isinstance(stored[1], emend.InvalidArgument)
    assert stored[1].violations


def test_an_error_names_each_field_with_its_bound(feedback: emend.Feedback) -> None:
    with pytest.raises(emend.InvalidArgument) as refused:
        feedback.verb("x" * 600, correct="y" * 300)
    error = refused.value
    assert (error.code, error.reason) == ("INVALID_ARGUMENT", "INVALID_FIELDS")
    fields = [violation.field for violation in error.violations]
    assert fields == ["correction.verb.original_input", "correction.verb.correct_choice"]
    assert "512" in str(error) and "256" in str(error)
    with pytest.raises(emend.NotFound):
        feedback.get("0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10")
    with pytest.raises(TypeError, match="nonsense"):
        feedback.verb("a", correct="b", nonsense=1)  # type: ignore[call-arg]
    with pytest.raises(emend.InvalidArgument, match="nonsense"):
        feedback.submit({"nonsense": {}})


def test_what_is_closed_refuses_calls_and_has_no_connection(pair: Pair, namespace: str) -> None:
    proxy = Proxy(pair.learning)
    with emend.Review(proxy.address, namespace=namespace) as review:
        assert list(review.list_candidates()) == []
        assert len(proxy.open) == 1
    calls: list[Callable[[], object]] = [
        lambda: list(review.list_candidates()),
        lambda: next(review.watch_queue()),
        lambda: review.import_resources([]),
        lambda: asyncio.run(review.aio.get_access()),
    ]
    for call in calls:
        with pytest.raises(emend.FailedPrecondition, match="closed") as refused:
            call()
        assert refused.value.reason == "CLOSED"
    eventually("its connection is closed", lambda: not proxy.open)
    review.close()
    proxy.close()


def test_a_retracted_correction_no_longer_counts(feedback: emend.Feedback) -> None:
    said = feedback.verb("a", correct="b", reporter="jane", wait=True)
    feedback.retract(said.feedback_id, reason="a slip", wait=True)
    assert feedback.get(said.feedback_id).feedback.retracted_at is not None


def test_callbacks_are_told_what_changed(feedback: emend.Feedback, node: emend.Node, namespace: str) -> None:
    told: list[Change] = []
    arrived = threading.Event()

    def tell(change: Change) -> None:
        told.append(change)
        if any(changed.namespace == namespace for changed in change.changes):
            arrived.set()
        raise ValueError("a callback that fails harms nobody")

    stop = node.on_change(tell)
    learn(feedback, node, "go", "walk")
    assert arrived.wait(10)
    changed = [changed for change in told for changed in change.changes if changed.namespace == namespace]
    assert (changed[0].kind, changed[0].key, changed[0].removed) == ("invocation_phrase", "go", False)
    stop()


def test_settings_that_are_wrong_are_named_with_their_bounds() -> None:
    with pytest.raises(emend.InvalidArgument) as refused:
        emend.Node("7402", id="x", keep_alive_interval=-1, kinds=["nonsense"])
    fields = {violation.field for violation in refused.value.violations}
    assert fields == {"addresses", "keep_alive_interval", "kinds[0]"}
    with pytest.raises(emend.InvalidArgument, match="key: must be given"):
        emend.Feedback("127.0.0.1:1", certificate="client.pem")
    with pytest.raises(emend.InvalidArgument, match="nonsense"):
        emend.Feedback("127.0.0.1:1", nonsense=1)  # type: ignore[call-arg]


def test_every_method_of_the_contract_has_its_own() -> None:
    offered = {
        name
        for offers in (emend.Feedback, emend.Review, emend.Evidence, emend.Outputs)
        for name in dir(offers)
    }
    from emend._generated import services

    for service in vars(services).values():
        if isinstance(service, type) and service.__name__.endswith("Service"):
            methods = {name for name in vars(service) if not name.startswith("_")}
            assert methods <= offered, service
