"""A research backend in Python: answers questions from its own small corpus, with the evidence, as corrected.

It reads commands from standard input and answers each with one line of JSON:

    ask QUESTION                        what the corpus says, how sure that is, and who says so
    correct EDGE LABEL                  a person says what a fragment says of a claim: supports, refutes or neutral
    reject CLAIM REASON                 a person says that a claim must not be used
    block DOMAIN REASON                 a person says that a source must not be shown

See docs/integration/research.md.
"""

import argparse
import json
import sys

import emend

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
    return ("EDGE_RELATION_SUPPORTS" if share > 0.5 else "EDGE_RELATION_NEUTRAL"), share
# [/label]


# [upsert]
def upsert(evidence):
    """Stores what was read. Safe to repeat: what is known is replaced, and what people corrected stays corrected."""
    claims = [
        {"claim_id": claim, "task_id": TASK, "text": text, "adoption": "CLAIM_ADOPTION_ADOPTED"}
        for claim, text in CLAIMS.items()
    ]
    pages, fragments, edges = [], [], []
    for page, (domain, doi, sentences) in CORPUS.items():
        pages.append({"page_id": page, "domain": domain, "doi": doi})
        for number, sentence in enumerate(sentences):
            name = f"{page.removeprefix('page:')}-{number}"
            fragments.append({"fragment_id": f"fragment:{name}", "page_id": page, "text": sentence})
            for claim, text in CLAIMS.items():
                relation, confidence = label(sentence, text)
                edges.append(
                    {
                        "edge_id": f"edge:{name}-{claim.removeprefix('claim:')}",
                        "task_id": TASK,
                        "source": {"fragment_id": f"fragment:{name}"},
                        "target": {"claim_id": claim},
                        "relation": relation,
                        "nli_label": relation,
                        "nli_confidence": confidence,
                    }
                )
    evidence.upsert_evidence(claims=claims, pages=pages, fragments=fragments, edges=edges)
# [/upsert]


# [ask]
def ask(evidence, question):
    """The claim that shares the most words with the question, as corrected, unless a person rejected it."""
    best = max(CLAIMS, key=lambda claim: len(words(CLAIMS[claim]) & words(question)))
    if not words(CLAIMS[best]) & words(question):
        return {"answer": "Nothing was read about that."}
    claim = evidence.get_claim(claim_id=best).claim
    if claim.status == "CLAIM_STATUS_REJECTED":
        return {"answer": "Nothing that holds was read about that."}
    says = {
        "VERDICT_SUPPORTED": "Yes",
        "VERDICT_REFUTED": "No",
        "VERDICT_INCONCLUSIVE": "That is disputed, or little is known",
    }
    sources = quotes(evidence, best)
    return {
        "answer": f"{says[claim.confidence.verdict]}: {claim.text}.",
        "confidence": claim.confidence.confidence,
        "uncertainty": claim.confidence.uncertainty,
        "independent_sources": claim.confidence.independent_sources,
        "for": sources["EDGE_RELATION_SUPPORTS"],
        "against": sources["EDGE_RELATION_REFUTES"],
    }
# [/ask]


# [quotes]
LEVELS = ["PRIMARY", "GOVERNMENT", "ACADEMIC", "TRUSTED", "LOW", "UNVERIFIED"]


def quotes(evidence, claim):
    """The edges that speak for and against a claim, those of the most trusted sources first, without blocked ones."""
    found = {"EDGE_RELATION_SUPPORTS": [], "EDGE_RELATION_REFUTES": []}
    shown = {f"TRUST_LEVEL_{level}": place for place, level in enumerate(LEVELS)}
    edges = [edge for edge in evidence.list_edges(claim_id=claim, relations=list(found)) if edge.source_level in shown]
    for edge in sorted(edges, key=lambda edge: shown[edge.source_level]):
        found[edge.relation].append({"edge": edge.edge_id, "domain": edge.source_domain})
    return found
# [/quotes]


# [correct]
def command(evidence, feedback, name, rest):
    if name == "ask":
        return ask(evidence, rest)
    target, _, rest = rest.partition(" ")
    # From an entitled caller it is in force before the answer.
    about = {"reporter": "ana", "client": "research-backend-python/1.0", "task_id": TASK, "wait": True}
    if name == "correct":
        said = feedback.label_edge(target, relation=rest, **about)
    elif name == "reject":
        said = feedback.reject_claim(target, reason=rest, **about)
    elif name == "block":
        said = feedback.block_domain(target, reason=rest, **about)
    else:
        return {"error": f"unknown command {name}"}
    return {"state": said.state.upper()}
# [/correct]


def main():
    parser = argparse.ArgumentParser(description="A research backend whose answers change as people correct them")
    parser.add_argument("--feedback", default="127.0.0.1:7401", help="where feedback-svc is")
    parser.add_argument("--learning", default="127.0.0.1:7402", help="where learning-svc is")
    parser.add_argument("--namespace", default="research", help="the search application")
    options = parser.parse_args()

    feedback = emend.Feedback(options.feedback, namespace=options.namespace)
    evidence = emend.Evidence(options.learning, namespace=options.namespace)
    upsert(evidence)
    for line in sys.stdin:
        name, _, rest = line.strip().partition(" ")
        print(json.dumps(command(evidence, feedback, name, rest)), flush=True)


if __name__ == "__main__":
    main()
