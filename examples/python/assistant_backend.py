"""An assistant in Python: summarises what it is told, is rated, and gets better by the ratings.

It reads commands from standard input and answers each with one line of JSON:

    summarise TEXT                      a summary, its id, and the version of the prompt that it was made with
    rate ID good|bad REPORTER [FAULT]   a person says how a summary is, and what is wrong with it
    improve                             have a better prompt proposed, from the ratings
    approve CANDIDATE                   a person approves it

See docs/integration/assistant.md. It needs grpcio and, beside it, the code that grpcio-tools generates from the protos.
"""

import argparse
import json
import sys
import uuid

import grpc
from emend.common.v1 import correction_pb2, resource_pb2
from emend.feedback.v1 import feedback_service_pb2, feedback_service_pb2_grpc
from emend.learning.v1 import candidate_service_pb2, candidate_service_pb2_grpc
from emend.learning.v1 import output_service_pb2, output_service_pb2_grpc
from emend.learning.v1 import resource_service_pb2, resource_service_pb2_grpc

TARGET = "SUMMARIZE_DAILY"
FIRST_PROMPT = "Summarise the text.\n"


# [model]
def model(prompt, text):
    """The model: it repeats the text, unless its prompt says somewhere that this is too long. A real one reads better."""
    sentences = [sentence.strip() for sentence in text.split(".") if sentence.strip()]
    return ". ".join(sentences[:1] if "too long" in prompt else sentences) + "."
# [/model]


class Assistant:
    def __init__(self, feedback, learning, namespace):
        feedback, learning = grpc.insecure_channel(feedback), grpc.insecure_channel(learning)
        self.feedback = feedback_service_pb2_grpc.FeedbackServiceStub(feedback)
        self.outputs = output_service_pb2_grpc.OutputServiceStub(learning)
        self.candidates = candidate_service_pb2_grpc.CandidateServiceStub(learning)
        self.resources = resource_service_pb2_grpc.ResourceServiceStub(learning)
        self.namespace = namespace
        # What was made, until it is rated.
        self.made = {}
        # Read your own writes: the newest revision that this assistant caused.
        self.revision = 0

    # [begin]
    def begin(self):
        """Puts the first version of the prompt, if there is none."""
        try:
            self.render()
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.NOT_FOUND:
                raise
            key = resource_pb2.ResourceKey(namespace=self.namespace, kind=resource_pb2.RESOURCE_KIND_PROMPT, key=TARGET)
            value = resource_pb2.ResourceValue(prompt=resource_pb2.PromptValue(text=FIRST_PROMPT))
            put = resource_service_pb2.PutResourceRequest(key=key, value=value, reason="the first version")
            self.revision = self.resources.PutResource(put, timeout=10).revision
    # [/begin]

    # [summarise]
    def render(self):
        """The prompt with the newest rated examples, as it is sent to the model."""
        request = output_service_pb2.RenderPromptRequest(
            namespace=self.namespace, target=TARGET, min_revision=self.revision
        )
        return self.outputs.RenderPrompt(request, timeout=10)

    def summarise(self, text):
        prompt = self.render()
        output = model(prompt.text, text)
        made = f"summary-{len(self.made) + 1}"
        self.made[made] = (text, output, prompt.version)
        return {"id": made, "summary": output, "prompt_version": prompt.version}
    # [/summarise]

    # [rate]
    def rate(self, made, value, reporter, fault):
        """Records a rating, with what it is about and the version of the prompt that it was made with."""
        text, output, version = self.made[made]
        rating = correction_pb2.Rating(
            target=TARGET,
            value=value.upper(),
            target_id=made,
            input_text=text,
            output_text=output,
            prompt_version=str(version),
            issues=[fault] if fault else [],
        )
        request = feedback_service_pb2.SubmitFeedbackRequest(
            request_id=str(uuid.uuid4()),
            namespace=self.namespace,
            reporter=correction_pb2.Reporter(id=reporter, client="assistant-python/1.0"),
            wait=feedback_service_pb2.WAIT_EVALUATED,
            correction=correction_pb2.Correction(rating=rating),
        )
        outcome = self.feedback.SubmitFeedback(request, timeout=10).feedback.outcome
        self.revision = max(self.revision, outcome.revision)
        return {"state": correction_pb2.OutcomeState.Name(outcome.state).removeprefix("OUTCOME_STATE_")}
    # [/rate]

    # [improve]
    def improve(self):
        """Has a better prompt proposed. With too few bad ratings, says how many are missing."""
        stats = output_service_pb2.GetOutputStatsRequest(namespace=self.namespace, target=TARGET)
        stats = self.outputs.GetOutputStats(stats, timeout=10)
        if not stats.can_generate:
            return {"proposed": False, "why": stats.cannot_reason, "missing": stats.bad_missing}
        request = output_service_pb2.GenerateImprovementRequest(namespace=self.namespace, target=TARGET)
        generated = self.outputs.GenerateImprovement(request, timeout=60)
        return {
            "proposed": True,
            "candidate": generated.candidate.candidate_id,
            "diff": generated.improvement.diff,
            "reason": generated.improvement.reason,
        }

    def approve(self, candidate):
        """What a person does with `emend outputs prompts approve`: nodes render the new version from here on."""
        request = candidate_service_pb2.ApproveCandidateRequest(namespace=self.namespace, candidate_id=candidate)
        approved = self.candidates.ApproveCandidate(request, timeout=10)
        self.revision = max(self.revision, approved.revision)
        return {"prompt_version": approved.candidate.proposal.version}
    # [/improve]

    def command(self, line):
        name, _, rest = line.partition(" ")
        if name == "summarise":
            return self.summarise(rest)
        if name == "rate":
            made, value, reporter, *fault = rest.split(" ", 3)
            return self.rate(made, value, reporter, " ".join(fault))
        if name == "improve":
            return self.improve()
        if name == "approve":
            return self.approve(rest)
        return {"error": f"unknown command {name}"}


def main():
    parser = argparse.ArgumentParser(description="An assistant whose summaries get better by ratings")
    parser.add_argument("--feedback", default="127.0.0.1:7401", help="where feedback-svc is")
    parser.add_argument("--learning", default="127.0.0.1:7402", help="where learning-svc is")
    parser.add_argument("--namespace", default="assistant", help="the application")
    options = parser.parse_args()

    assistant = Assistant(options.feedback, options.learning, options.namespace)
    assistant.begin()
    for line in sys.stdin:
        print(json.dumps(assistant.command(line.strip())), flush=True)


if __name__ == "__main__":
    main()
