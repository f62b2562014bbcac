"""A client that knows Emend by reflection alone: no generated code, no protos.

Usage: client.py FEEDBACK_ADDRESS LEARNING_ADDRESS. Exits with 0 if everything was as expected.
"""

import sys

import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from grpc_status import rpc_status

NAMESPACE = "python"
TIMEOUT = 20


class Server:
    """A server at one address, known by its own description."""

    def __init__(self, address):
        self.channel = grpc.insecure_channel(address)
        grpc.channel_ready_future(self.channel).result(timeout=TIMEOUT)
        database = ProtoReflectionDescriptorDatabase(self.channel)
        self.services = set(database.get_services())
        self.pool = DescriptorPool(database)

    def call(self, service, method, request):
        """One answer, or an iterator over the answers of a stream."""
        descriptor = self.pool.FindServiceByName(service).FindMethodByName(method)
        kind = self.channel.unary_stream if descriptor.server_streaming else self.channel.unary_unary
        stub = kind(
            f"/{service}/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=GetMessageClass(descriptor.output_type).FromString,
        )
        message = ParseDict(request, GetMessageClass(descriptor.input_type)())
        return stub(message, timeout=TIMEOUT)


def main(feedback_address, learning_address):
    feedback, learning = Server(feedback_address), Server(learning_address)
    assert "emend.feedback.v1.FeedbackService" in feedback.services, feedback.services
    assert "emend.learning.v1.SubscriptionService" in learning.services, learning.services
    assert "grpc.health.v1.Health" in learning.services, learning.services

    stream = learning.call(
        "emend.learning.v1.SubscriptionService",
        "Subscribe",
        {"node": {"id": "python-1"}, "namespaces": [NAMESPACE], "bookmarkInterval": "1s"},
    )
    assert next(stream).WhichOneof("message") == "snapshot_begin"
    assert next(stream).WhichOneof("message") == "snapshot_end"

    submitted = feedback.call(
        "emend.feedback.v1.FeedbackService",
        "SubmitFeedback",
        {
            "namespace": NAMESPACE,
            "reporter": {"id": "jane"},
            "wait": "WAIT_EVALUATED",
            "correction": {
                "verb": {
                    "originalInput": "Set up a CSA",
                    "systemChoice": "create_isda",
                    "correctChoice": "create_csa",
                }
            },
        },
    )
    outcome = MessageToDict(submitted.feedback.outcome)
    assert outcome["state"] == "OUTCOME_STATE_PENDING", outcome
    assert outcome["confirmationsNeeded"] == 2, outcome

    listed = learning.call("emend.learning.v1.CandidateService", "ListCandidates", {"namespace": NAMESPACE})
    candidates = [MessageToDict(candidate) for candidate in listed.candidates]
    assert len(candidates) == 1, candidates
    approved = learning.call(
        "emend.learning.v1.CandidateService",
        "ApproveCandidate",
        {
            "namespace": NAMESPACE,
            "candidateId": candidates[0]["candidateId"],
            "etag": candidates[0]["etag"],
            "onBehalfOf": "a reviewer",
        },
    )
    assert MessageToDict(approved.candidate)["status"] == "CANDIDATE_STATUS_APPLIED", approved

    for answer in stream:
        if answer.WhichOneof("message") == "update":
            break
    change = answer.update.changes[0]
    assert change.put.key.key == "set up a csa", change
    assert change.put.value.invocation_phrase.verb == "create_csa", change
    assert answer.update.last and answer.update.cursor.revision == approved.revision
    stream.cancel()

    try:
        feedback.call("emend.feedback.v1.FeedbackService", "SubmitFeedback", {"namespace": "Not OK"})
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
        bad, info = error_details_pb2.BadRequest(), error_details_pb2.ErrorInfo()
        unpacked = [
            (detail.Unpack(bad), detail.Unpack(info)) for detail in rpc_status.from_call(error).details
        ]
        assert any(one for one, _ in unpacked) and any(other for _, other in unpacked), unpacked
        fields = sorted(violation.field for violation in bad.field_violations)
        assert fields == ["correction", "namespace"], fields
        assert info.reason, info
    else:
        raise AssertionError("bad input was taken")


if __name__ == "__main__":
    main(*sys.argv[1:])
    print("python: all as it should be")
