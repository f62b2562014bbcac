"""A card search that learns: see docs/integration/python.md. Beside `emend up`: `uvicorn card_search:app`."""

import os
import uuid
from contextlib import asynccontextmanager

import emend
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from pydantic import BaseModel

NAMESPACE = "cards"
CARDS = {
    "BP01-001": "Deal 3 damage to a leader",
    "BP01-002": "Evolve: draw a card from your deck",
    "BP01-003": "Banish an enemy follower",
}


@asynccontextmanager
async def lifespan(app):
    address = os.environ.get("EMEND_FEEDBACK", "127.0.0.1:7401")
    app.state.feedback = emend.Feedback(address, namespace=NAMESPACE)
    node = emend.Node(os.environ.get("EMEND_LEARNING", "127.0.0.1:7402"), id=f"cards-{os.getpid()}", transient=True)
    async with node, emend.QueryRecorder(address, namespace=NAMESPACE) as recorder:
        app.state.node, app.state.recorder = node, recorder
        yield


app = FastAPI(lifespan=lifespan)


def found(text: str) -> list[str]:
    """The cards that have each word, or for a term that was taught one of its alternatives."""
    wanted, place = [], 0
    for group in app.state.node.expand(NAMESPACE, text).groups:
        wanted += [[word] for word in text[place : group.start].split()] + [group.alternatives]
        place = group.end
    wanted += [[word] for word in text[place:].split()]
    has = {card: card_text.casefold() for card, card_text in CARDS.items()}
    return [card for card in has if all(any(term.casefold() in has[card] for term in terms) for terms in wanted)]


# [search]
@app.get("/search")
async def search(q: str) -> dict[str, object]:
    cards, query_id = found(q), str(uuid.uuid4())
    app.state.recorder.query(query_id=query_id, query_text=q, hit_count=len(cards))
    return {"query_id": query_id, "cards": {card: CARDS[card] for card in cards}}
# [/search]


class Rating(BaseModel):
    query_id: str
    value: int
    player: str
    reason: str = ""


@app.post("/ratings")
async def rate(rating: Rating) -> dict[str, str]:
    about = {"reporter": rating.player, "reason": rating.reason}
    return {"feedback_id": (await app.state.feedback.aio.rate(rating.query_id, rating.value, **about)).feedback_id}


class Term(BaseModel):
    term: str
    equivalent: str
    player: str


@app.post("/terms")
async def teach(term: Term) -> dict[str, str]:
    said = await app.state.feedback.aio.synonyms(term.term, [term.equivalent], reporter=term.player, wait=True)
    return {"state": said.state, "message": said.message}


@app.exception_handler(emend.InvalidArgument)
async def refused(_: object, error: emend.InvalidArgument) -> JSONResponse:
    return JSONResponse({"violations": [violation._asdict() for violation in error.violations]}, 422)
