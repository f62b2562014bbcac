"""Phrases that nobody corrected: the vectors of `conformance/near.jsonl`, on what a real service was taught."""

from __future__ import annotations

from typing import Any

import emend

from .services import Pair
from .test_conformance import agree, is_noticed, lines


def teach(review: emend.Review, namespace: str, learned: list[list[str]], prohibited: list[list[str]]) -> int:
    def put(kind: str, phrase: str, value: dict[str, Any], qualifier: str = "", user: str = "") -> int:
        key = {"namespace": namespace, "kind": kind, "key": phrase, "qualifier": qualifier, "user_id": user}
        return review.put_resource(key=key, value=value).revision

    last = 0
    for phrase, verb in learned:
        last = put("RESOURCE_KIND_INVOCATION_PHRASE", phrase, {"invocation_phrase": {"verb": verb}})
    for phrase, choice, user in prohibited:
        last = put("RESOURCE_KIND_PROHIBITION", phrase, {"prohibition": {"forbidden_choice": choice}}, choice, user)
    return last


def test_near_answers_are_those_of_every_client(pair: Pair, review: emend.Review, namespace: str) -> None:
    vectors = lines("near")
    told = vectors[0]["input"]
    last = teach(review, namespace, told["learned"], told["prohibited"])
    with emend.Node(pair.learning, id="near", namespaces=[namespace], include_user_scoped=True) as node:
        node.wait_for_revision(last)
        node.wait_near()

        def check(line: dict[str, Any]) -> None:
            asked = line["input"]
            where = namespace if asked["namespace"] == "fund-admin" else "nothing-there"
            kind = {1: "verb", 2: "entity"}[asked["kind"]]
            hit = node.resolve(where, asked["phrase"], kind=kind, user=asked.get("user"), near=True)
            near: dict[str, object] | None = None
            if hit.near is not None:
                because = [[near.phrase, near.choice, repr(near.similarity)] for near in hit.near.because]
                near = {"choice": hit.near.choice, "confidence": repr(hit.near.confidence)}
                near |= {"because": because, "model": hit.near.model}
            agree(line, {"status": hit.near_status, "near": near}, line["answer"])

        for line in vectors:
            check(line)
        is_noticed(vectors[0], check)
        unasked = node.resolve(namespace, told["phrase"])
        assert (unasked.near, unasked.near_status) == (None, "not_asked")
