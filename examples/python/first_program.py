"""First steps with Emend: see docs/integration/python.md."""

import asyncio
import sys

import emend

feedback_address, learning_address = sys.argv[1:]
node = emend.Node(learning_address, id="search-1", cache_dir="learned")  # connects in the background
node.wait_ready(5)

# For every query, ask what was learned before your own search decides.
hit = node.resolve("fund-admin", "set up a CSA", candidates=[("create_csa", 0.71), ("create_isda", 0.69)])
print(hit.choice, hit.score, hit.prohibited, hit.feedback_hint)  # None 0.0 [] True: ask the user

# Three people say what is right.
feedback = emend.Feedback(feedback_address, namespace="fund-admin")
for person in ("jane", "ana", "mia"):
    said = feedback.verb("set up a CSA", correct="create_isda", instead_of="create_csa", reporter=person, wait=True)
    print(said.message)
node.wait_for_revision(said.applied_revision)
print(node.resolve("fund-admin", "SET UP  a csa").choice)  # create_isda

# What else a node answers, from memory.
print(node.expand("cards", "相手の顔にダメージ", mode="keyword").groups)
print(node.tuning("cards", "HYBRID").retry_plan())
print(node.trust("research", "arxiv.org"), node.is_blocked("research", "spam.example"))
print(node.rank("research", [("a paper", "arxiv.org", 0.7), ("a post", "blog.example", 0.9)]))
print(node.render_prompt("notes", "SUMMARIZE_DAILY", variables={"day": "Monday"}, user="ana"))

# What was searched, and how its answer was rated.
with emend.QueryRecorder(feedback_address, namespace="cards") as recorder:
    recorder.query(query_id="q-1", query_text="damage to the face", hit_count=0)
rated = asyncio.run(feedback.aio.rate("q-1", -1, namespace="cards", reporter="ana", reason="nothing found"))
print(rated.feedback_id)
node.close()
