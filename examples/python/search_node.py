"""A search node in Python: answers with what was learned first, then from its own search, and submits corrections.

It reads commands from standard input and answers each with one line of JSON:

    search PHRASE                       what the node answers
    correct REPORTER PHRASE = VERB      a user says what is right
    status                              what the node holds

See docs/integration/python.md. It needs grpcio, xxhash and, beside it, the code that grpcio-tools generates from the
protos.
"""

import argparse
import base64
import json
import os
import random
import struct
import sys
import threading
import time
import unicodedata
import uuid

import grpc
import xxhash
from emend.common.v1 import correction_pb2, resource_pb2
from emend.feedback.v1 import feedback_service_pb2, feedback_service_pb2_grpc
from emend.learning.v1 import subscription_service_pb2, subscription_service_pb2_grpc

PHRASE = resource_pb2.RESOURCE_KIND_INVOCATION_PHRASE
PROHIBITION = resource_pb2.RESOURCE_KIND_PROHIBITION


# [submit]
def submit(feedback, namespace, reporter, phrase, chosen, right):
    """Stores a correction and returns it with its outcome. Safe to repeat, because of the request id."""
    request = feedback_service_pb2.SubmitFeedbackRequest(
        request_id=str(uuid.uuid4()),
        namespace=namespace,
        reporter=correction_pb2.Reporter(id=reporter, client="search-node-python/1.0"),
        wait=feedback_service_pb2.WAIT_EVALUATED,
        correction=correction_pb2.Correction(
            verb=correction_pb2.VerbCorrection(
                original_input=phrase,
                system_choice=chosen if chosen != right else "",
                correct_choice=right,
            )
        ),
    )
    deadline = time.monotonic() + 10
    while True:
        try:
            return feedback.SubmitFeedback(request, timeout=deadline - time.monotonic()).feedback
        except grpc.RpcError as error:
            again = error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)
            if not again or time.monotonic() + 1 > deadline:
                raise
        time.sleep(random.uniform(0.1, 1))
# [/submit]


# [normalise]
# Default_Ignorable_Code_Point: invisible, so two phrases must not differ by it.
IGNORABLE = [
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
]  # fmt: skip


def normalise(text):
    """Version 1: NFKC case-folded, white space folded and trimmed. Keys on the stream are normalised already."""
    while True:
        kept = "".join(c for c in text if not any(low <= ord(c) <= high for low, high in IGNORABLE))
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", kept).casefold())
        if folded == text:
            return " ".join(text.split())
        text = folded
# [/normalise]


# [digest]
def item_hash(resource):
    """The hash that one resource adds to the digest of its group."""
    key = resource.key
    parts = [
        key.namespace.encode(),
        struct.pack("<i", key.kind),
        key.key.encode(),
        key.qualifier.encode(),
        key.user_id.encode(),
        struct.pack("<q", resource.revision),
        struct.pack("<Q", resource.value_checksum),
    ]
    return xxhash.xxh3_128_intdigest(b"".join(struct.pack("<I", len(part)) + part for part in parts))


class Holdings:
    """The resources that a node holds, with the digest of each group: (namespace, kind, user-scoped or not)."""

    def __init__(self):
        self.cursor = None
        self.installation = ""
        self.resources = {}
        self.digests = {}
        # The prohibitions of each phrase: (user or everybody, choice).
        self.prohibited = {}

    def put(self, resource):
        self.delete(resource.key)
        self.resources[identity(resource.key)] = resource
        self._count(resource, 1)
        if resource.key.kind == PROHIBITION:
            self.prohibited.setdefault(resource.key.key, set()).add((resource.key.user_id, resource.key.qualifier))

    def delete(self, key):
        resource = self.resources.pop(identity(key), None)
        if resource is not None:
            self._count(resource, -1)
            if key.kind == PROHIBITION:
                self.prohibited[key.key].discard((key.user_id, key.qualifier))

    def _count(self, resource, sign):
        group = (resource.key.namespace, resource.key.kind, resource.key.user_id != "")
        count, total = self.digests.get(group, (0, 0))
        self.digests[group] = (count + sign, (total + sign * item_hash(resource)) % 2**128)

    def differs(self, digests, all_groups):
        """Whether the server's digests differ. An update has those of the groups it changed, a bookmark all."""
        theirs = {(d.namespace, d.kind, d.user_scoped): (d.count, int.from_bytes(d.hash, "big")) for d in digests}
        own = {group: digest for group, digest in self.digests.items() if digest[0] or group in theirs}
        return any(own.get(group, (0, 0)) != digest for group, digest in theirs.items()) or (
            all_groups and any(group not in theirs for group in own)
        )


def identity(key):
    return (key.namespace, key.kind, key.key, key.qualifier, key.user_id)
# [/digest]


class Mismatch(Exception):
    """The digests of what the node holds differ from the server's."""


class OtherInstallation(Exception):
    """Another installation answers than the one whose resources the node holds."""


class Node:
    """Follows the stream in a thread of its own, and answers look-ups, which never wait for the network."""

    def __init__(self, learning, options):
        self.stub = subscription_service_pb2_grpc.SubscriptionServiceStub(learning)
        self.options = options
        self.lock = threading.Lock()
        self.held = Holdings()
        self.current = threading.Event()
        self.how = "never connected"
        self.problem = ""
        self.other_installation = ""
        self.delays = [0] * (len(self.BOUNDS) + 1)
        self.delays_sum = 0
        self.reported_at = 0.0
        self.saved = 0
        self.load()

    # [follow]
    def run(self):
        """Connects, follows the stream until it ends, and connects again, perhaps to another replica."""
        backoff = 0.1
        while True:
            try:
                wait = self.follow()
                backoff = 0.1
            except Mismatch:
                # Without a cursor the server sends a snapshot, which repairs the node.
                self.held.cursor, self.problem = None, "DIGEST_MISMATCH"
                wait, backoff = backoff, min(backoff * 2, 30)
            except OtherInstallation as other:
                # Keep what is held: another replica, or a repaired server, may answer next time.
                if self.other_installation != str(other):
                    self.other_installation = str(other)
                    print(f"another installation answers, {other}: see --accept-installation", file=sys.stderr)
                self.problem = "INSTALLATION_MISMATCH"
                self.report()
                wait, backoff = random.uniform(0, backoff), min(backoff * 2, 30)
            except grpc.RpcError as error:
                print(f"the stream ended: {error.code().name}", file=sys.stderr)
                wait, backoff = random.uniform(0, backoff), min(backoff * 2, 30)
            time.sleep(wait)

    def follow(self):
        """Follows one stream. Returns how long to wait before the next, in seconds."""
        request = subscription_service_pb2.SubscribeRequest(
            node=subscription_service_pb2.NodeInfo(id=self.options.node, version="1.0"),
            namespaces=[self.options.namespace],
            cursor=self.held.cursor,
        )
        request.bookmark_interval.FromSeconds(self.options.bookmark_seconds)
        coming, changes = Holdings(), []
        for message in self.stub.Subscribe(request):
            kind = message.WhichOneof("message")
            if kind == "resumed":
                self.held.installation = self.accepted(message.resumed.installation_id)
                self.is_current("resumed")
            elif kind == "snapshot_begin":
                # What is held stays in use until the snapshot is complete.
                coming = Holdings()
                coming.installation = self.accepted(message.snapshot_begin.installation_id)
            elif kind == "snapshot_chunk":
                chunk = message.snapshot_chunk
                for resource in chunk.resources:
                    # What nearly all keys have in common is sent once.
                    resource.key.namespace = resource.key.namespace or chunk.namespace
                    resource.key.kind = resource.key.kind or chunk.kind
                    coming.put(resource)
            elif kind == "snapshot_end":
                coming.cursor = message.snapshot_end.cursor
                with self.lock:
                    self.held = coming
                self.check(message.snapshot_end.digests, all_groups=True)
                self.is_current("snapshot")
            elif kind == "update":
                changes.extend(message.update.changes)
                if message.update.last:
                    self.apply(changes, message.update.cursor)
                    self.check(message.update.digests, all_groups=False)
                    changes = []
            elif kind == "bookmark":
                self.held.cursor = message.bookmark.cursor
                self.check(message.bookmark.digests, all_groups=True)
                self.save()
            elif kind == "drain":
                return message.drain.reconnect_after.ToTimedelta().total_seconds()
            # Any other message is one that only newer servers send: skip it.
            self.report()
        return 0.1

    def accepted(self, installation):
        """Returns the installation that answers, if the node may take anything from it."""
        known = self.held.installation
        if self.held.resources and known and installation not in (known, self.options.accept_installation):
            raise OtherInstallation(installation)
        self.other_installation = ""
        return installation

    def apply(self, changes, cursor):
        """Applies all of an update at once: what one revision changed becomes visible together."""
        with self.lock:
            for change in changes:
                if change.WhichOneof("change") == "put":
                    self.held.put(change.put)
                else:
                    self.held.delete(change.deleted)
            self.held.cursor = cursor
        now = time.time() * 1000
        for change in changes:
            self.count_delay(now - change.committed_at.ToMilliseconds())

    def check(self, digests, all_groups):
        if self.held.differs(digests, all_groups):
            raise Mismatch
    # [/follow]

    # [report]
    BOUNDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000]

    def count_delay(self, milliseconds):
        self.delays[sum(bound < milliseconds for bound in self.BOUNDS)] += 1
        self.delays_sum += int(milliseconds)

    def report(self):
        """Reports what was applied, not what was received: at most every ten seconds, a problem at once."""
        if self.held.cursor is None or (time.monotonic() < self.reported_at + 10 and not self.problem):
            return
        unusable = [held for held in self.held.resources.values() if held.value.WhichOneof("value") is None]
        report = subscription_service_pb2.ReportStatusRequest(
            node_id=self.options.node,
            applied=self.held.cursor,
            rejected=[
                subscription_service_pb2.RejectedResource(key=held.key, revision=held.revision, error="unknown kind")
                for held in unusable[:100]
            ],
            rejected_count=len(unusable),
            delays=subscription_service_pb2.DelayHistogram(
                bounds_ms=self.BOUNDS, counts=self.delays, sum_ms=self.delays_sum
            ),
            problem=self.problem,
        )
        try:
            self.stub.ReportStatus(report, timeout=5)
        except grpc.RpcError:
            return  # The next report will contain it.
        self.reported_at, self.problem = time.monotonic(), ""
        self.delays, self.delays_sum = [0] * (len(self.BOUNDS) + 1), 0
    # [/report]

    # [resolve]
    def resolve(self, phrase, user=""):
        """Returns the learned verb, unless it is prohibited, and its revision; and the prohibited choices."""
        key, namespace = normalise(phrase), self.options.namespace
        with self.lock:
            prohibited = {choice for owner, choice in self.held.prohibited.get(key, ()) if owner in ("", user)}
            # The user's own comes first.
            for owner in dict.fromkeys([user, ""]):
                found = self.held.resources.get((namespace, PHRASE, key, "", owner))
                if found is not None and found.value.invocation_phrase.verb not in prohibited:
                    return found.value.invocation_phrase.verb, found.revision, prohibited
        return None, 0, prohibited
    # [/resolve]

    # [save]
    def save(self):
        """Writes a copy to start from while learning-svc is down. It is replaced completely or not at all."""
        if not self.options.state:
            return
        copy = {
            "installation": self.held.installation,
            "cursor": base64.b64encode(self.held.cursor.SerializeToString()).decode(),
            "resources": [
                base64.b64encode(resource.SerializeToString()).decode() for resource in self.held.resources.values()
            ],
        }
        with open(self.options.state + ".new", "w", encoding="utf-8") as file:
            json.dump(copy, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(self.options.state + ".new", self.options.state)
        self.saved = self.held.cursor.revision

    def load(self):
        if not self.options.state or not os.path.exists(self.options.state):
            return
        with open(self.options.state, encoding="utf-8") as file:
            copy = json.load(file)
        for resource in copy["resources"]:
            self.held.put(resource_pb2.Resource.FromString(base64.b64decode(resource)))
        self.held.installation = copy["installation"]
        self.held.cursor = subscription_service_pb2.Cursor.FromString(base64.b64decode(copy["cursor"]))
    # [/save]

    def is_current(self, how):
        self.how = how
        self.current.set()

    def status(self):
        with self.lock:
            cursor = self.held.cursor
            return {
                "connected": self.how,
                "revision": cursor.revision if cursor else 0,
                "resources": len(self.held.resources),
                "saved": self.saved,
                "other_installation": self.other_installation,
            }


# The node's own search, which learning complements: the verb that shares the most words with the query.
VERBS = {
    "create_csa": "set up create credit support annex csa",
    "create_isda": "create isda master agreement",
    "book_trade": "book enter trade deal",
    "open_nav_report": "open show nav report fund value",
}


def own_search(phrase, prohibited):
    words = set(normalise(phrase).split())
    scores = {verb: len(words & set(text.split())) for verb, text in VERBS.items() if verb not in prohibited}
    best = max(scores, key=scores.get, default=None)
    return best if best and scores[best] else None


# [search]
def search(node, phrase):
    """Learned answers come first; a prohibited choice is never returned."""
    verb, revision, prohibited = node.resolve(phrase)
    if verb:
        return {"verb": verb, "learned": True, "revision": revision}
    return {"verb": own_search(phrase, prohibited), "learned": False, "prohibited": sorted(prohibited)}
# [/search]


def main():
    parser = argparse.ArgumentParser(description="A search node that uses learned answers")
    parser.add_argument("--feedback", default="127.0.0.1:7401", help="where feedback-svc is")
    parser.add_argument("--learning", default="127.0.0.1:7402", help="where learning-svc is")
    parser.add_argument("--namespace", default="fund-admin", help="the search application")
    parser.add_argument("--node", default="search-1", help="this node's id")
    parser.add_argument("--state", default="", help="where to keep a copy of what was learned")
    parser.add_argument("--accept-installation", default="", help="id of an installation to accept instead")
    parser.add_argument("--bookmark-seconds", type=int, default=30, help="how often to be told that nothing is missing")
    options = parser.parse_args()

    feedback = feedback_service_pb2_grpc.FeedbackServiceStub(grpc.insecure_channel(options.feedback))
    node = Node(grpc.insecure_channel(options.learning), options)
    threading.Thread(target=node.run, daemon=True).start()
    # A node that is up to date answers best, but one that is not still answers.
    node.current.wait(timeout=10)

    for line in sys.stdin:
        command, _, rest = line.strip().partition(" ")
        if command == "search":
            answer = search(node, rest)
        elif command == "correct":
            reporter, _, correction = rest.partition(" ")
            phrase, _, right = correction.partition(" = ")
            chosen = search(node, phrase)["verb"] or ""
            outcome = submit(feedback, options.namespace, reporter, phrase, chosen, right).outcome
            state = correction_pb2.OutcomeState.Name(outcome.state).removeprefix("OUTCOME_STATE_")
            answer = {"state": state, "confirmations_needed": outcome.confirmations_needed}
        elif command == "status":
            answer = node.status()
        else:
            answer = {"error": f"unknown command {command}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
