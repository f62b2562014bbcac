"""A node under 1,000 updates a second: it keeps up, answers, and needs no more memory as time goes by. Ten minutes of it each night
(`EMEND_TEST_LONG`), some seconds on each change."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator

import pytest
import xxhash

from .stream_server import Cursor, Fixed64, Script, StreamServer, cursor, encoded, key

SECONDS = 600 if os.environ.get("EMEND_TEST_LONG") else 6
RATE = 1_000
PHRASES = 1_000
# Memory is read so many times; what is read first is still warming up.
MARKS, WARM = 12, 3
# How many seconds it may be late on a machine that does other things, too.
BEHIND = 60
# What is sent together, so that the pace does not depend on how finely a thread can sleep.
BURST = 20
EPOCH = "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f20"
INSTALLATION = "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10"

NODE = """
import json, os, sys
import emend

node = emend.Node(sys.argv[1], id="updated")
told = 0

def count(change):
    global told
    told += len(change.changes)

node.on_change(count)
for line in sys.stdin:
    revision = int(line)
    node.wait_for_revision(revision, %(within)d)
    verbs = {node.resolve("updates", f"phrase {number}").choice for number in range(%(phrases)d)}
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    print(json.dumps({"resident": resident, "verbs": sorted(verbs), "told": told}), flush=True)
node.close()
"""


def at(revision: int) -> bytes:
    return cursor({"epoch": EPOCH, "revision": revision, "filter_hash": "7"})


def resource(revision: int) -> bytes:
    """The phrases take turns; what they mean does not change, their revision does."""
    number = revision % PHRASES
    identity = {"namespace": "updates", "kind": 1, "key": f"phrase {number}", "qualifier": "", "user_id": ""}
    value = encoded((1, f"phrase {number}"), (2, 1), (10, encoded((1, "walk"))))
    return encoded((1, key(identity)), (2, revision), (3, value), (4, Fixed64(xxhash.xxh3_64_intdigest(value))))


def update(held: int, revision: int) -> bytes:
    """One message with a change of each revision after what is held."""
    changes = ((3, encoded((1, one), (2, resource(one)), (4, 1))) for one in range(held + 1, revision + 1))
    return encoded((5, encoded((1, held), (2, revision), *changes, (4, 1), (5, at(revision)))))


def updates(_: Cursor | None) -> Iterator[bytes]:
    yield encoded((2, encoded((2, 1), (4, INSTALLATION))))
    yield encoded((4, encoded((1, at(0)))))
    yield update(0, PHRASES)
    begins = time.monotonic()
    for sent in range(SECONDS * RATE):
        if sent % BURST == 0:
            time.sleep(max(0.0, begins + sent / RATE - time.monotonic()))
        yield update(PHRASES + sent, PHRASES + sent + 1)


@pytest.mark.long
def test_a_node_keeps_up_with_a_thousand_updates_a_second_in_the_same_memory() -> None:
    server = StreamServer()
    server.scripts["updated"] = script = Script([], updates)
    script.may_begin.set()
    program = textwrap.dedent(NODE) % {"phrases": PHRASES, "within": SECONDS + BEHIND}
    node = subprocess.Popen(
        [sys.executable, "-c", program, server.address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert node.stdin and node.stdout
    begins, resident = time.monotonic(), []
    for mark in range(1, MARKS + 1):
        sent = SECONDS * RATE * mark // MARKS
        node.stdin.write(f"{PHRASES + sent}\n")
        node.stdin.flush()
        said = json.loads(node.stdout.readline())
        behind = time.monotonic() - begins - sent / RATE
        assert said["verbs"] == ["walk"]
        assert behind < BEHIND, f"{behind} s behind"
        resident.append(said["resident"] / 1e6)
    print(f"resident MB at {MARKS} times over {SECONDS} s: {[round(one, 1) for one in resident]}, told {said['told']}")
    node.stdin.close()
    assert node.wait(30) == 0
    server.close()
    # The callback was told of every change, or would have been told that it missed some.
    assert said["told"] > 0
    assert max(resident[WARM:]) < resident[WARM] * 1.05 + 4, resident
