"""A search backend: answers with what was learned first, then from its own search, and submits corrections.

It reads commands from standard input and answers each with one line of JSON. See docs/integration/python.md.

    search PHRASE                       what the node answers
    correct REPORTER PHRASE = VERB      a user says what is right
    status                              what the node holds
"""

import argparse
import json
import sys

import emend

# What the backend searches by itself: the verb that shares the most words with the phrase.
VERBS = {
    "create_csa": "set up create credit support annex csa",
    "create_isda": "create isda master agreement",
    "book_trade": "book enter trade deal",
    "open_nav_report": "open show nav report fund value",
}


def own_search(phrase):
    """(verb, score from 0.0 to 1.0), best first."""
    words = set(phrase.split())
    scores = {verb: len(words & set(text.split())) / max(len(words), 1) for verb, text in VERBS.items()}
    return sorted(((verb, score) for verb, score in scores.items() if score), key=lambda found: -found[1])


# [search]
def search(node, namespace, phrase):
    """Learned answers come first; a prohibited choice is never returned."""
    candidates = own_search(phrase.casefold())
    hit = node.resolve(namespace, phrase, candidates)
    own = next((verb for verb, _ in candidates if verb not in hit.prohibited), None)
    return {"verb": hit.choice or own, "learned": hit.choice is not None, "prohibited": hit.prohibited}
# [/search]


# [correct]
def correct(feedback, reporter, phrase, chosen, right):
    """Stores what a user says is right, and waits for what becomes of it."""
    said = feedback.verb(
        phrase, correct=right, instead_of=chosen if chosen != right else None, reporter=reporter, wait=True
    )
    return {
        "state": said.state.upper(),
        "message": said.message,
        "confirmations_needed": said.outcome.confirmations_needed,
    }
# [/correct]


parser = argparse.ArgumentParser(description="A search backend that uses what was learned")
parser.add_argument("--feedback", default="127.0.0.1:7401", help="where feedback-svc is")
parser.add_argument("--learning", default="127.0.0.1:7402", help="where learning-svc is")
parser.add_argument("--namespace", default="fund-admin", help="the search application")
parser.add_argument("--node", default="search-1", help="this node's id")
parser.add_argument("--state", help="the directory of its copy of what was learned")
parser.add_argument("--accept-installation", help="id of an installation to accept instead")
parser.add_argument("--bookmark-seconds", type=float, help="how often to be told that nothing is missing")
options = parser.parse_args()

settings = {"accept_installation": options.accept_installation, "bookmark_interval": options.bookmark_seconds}
feedback = emend.Feedback(options.feedback, namespace=options.namespace)
with emend.Node(options.learning, id=options.node, cache_dir=options.state, **settings) as node:
    node.wait_ready(10)
    for line in sys.stdin:
        command, _, rest = line.strip().partition(" ")
        if command == "search":
            answer = search(node, options.namespace, rest)
        elif command == "correct":
            reporter, _, correction = rest.partition(" ")
            phrase, _, right = correction.partition(" = ")
            chosen = search(node, options.namespace, phrase)["verb"]
            answer = correct(feedback, reporter, phrase, chosen, right)
        else:
            answer = node.status().to_dict()
        print(json.dumps(answer), flush=True)
