"""What every client must answer: the vectors of `conformance`, all groups. What a node holds comes to it as it does in life, over a
stream; what it says of it is compared on the side of the service."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import grpc
import pytest
import xxhash

import emend
from emend.answers import Change

from .services import ROOT, eventually
from .stream_server import Cursor, Fixed64, Script, StreamServer, cursor, digest, encoded, key

# How a node says that a stream ended, and what the vectors call it; whatever else ends one is not the node's doing.
ENDS = {
    "drained by the server": "DRAIN",
    "the digests differ": "DIGEST_MISMATCH",
    "another installation answers": "INSTALLATION_MISMATCH",
    "protocol violation": "PROTOCOL_VIOLATION",
}
EPOCH = "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f20"
NEWEST = (1 << 63) - 1
INSTALLATION = "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10"


def lines(group: str) -> list[dict[str, Any]]:
    path = ROOT / "conformance" / f"{group}.jsonl"
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").rstrip("\n").split("\n")]
    assert found, f"the group {group} is empty"
    return [{**line, "name": f"{group}/{line['id']}"} for line in found]


def agree(line: dict[str, Any], given: object, answer: object) -> None:
    """Fails if something else is answered, and names the line."""
    assert given == answer, f"{line['name']}: {line['checks']}"


def spoilt(answer: Any) -> Any:
    """The answer with its first text, number or truth changed; with a text where there is none."""
    if isinstance(answer, dict):
        name = min(answer)
        return {**answer, name: spoilt(answer[name])}
    if isinstance(answer, list):
        return [spoilt(answer[0]), *answer[1:]] if answer else ["spoilt"]
    if isinstance(answer, str):
        return answer + "x"
    if isinstance(answer, bool):
        return not answer
    return "spoilt" if answer is None else -1


def is_noticed(line: dict[str, Any], check: Callable[[dict[str, Any]], None], part: str | None = None) -> None:
    """Checks that the line passes, and that it is named if its answer, or a part of it, is another."""
    check(line)
    answer = line["answer"]
    changed = spoilt(answer) if part is None else {**answer, part: spoilt(answer[part])}
    with pytest.raises(AssertionError) as failed:
        check({**line, "answer": changed})
    assert str(failed.value).startswith(f"{line['name']}: "), failed.value


def cases(group: str) -> pytest.MarkDecorator:
    """A test for each line of a group."""
    return pytest.mark.parametrize("line", [pytest.param(line, id=line["id"]) for line in lines(group)])


@pytest.fixture(scope="module")
def server() -> Iterator[StreamServer]:
    server = StreamServer()
    yield server
    server.close()


class Following(NamedTuple):
    """A node that follows a script."""

    node: emend.Node
    script: Script
    ended: list[str | None]
    """How its streams ended so far."""


_numbers = itertools.count()


def follow(server: StreamServer, script: Script) -> Following:
    name, ended = f"conforms-{next(_numbers)}", list[Any]()
    server.scripts[name] = script
    node = emend.Node(server.address, id=name, include_user_scoped=True)

    def note(change: Change) -> None:
        if change.event == "disconnected":
            ended.append(next((end for said, end in ENDS.items() if change.detail.startswith(said)), None))

    node.on_change(note)
    script.may_begin.set()
    return Following(node, script, ended)


def messages(line: dict[str, Any]) -> list[list[bytes]]:
    return [[base64.b64decode(message) for message in stream["messages"]] for stream in line["input"]["streams"]]


class States:
    """Nodes that have followed the streams of a state, each made once."""

    def __init__(self, server: StreamServer) -> None:
        self._server = server
        self._following: dict[str, Following] = {}
        self._lines = {line["id"]: line for line in lines("stream")}

    def __getitem__(self, state: str) -> Following:
        if state not in self._following:
            line = self._lines[state]
            self._following[state] = follow(self._server, Script(messages(line)))
        following = self._following[state]
        revision = (self._lines[state]["answer"]["position"] or {"revision": 0})["revision"]
        opened = len(following.script.streams)
        eventually(
            f"{state} is followed",
            lambda: len(following.script.cursors) > opened and following.node.status().revision >= revision,
        )
        return following

    def close(self) -> None:
        for following in self._following.values():
            following.node.close()


@pytest.fixture(scope="module")
def states(server: StreamServer) -> Iterator[States]:
    states = States(server)
    yield states
    states.close()


@cases("normalisation")
def test_phrases_have_the_normal_form_of_every_client(line: dict[str, Any]) -> None:
    asked = line["input"]
    if "text" in asked:
        agree(line, {"key": emend.normalize(asked["text"])}, line["answer"])
        return
    first, last = asked["characters"]
    characters = (chr(code) for code in range(first, last + 1) if not 0xD800 <= code <= 0xDFFF)
    joined = "\n".join(emend.normalize(f"a{character}b") for character in characters)
    agree(line, {"xxh3": xxhash.xxh3_64_hexdigest(joined.encode())}, line["answer"])


def holding(position: Cursor, digests: list[bytes], installation: str) -> Callable[[Cursor | None], Iterator[bytes]]:
    """Tells a node what it should hold, and if it agrees, one change more."""

    def sent(_: Cursor | None) -> Iterator[bytes]:
        revision = position["revision"] + 1
        identity = {"namespace": "marker", "kind": 1, "key": "holds", "qualifier": "", "user_id": ""}
        resource = encoded((1, key(identity)), (2, revision), (3, b""), (4, Fixed64(xxhash.xxh3_64_intdigest(b""))))
        update = encoded(
            *((1, position["revision"]), (2, revision), (3, encoded((1, revision), (2, resource))), (4, 1)),
            (5, cursor({**position, "revision": revision})),
        )
        yield encoded((1, encoded((1, cursor(position)), (2, installation))))
        yield encoded((6, encoded((1, cursor(position)), *((2, group) for group in digests))))
        yield encoded((5, update))

    return sent


@pytest.fixture(scope="module")
def followed(server: StreamServer) -> Iterator[dict[str, Following]]:
    """All streams at once, since after most of them a node pauses; and then whether it holds what it should."""
    following = {}
    for line in lines("stream"):
        answer = line["answer"]
        groups = [digest(group) for group in answer["digests"]]
        then = holding(answer["next_cursor"] or {}, groups, answer["installation"] or "")
        script = Script(messages(line), then if answer["next_cursor"] else lambda _: iter(()))
        accepted = [number for number, stream in enumerate(line["input"]["streams"]) if stream.get("accept")]
        script.waits = frozenset(number - 1 for number in accepted)
        following[line["id"]] = follow(server, script)
    yield following
    for one in following.values():
        one.node.close()


@cases("stream")
def test_a_node_holds_what_the_messages_say(line: dict[str, Any], followed: dict[str, Following]) -> None:
    node, script, ended = followed[line["id"]]
    answer, streams = line["answer"], len(script.streams)
    for stream in line["input"]["streams"]:
        if "accept" in stream:
            eventually("the first installation's is there", lambda: node.status().revision > 0)
            node.accept_installation(stream["accept"])
            script.may_end.set()
    eventually("all streams were opened", lambda: len(script.cursors) > streams, within=60)
    agree(line, script.cursors[:streams], [stream["cursor"] for stream in answer["streams"]])
    agree(line, script.cursors[streams], answer["next_cursor"])
    # An event may be told after the next stream was opened.
    eventually("the end of each stream is told", lambda: len(ended) >= streams)
    agree(line, ended[:streams], [stream["ended"] for stream in answer["streams"]])
    if answer["next_cursor"]:
        # It agreed with the digests of all that it should hold, or it would have left before this.
        position = answer["position"]["revision"] + 1
        eventually(f"{line['name']}: it holds what it should", lambda: node.status().revision == position)
    status = node.status()
    agree(line, status.epoch, (answer["position"] or {"epoch": ""})["epoch"])
    agree(line, status.installation, answer["installation"] or "")


def test_a_node_that_holds_something_else_is_told_apart(server: StreamServer) -> None:
    line = next(line for line in lines("stream") if line["id"] == "update")
    answer = line["answer"]
    spoilt = [digest({**group, "hash": "00" * 16}) for group in answer["digests"]]
    script = Script(messages(line), holding(answer["next_cursor"], spoilt, answer["installation"]))
    node, _, ended = follow(server, script)
    eventually("it leaves the stream", lambda: ended[2:3] == ["DIGEST_MISMATCH"])
    assert node.status().revision == answer["position"]["revision"]
    node.close()


def snapshot(items: list[dict[str, Any]], digests: list[bytes]) -> list[bytes]:
    at = cursor({"epoch": EPOCH, "revision": NEWEST, "filter_hash": "0"})
    sent = [encoded((2, encoded((1, NEWEST), (2, 1), (3, len(items)), (4, INSTALLATION))))]
    for item in items:
        resource = encoded(
            *((1, encoded((3, item["key"]), (4, item["qualifier"]), (5, item["user_id"]))), (2, int(item["revision"]))),
            *((3, bytes.fromhex(item["value_bytes"])), (4, Fixed64(int(item["value_checksum"], 16)))),
        )
        sent.append(encoded((3, encoded((1, resource), (2, item["namespace"]), (3, item["kind"])))))
    return [*sent, encoded((4, encoded((1, at), *((2, group) for group in digests))))]


@cases("digests")
def test_digests_are_those_of_every_client(line: dict[str, Any], server: StreamServer) -> None:
    answer = line["answer"]
    items = [
        {"value_bytes": "", **item, "value_checksum": known["value_checksum"]}
        for item, known in zip(line["input"]["items"], answer["items"], strict=True)
    ]
    groups: dict[tuple[Any, ...], list[int]] = {}
    for item, known in zip(items, answer["items"], strict=True):
        group = (item["namespace"], item["kind"], item["user_id"] != "")
        groups.setdefault(group, []).append(int(known["hash"], 16))
    sums = [sum(hashes) % (1 << 128) for hashes in groups.values()]
    agree(line, f"{sum(sums) % (1 << 128):032x}", answer["hash"])

    def told(spoil: int) -> list[bytes]:
        return [
            digest(
                {
                    **dict(zip(("namespace", "kind", "user_scoped"), group, strict=True)),
                    "count": len(hashes),
                    "hash": f"{(sum(hashes) + spoil) % (1 << 128):032x}",
                }
            )
            for group, hashes in groups.items()
        ]

    right = follow(server, Script([snapshot(items, told(0))]))
    wrong = follow(server, Script([snapshot(items, told(1))]))
    eventually("both streams ended", lambda: right.ended and wrong.ended)
    agree(line, (right.ended[0], wrong.ended[0]), (None, "DIGEST_MISMATCH" if items else None))
    right.node.close()
    wrong.node.close()


@pytest.fixture(scope="module")
def reporting(server: StreamServer) -> Iterator[dict[str, Following]]:
    """All at once: a node reports every ten seconds at most."""
    of = {line["id"]: line for line in lines("stream")}
    following = {}
    for line in lines("reports"):
        following[line["id"]] = follow(server, Script(messages(of[line["input"]["state"]])))
    yield following
    for one in following.values():
        one.node.close()


@cases("reports")
def test_a_node_reports_what_it_has_applied(
    line: dict[str, Any], reporting: dict[str, Following], within: float = 30
) -> None:
    _, script, _ = reporting[line["id"]]
    eventually("all streams were opened", lambda: len(script.cursors) > len(script.streams), within=60)
    report = line["answer"]["report"]
    if report is None:
        agree(line, script.reports, [])
        return
    # How long applying took is measured by the node's own clock: no message decides it.
    wanted = {name: value for name, value in report.items() if name != "delays"}

    def last() -> bool:
        said = script.reports[-1] if script.reports else {}
        return {**said, "node_id": wanted["node_id"]} == wanted

    eventually(f"{line['name']}: {wanted} is reported", last, within)


@cases("lookups")
def test_look_ups_are_answered_as_by_every_client(line: dict[str, Any], states: States) -> None:
    asked = line["input"]
    node = states[asked["state"]].node
    hit = node.resolve(
        asked["namespace"],
        asked["phrase"],
        [(choice, score) for choice, score in asked.get("candidates", [])],
        "verb" if asked["kind"] == 1 else "entity",
        asked.get("user"),
    )
    found = {"value": hit.choice, "score": hit.score, "revision": hit.learned_revision, "scope": (hit.scope or "").upper()}
    given = {
        "found": None if hit.choice is None else found,
        "found_prohibited": hit.match_prohibited,
        "prohibited": list(hit.prohibited),
        "feedback_hint": hit.feedback_hint,
        "phrase": hit.normalized_phrase,
        "revision": hit.revision,
    }
    agree(line, given, line["answer"])


@cases("expansion")
def test_texts_are_expanded_as_by_every_client(line: dict[str, Any], states: States) -> None:
    asked = line["input"]
    node, namespace, user = states[asked["state"]].node, asked["namespace"], asked.get("user")
    if "term" in asked:
        agree(line, {"terms": node.synonyms(namespace, asked["term"], user)}, line["answer"])
        return
    text = asked["text"]
    expanded = node.expand(namespace, text, asked["mode"], user)
    groups = [
        {"text": text[group.start : group.end], "alternatives": list(group.alternatives)} for group in expanded.groups
    ]
    agree(line, {"groups": groups, "rendered": expanded.text}, line["answer"])


@cases("prompts")
def test_prompts_are_rendered_as_by_every_client(line: dict[str, Any], states: States) -> None:
    asked = dict(line["input"])
    node = states[asked.pop("state")].node
    try:
        rendered = node.render_prompt(asked.pop("namespace"), asked.pop("target"), **asked)
        said = None if rendered is None else {"text": rendered.text, "version": rendered.version}
        agree(line, {"rendered": said}, line["answer"])
    except emend.Error as error:
        agree(line, {"error": refusal(error)}, line["answer"])


def refusal(error: emend.Error) -> dict[str, Any]:
    return {"code": error.code, "violations": [violation._asdict() for violation in error.violations]}


@cases("errors")
def test_what_failed_is_told_as_by_every_client(line: dict[str, Any], states: States) -> None:
    asked = line["input"]
    if "phrase" in asked:
        with pytest.raises(emend.Error) as refused:
            states[asked["state"]].node.resolve(asked["namespace"], asked["phrase"])
        agree(line, refusal(refused.value), line["answer"])
        return
    server, address = refusing(asked)
    with emend.Feedback(address, namespace="shop", deadline=1) as feedback, pytest.raises(emend.Error) as failed:
        # Nothing is called again: the first answer is the one that is looked at.
        feedback.redrive_dead_letters()
    server.stop(None)
    error = failed.value
    given = {
        **refusal(error),
        "reason": error.reason,
        "message": error.message,
        "preconditions": [
            {"type": kind, "subject": subject, "description": description}
            for kind, subject, description in error.preconditions
        ],
        "retry_after_ms": None if error.retry_after is None else round(error.retry_after * 1000),
        "request_id": error.request_id,
    }
    agree(line, given, line["answer"])


def refusing(error: dict[str, Any]) -> tuple[Any, str]:
    """A server that answers every call with an error."""
    from concurrent.futures import ThreadPoolExecutor

    class Refuses(grpc.GenericRpcHandler):
        def service(self, _: Any) -> Any:
            return grpc.unary_unary_rpc_method_handler(self.refuse)

        def refuse(self, _: bytes, context: Any) -> bytes:
            details = base64.b64decode(error["details"])
            context.set_trailing_metadata((("grpc-status-details-bin", details),) if details else ())
            context.set_code(next(code for code in grpc.StatusCode if code.value[0] == error["code"]))
            context.set_details(error["message"])
            return b""

    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((Refuses(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, f"127.0.0.1:{port}"


def test_of_each_group_a_line_whose_answer_is_changed_is_named(
    states: States, server: StreamServer, followed: dict[str, Following], reporting: dict[str, Following]
) -> None:
    def middle(group: str) -> dict[str, Any]:
        found = lines(group)
        return found[len(found) // 2]

    is_noticed(middle("normalisation"), test_phrases_have_the_normal_form_of_every_client)
    for part in ("streams", "next_cursor", "installation"):
        is_noticed(middle("stream"), lambda line: test_a_node_holds_what_the_messages_say(line, followed), part)
    is_noticed(middle("digests"), lambda line: test_digests_are_those_of_every_client(line, server), "hash")
    # It was reported when the line passed.
    is_noticed(middle("reports"), lambda line: test_a_node_reports_what_it_has_applied(line, reporting, within=0.1))
    is_noticed(middle("lookups"), lambda line: test_look_ups_are_answered_as_by_every_client(line, states))
    is_noticed(middle("expansion"), lambda line: test_texts_are_expanded_as_by_every_client(line, states))
    is_noticed(middle("prompts"), lambda line: test_prompts_are_rendered_as_by_every_client(line, states))
    is_noticed(middle("errors"), lambda line: test_what_failed_is_told_as_by_every_client(line, states))
