"""What happens when services, networks and certificates fail."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import emend

from .services import PROGRAM, Pair, Proxy, certificates, eventually


def test_a_node_outlives_a_service_that_is_killed(own_pair: Callable[..., Pair], tmp_path: Path) -> None:
    pair = own_pair()
    feedback = emend.Feedback(pair.feedback, namespace="cards", deadline=30)
    review = emend.Review(pair.learning, namespace="cards")
    review.put_resource(
        key={"kind": "RESOURCE_KIND_INVOCATION_PHRASE", "key": "go", "namespace": "cards"},
        value={"invocation_phrase": {"verb": "walk"}},
        reason="first",
    )
    with emend.Node(pair.learning, id="n", cache_dir=tmp_path / "cache", cache_interval=0.1) as node:
        eventually("it is learned", lambda: node.resolve("cards", "go").choice == "walk")
        eventually("the copy is written", lambda: any((tmp_path / "cache").iterdir()))
        pair.kill()
        eventually("the loss is noticed", lambda: node.status().last_error)
        assert not node.status().connected
        assert node.resolve("cards", "go").choice == "walk"
        with pytest.raises(emend.Unavailable):
            feedback.verb("run", correct="walk", deadline=0.5)

        # A process that ends without a word, as by kill -9, leaves its copy.
        program = (
            "import emend, os, sys; node = emend.Node(sys.argv[1], id='n', cache_dir=sys.argv[2]);"
            "node.wait_ready(5); print(node.resolve('cards', 'go').choice, node.status().origin, flush=True);"
            "os.kill(os.getpid(), 9)"
        )
        copied = tmp_path / "copied"
        shutil.copytree(tmp_path / "cache", copied)
        for _ in range(2):
            ended = subprocess.run(
                [sys.executable, "-c", program, pair.learning, copied], capture_output=True, text=True, timeout=60
            )
            assert ended.stdout == "walk disk_copy\n", ended

        pair.start()
        # What was submitted while it was away and what follows arrives.
        for reporter in ("jane", "ana", "mia"):
            said = feedback.verb("run", correct="sprint", reporter=reporter, wait=True)
        assert said.applied_revision, said
        node.wait_for_revision(said.applied_revision, 40)
        assert node.resolve("cards", "run").choice == "sprint"


def test_a_server_that_falls_silent_is_noticed_within_thirty_seconds(pair: Pair) -> None:
    proxy = Proxy(pair.learning)
    with emend.Node(proxy.address, id="silent", bookmark_interval=1) as node:
        node.wait_ready(10)
        eventually("it is connected", lambda: node.status().connected)
        proxy.fall_silent()
        eventually("the silence is noticed", lambda: node.status().last_error, within=30)
        assert not node.status().connected
        proxy.talk()
        eventually("it connects again", lambda: node.status().connected, within=60)
    proxy.close()


def test_of_two_addresses_one_may_be_dead(pair: Pair, namespace: str) -> None:
    dead = "127.0.0.1:1"
    with emend.Node([dead, pair.learning], id="two") as node:
        node.wait_ready(10)
    feedback = emend.Feedback([dead, pair.feedback], namespace=namespace)
    assert feedback.verb("a", correct="b").feedback_id


def test_certificates_let_in_those_who_have_them(own_pair: Callable[..., Pair], tmp_path: Path) -> None:
    ours, others = tmp_path / "ours", tmp_path / "others"
    for directory in (ours, others):
        directory.mkdir()
        certificates(directory, "server", "client")
    pair = own_pair(
        *("--tls-cert", str(ours / "server.pem"), "--tls-key", str(ours / "server.key")),
        *("--tls-client-ca", str(ours / "ca.pem")),
    )
    own = {"ca": ours / "ca.pem", "certificate": ours / "client.pem", "key": ours / "client.key"}
    with emend.Node(pair.learning, id="secured", **own) as node:  # type: ignore[arg-type]
        node.wait_ready(10)
        assert node.status().connected
    feedback = emend.Feedback(pair.feedback, namespace="cards", **own)  # type: ignore[arg-type]
    assert feedback.verb("a", correct="b").feedback_id

    with emend.Node(pair.learning, id="mistaken", **{**own, "ca": others / "ca.pem"}) as node:  # type: ignore[arg-type]
        with pytest.raises(emend.DeadlineExceeded, match="certificate"):
            node.wait_ready(1)
    # Of several attempts the last may be the one that the time limit ends.
    with pytest.raises((emend.Unavailable, emend.DeadlineExceeded), match="certificate"):
        emend.Feedback(
            pair.feedback, namespace="cards", deadline=1, **{**own, "ca": others / "ca.pem"}  # type: ignore[arg-type]
        ).verb("a", correct="b")
    with emend.Node(pair.learning, id="nobody", ca=ours / "ca.pem") as node:
        with pytest.raises(emend.DeadlineExceeded):
            node.wait_ready(1)
    with pytest.raises(emend.InvalidArgument, match="addresses"):
        emend.Node("http://127.0.0.1:1", id="plain", ca=ours / "ca.pem")


def token(directory: Path, name: str) -> tuple[str, str]:
    """A new token and its hash."""
    said = subprocess.run([PROGRAM, "admin", "token"], check=True, capture_output=True, text=True).stdout
    words = said.replace('"', " ").replace("[", " ").replace("]", " ").split()
    hashes = [word for word in words if len(word) == 64 and set(word) <= set("0123456789abcdef")]
    tokens = [word for word in words if len(word) > 40 and word not in hashes]
    assert len(hashes) == 1 and len(tokens) == 1, said
    return tokens[0], hashes[0]


def test_a_token_may_be_exchanged_while_all_runs(own_pair: Callable[..., Pair], tmp_path: Path) -> None:
    first, second, relay = (token(tmp_path, name) for name in ("first", "second", "relay"))
    rules, file = tmp_path / "auth.toml", tmp_path / "token"

    def allow(*hashes: str) -> None:
        def principal(name: str, hashes: tuple[str, ...], roles: str) -> str:
            quoted = ", ".join(f'"{one}"' for one in hashes)
            return (
                f'[[principals]]\nname = "{name}"\ntoken_sha256 = [{quoted}]\n'
                f'grants = [{{ roles = [{roles}], namespaces = "*" }}]\n'
            )

        said = principal("relay", (relay[1],), '"ingester"')
        said += principal("backend", hashes, '"reporter", "subscriber"')
        changed = rules.with_suffix(".new")
        changed.write_text(said)
        changed.replace(rules)

    allow(first[1])
    file.write_text(first[0])
    (tmp_path / "relay").write_text(relay[0])
    pair = own_pair("--auth-config", str(rules), "--learning-token-file", str(tmp_path / "relay"))
    feedback = emend.Feedback(pair.feedback, namespace="cards", token_file=file)
    with emend.Node(pair.learning, id="n", token_file=file) as node:
        node.wait_ready(10)
        assert feedback.verb("a", correct="b").feedback_id

        def refused() -> bool:
            try:
                feedback.verb("a", correct="b")
            except emend.Unauthenticated:
                return True
            return False

        allow(second[1])
        eventually("the old token is refused", refused)
        eventually("the node's stream ends", lambda: "UNAUTHENTICATED" in node.status().last_error.upper().replace(" ", ""))
        file.write_text(second[0])
        assert feedback.verb("a", correct="b").feedback_id
        eventually("the node is let in again", lambda: node.status().connected, within=60)

    with pytest.raises(emend.Unauthenticated):
        emend.Feedback(pair.feedback, namespace="cards", token=first[0]).verb("a", correct="b")
    with pytest.raises(emend.PermissionDenied) as denied:
        emend.Review(pair.learning, namespace="cards", token=second[0]).put_resource(key={})
    assert second[0] not in str(denied.value)


def test_another_installation_is_not_taken_for_ones_own(own_pair: Callable[..., Pair], tmp_path: Path) -> None:
    pair = own_pair()
    cache = tmp_path / "cache"
    feedback = emend.Feedback(pair.feedback, namespace="cards")
    said = feedback.block_domain("spam.example", reporter="jane", reason="spam", wait=True)
    assert said.applied_revision
    with emend.Node(pair.learning, id="n", cache_dir=cache) as node:
        node.wait_for_revision(said.applied_revision)
        ours = node.status().installation
    pair.kill()
    # Another one answers at its address.
    pair.directory = tmp_path / "another"
    pair.start()
    told: list[str] = []
    with emend.Node(pair.learning, id="n", cache_dir=cache) as node:
        node.on_change(lambda change: told.append(change.event))
        other = eventually("the other one is noticed", lambda: node.status().other_installation)
        assert node.status().installation == ours != other
        node.accept_installation(other)
        eventually("it is accepted", lambda: node.status().installation == other)
        eventually("the callback is told", lambda: "snapshot" in told)
