"""What is written in Rust."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, final

_Done = Callable[[Any, BaseException | None], object]

@final
class Hit:
    """What a node answers for a phrase."""

    @property
    def choice(self) -> str | None:
        """What was learned for the phrase, never a prohibited choice; ``None``: nothing was."""
    @property
    def score(self) -> float:
        """The score of the learned choice, 1.0; 0.0 without one."""
    @property
    def scope(self) -> Literal["user", "global"] | None:
        """Whether it is the user's own or everybody's; ``None`` without one."""
    @property
    def prohibited(self) -> list[str]:
        """The choices to leave out, sorted."""
    @property
    def match_prohibited(self) -> bool:
        """Whether something was learned that is prohibited."""
    @property
    def feedback_hint(self) -> bool:
        """Whether to ask the user: nothing was learned, and of the candidates that are not prohibited there is more than one
        and the best scores below 0.9."""
    @property
    def normalized_phrase(self) -> str:
        """The phrase as it was looked up, normalised."""
    @property
    def revision(self) -> int:
        """The revision of the state that answered."""
    @property
    def learned_revision(self) -> int | None:
        """The revision that learned the choice; ``None`` without one."""

    @property
    def near(self) -> Near | None:
        """What was learned for similar phrases; ``None``: nothing that is similar enough, or nobody asked for it, or something was
        learned for the phrase itself."""
    @property
    def near_status(self) -> Literal["not_asked", "ready", "without_vectors", "fitting", "off", "too_many"]:
        """Whether near answers are given. ``"fitting"``: the first model is being made, which takes seconds."""

@final
class Near:
    """What a phrase that nobody corrected most likely means."""

    @property
    def choice(self) -> str:
        """The choice, never a prohibited one."""
    @property
    def confidence(self) -> float:
        """How likely it is right, 0.0 to 1.0."""
    @property
    def because(self) -> list[NearPhrase]:
        """The nearest phrases that were learned, the nearest first."""
    @property
    def model(self) -> str:
        """The model that answered: equal models give equal answers."""

@final
class NearPhrase:
    """A phrase that was learned."""

    @property
    def phrase(self) -> str:
        """The phrase, in normal form."""
    @property
    def choice(self) -> str:
        """What it means."""
    @property
    def similarity(self) -> float:
        """How similar it is, 0.0 to 1.0."""

@final
class Task:
    def cancel(self) -> None: ...

@final
class Changes:
    def next(self) -> str | None: ...

@final
class Node:
    def __new__(cls, settings: str) -> Node: ...
    def resolve(
        self,
        namespace: str,
        phrase: str,
        candidates: Sequence[tuple[str, float]] | None = None,
        kind: str | None = None,
        user: str | None = None,
        near: bool = False,
    ) -> Hit: ...
    def is_blocked(self, namespace: str, host: str) -> bool: ...
    def synonyms(self, namespace: str, term: str, user: str | None) -> list[str]: ...
    def rank(self, namespace: str, sources: Sequence[tuple[str, float]]) -> list[tuple[int, float]]: ...
    def expand(self, namespace: str, text: str, mode: str, user: str | None) -> str: ...
    def tuning(self, namespace: str, query_type: str) -> str: ...
    def trust(self, namespace: str, host: str) -> str: ...
    def render_prompt(
        self,
        namespace: str,
        target: str,
        label: str | None,
        variables: Mapping[str, str],
        user: str | None,
        language: str | None,
    ) -> str: ...
    def prompt(self, namespace: str, target: str, label: str) -> str: ...
    def examples(self, namespace: str, target: str) -> str: ...
    def profile(self, namespace: str, user: str) -> str: ...
    def claim_state(self, namespace: str, claim_id: str) -> str: ...
    def edge_label(self, namespace: str, edge_id: str) -> str: ...
    def status(self) -> str: ...
    def wait_ready(self, seconds: float) -> None: ...
    def start_wait_ready(self, seconds: float, done: _Done) -> Task: ...
    def wait_near(self, seconds: float) -> None: ...
    def start_wait_near(self, seconds: float, done: _Done) -> Task: ...
    def wait_for_revision(self, revision: int, seconds: float) -> None: ...
    def start_wait_for_revision(self, revision: int, seconds: float, done: _Done) -> Task: ...
    def accept_installation(self, installation: str) -> None: ...
    def changes(self) -> Changes: ...
    def close(self) -> None: ...
    def start_close(self, done: _Done) -> Task: ...

@final
class Answers:
    def next(self) -> str | None: ...
    def start_next(self, done: _Done) -> Task: ...

@final
class Client:
    def __new__(cls, settings: str) -> Client: ...
    def call(self, method: str, request: str, seconds: float | None) -> str: ...
    def start_call(self, method: str, request: str, seconds: float | None, done: _Done) -> Task: ...
    def upload(self, method: str, seconds: float | None) -> Upload: ...
    def stream(self, method: str, request: str, seconds: float | None) -> Answers: ...
    def start_stream(self, method: str, request: str, seconds: float | None, done: _Done) -> Task: ...

@final
class Upload:
    def send(self, request: str) -> bool: ...
    def start_send(self, request: str, done: _Done) -> Task: ...
    def finish(self) -> str: ...
    def start_finish(self, done: _Done) -> Task: ...
    def cancel(self) -> None: ...

@final
class Recorder:
    def __new__(cls, settings: str, namespace: str) -> Recorder: ...
    def query(self, json: str) -> bool: ...
    def interaction(self, json: str) -> bool: ...
    def flush(self) -> None: ...
    def start_flush(self, done: _Done) -> Task: ...
    def counts(self) -> tuple[int, int, int]: ...
    def close(self) -> None: ...
    def start_close(self, done: _Done) -> Task: ...

def next_record(within: float) -> tuple[str, str, str] | None: ...
def shutdown() -> None: ...
def collect_log(level: str) -> None: ...

def normalize(phrase: str) -> str:
    """The normal form of a phrase, by which it is known: phrases that are alike but for case, width, white space and characters
    that nobody sees have the same."""
