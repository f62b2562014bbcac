"""A research backend in Python: answers questions from its own small corpus, with the evidence, as corrected.

It reads commands from standard input and answers each with one line of JSON:

    ask QUESTION                        what the corpus says, how sure that is, and who says so
    correct EDGE LABEL                  a person says what a fragment says of a claim: supports, refutes or neutral
    reject CLAIM REASON                 a person says that a claim must not be used
    block DOMAIN REASON                 a person says that a source must not be shown

See docs/integration/research.md. It needs grpcio and, beside it, the code that grpcio-tools generates from the protos.
"""

import argparse
import json
import sys
import uuid

import grpc
from emend.common.v1 import correction_pb2, resource_pb2
from emend.feedback.v1 import feedback_service_pb2, feedback_service_pb2_grpc
from emend.learning.v1 import evidence_service_pb2 as evidence
from emend.learning.v1 import evidence_service_pb2_grpc

TASK = "coffee"

# The corpus: pages with their host, the work's DOI where there is one, and sentences.
CORPUS = {
    "page:post-1": ("blog.example", "", ["Coffee dehydrates the body, so drink water with it."]),
    "page:post-2": ("blog.example", "", ["Every doctor knows that coffee dehydrates the body."]),
    "page:trial": ("journal.example", "10.1000/coffee", ["In no trial was it seen that coffee dehydrates the body."]),
    "page:recipe": ("kitchen.example", "", ["Grind coffee just before brewing for the best taste."]),
}
CLAIMS = {
    "claim:dehydrates": "coffee dehydrates the body",
    "claim:grind": "coffee should be ground just before brewing",
}


def words(text):
    return set(text.lower().replace(",", " ").replace(".", " ").replace("?", " ").split())


# [label]
def label(premise, hypothesis):
    """The model: a share of common words. It knows nothing of “no” and “not”, which people will notice."""
    share = len(words(premise) & words(hypothesis)) / len(words(hypothesis))
    return (resource_pb2.EDGE_RELATION_SUPPORTS if share > 0.5 else resource_pb2.EDGE_RELATION_NEUTRAL), share
# [/label]


# [upsert]
def upsert(graph, namespace):
    """Stores what was read. Safe to repeat: what is known is replaced, and what people corrected stays corrected."""
    request = evidence.UpsertEvidenceRequest(namespace=namespace)
    for claim, text in CLAIMS.items():
        request.claims.add(claim_id=claim, task_id=TASK, text=text, adoption=evidence.CLAIM_ADOPTION_ADOPTED)
    for page, (domain, doi, sentences) in CORPUS.items():
        request.pages.add(page_id=page, domain=domain, doi=doi)
        for number, sentence in enumerate(sentences):
            fragment = f"fragment:{page.removeprefix('page:')}-{number}"
            request.fragments.add(fragment_id=fragment, page_id=page, text=sentence)
            for claim, text in CLAIMS.items():
                relation, confidence = label(sentence, text)
                request.edges.add(
                    edge_id=f"edge:{fragment.removeprefix('fragment:')}-{claim.removeprefix('claim:')}",
                    task_id=TASK,
                    source=evidence.NodeRef(fragment_id=fragment),
                    target=evidence.NodeRef(claim_id=claim),
                    relation=relation,
                    nli_label=relation,
                    nli_confidence=confidence,
                )
    return graph.UpsertEvidence(request, timeout=10)
# [/upsert]


# [ask]
def ask(graph, namespace, question):
    """The claim that shares the most words with the question, as corrected, unless a person rejected it."""
    best = max(CLAIMS, key=lambda claim: len(words(CLAIMS[claim]) & words(question)))
    if not words(CLAIMS[best]) & words(question):
        return {"answer": "Nothing was read about that."}
    claim = graph.GetClaim(evidence.GetClaimRequest(namespace=namespace, claim_id=best), timeout=10).claim
    if claim.status == evidence.CLAIM_STATUS_REJECTED:
        return {"answer": "Nothing that holds was read about that."}
    says = {
        evidence.VERDICT_SUPPORTED: "Yes",
        evidence.VERDICT_REFUTED: "No",
        evidence.VERDICT_INCONCLUSIVE: "That is disputed, or little is known",
    }
    sources = quotes(graph, namespace, best)
    return {
        "answer": f"{says[claim.confidence.verdict]}: {claim.text}.",
        "confidence": claim.confidence.confidence,
        "uncertainty": claim.confidence.uncertainty,
        "independent_sources": claim.confidence.independent_sources,
        "for": sources[resource_pb2.EDGE_RELATION_SUPPORTS],
        "against": sources[resource_pb2.EDGE_RELATION_REFUTES],
    }
# [/ask]


# [quotes]
def quotes(graph, namespace, claim):
    """The edges that speak for and against a claim, those of the most trusted sources first, without blocked ones."""
    found = {resource_pb2.EDGE_RELATION_SUPPORTS: [], resource_pb2.EDGE_RELATION_REFUTES: []}
    request = evidence.ListEdgesRequest(namespace=namespace, claim_id=claim, relations=list(found), page_size=1000)
    edges = []
    while True:
        page = graph.ListEdges(request, timeout=10)
        edges.extend(page.edges)
        request.page_token = page.next_page_token
        if not request.page_token:
            break
    # The levels' numbers rise as trust falls, from PRIMARY to BLOCKED.
    for edge in sorted(edges, key=lambda edge: edge.source_level):
        if edge.source_level != resource_pb2.TRUST_LEVEL_BLOCKED:
            found[edge.relation].append({"edge": edge.edge_id, "domain": edge.source_domain})
    return found
# [/quotes]


# [correct]
def correct(feedback, namespace, **correction):
    """Records what a person says; from an entitled caller it is in force before the answer."""
    reason = correction.pop("reason", "")
    request = feedback_service_pb2.SubmitFeedbackRequest(
        request_id=str(uuid.uuid4()),
        namespace=namespace,
        reporter=correction_pb2.Reporter(id="ana", client="research-backend-python/1.0"),
        reason=reason,
        wait=feedback_service_pb2.WAIT_EVALUATED,
        correction=correction_pb2.Correction(**correction),
    )
    outcome = feedback.SubmitFeedback(request, timeout=10).feedback.outcome
    return {"state": correction_pb2.OutcomeState.Name(outcome.state).removeprefix("OUTCOME_STATE_")}


def command(graph, feedback, namespace, name, rest):
    if name == "ask":
        return ask(graph, namespace, rest)
    target, _, rest = rest.partition(" ")
    if name == "correct":
        relation = resource_pb2.EdgeRelation.Value(f"EDGE_RELATION_{rest.upper()}")
        edge = correction_pb2.EdgeCorrect(edge_id=target, correct_relation=relation, task_id=TASK)
        return correct(feedback, namespace, edge_correct=edge)
    if name == "reject":
        claim = correction_pb2.ClaimReject(claim_id=target, task_id=TASK)
        return correct(feedback, namespace, claim_reject=claim, reason=rest)
    if name == "block":
        domain = correction_pb2.DomainBlock(pattern=target, task_id=TASK)
        return correct(feedback, namespace, domain_block=domain, reason=rest)
    return {"error": f"unknown command {name}"}
# [/correct]


def main():
    parser = argparse.ArgumentParser(description="A research backend whose answers change as people correct them")
    parser.add_argument("--feedback", default="127.0.0.1:7401", help="where feedback-svc is")
    parser.add_argument("--learning", default="127.0.0.1:7402", help="where learning-svc is")
    parser.add_argument("--namespace", default="research", help="the search application")
    options = parser.parse_args()

    feedback = feedback_service_pb2_grpc.FeedbackServiceStub(grpc.insecure_channel(options.feedback))
    graph = evidence_service_pb2_grpc.EvidenceServiceStub(grpc.insecure_channel(options.learning))
    upsert(graph, options.namespace)
    for line in sys.stdin:
        name, _, rest = line.strip().partition(" ")
        print(json.dumps(command(graph, feedback, options.namespace, name, rest)), flush=True)


if __name__ == "__main__":
    main()
