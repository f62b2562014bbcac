"""Forks, and how programs end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import emend

from .services import Pair, eventually


def program(text: str, *arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Runs a program of its own, which must end by itself."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text), *arguments], capture_output=True, text=True, timeout=timeout
    )


def test_a_fork_is_noticed_and_calls_work_on(pair: Pair) -> None:
    ended = program(
        """
        import os, sys
        import emend
        node = emend.Node(sys.argv[2], id="before")
        node.wait_ready(10)
        node.on_change(print)
        feedback = emend.Feedback(sys.argv[1], namespace="forks")
        recorder = emend.QueryRecorder(sys.argv[1], namespace="forks")
        feedback.verb("parent", correct="go")
        child = os.fork()
        if child == 0:
            try:
                node.resolve("forks", "go")
                os._exit(1)
            except emend.FailedPrecondition as refused:
                assert refused.reason == "FORKED" and "post_fork" in str(refused), refused
            feedback.verb("child", correct="go")
            recorder.query(query_id="child", query_text="t", hit_count=0)
            recorder.flush()
            assert recorder.counts().sent == 1
            with emend.Node(sys.argv[2], id="after") as own:
                own.wait_ready(10)
                assert own.resolve("forks", "go").choice is None
            # Through the interpreter's own end, which closes what is open.
            sys.exit(0)
        _, status = os.waitpid(child, 0)
        assert status == 0, status
        assert node.resolve("forks", "go").choice is None and node.status().connected
        print("ended")
        """,
        pair.feedback,
        pair.learning,
    )
    assert ended.returncode == 0 and ended.stdout.endswith("ended\n"), ended


def test_nothing_hangs_when_a_program_ends(pair: Pair) -> None:
    ended = program(
        """
        import asyncio, sys, threading
        import emend
        node = emend.Node(sys.argv[2], id="ends")
        node.on_change(lambda change: None)
        recorder = emend.QueryRecorder(sys.argv[1], namespace="ends")
        recorder.query(query_id="last", query_text="t", hit_count=0)
        away = emend.Node("127.0.0.1:1", id="away")
        silent = emend.Feedback("127.0.0.1:1", namespace="ends")
        threading.Thread(target=lambda: silent.list_feedback().pages().__next__(), daemon=True).start()
        async def leave():
            asyncio.ensure_future(silent.aio.verb("a", correct="b"))
            await asyncio.sleep(0)
        asyncio.run(leave())
        """,
        pair.feedback,
        pair.learning,
        timeout=20,
    )
    assert ended.returncode == 0, ended
    # What was recorded last was sent.
    recorded = emend.Feedback(pair.feedback, namespace="ends").list_queries()
    eventually("it is stored", lambda: [query.query_id for query in recorded] == ["last"])


def test_an_interrupt_ends_a_call_that_waits() -> None:
    # Whoever starts tests in the background may have told their processes to ignore interrupts.
    text = (
        "import emend, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "node = emend.Node('127.0.0.1:1', id='x'); print('waits', flush=True); node.wait_ready(100)"
    )
    waiting = subprocess.Popen(
        [sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == "waits\n"
    waiting.send_signal(signal.SIGINT)
    _, said = waiting.communicate(timeout=20)
    assert "KeyboardInterrupt" in said


def test_a_free_threaded_interpreter_is_refused_in_words() -> None:
    ended = program("import sys; sys.abiflags = 't'; import emend")
    assert ended.returncode == 1 and "ImportError: emend does not run on free-threaded" in ended.stderr, ended


def test_what_goes_wrong_is_in_the_log_of_python() -> None:
    ended = program(
        """
        import logging, sys
        logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(name)s %(message)s", level=logging.INFO)
        import emend
        node = emend.Node("127.0.0.1:1", id="x")
        try:
            node.wait_ready(1)
        except emend.DeadlineExceeded as missed:
            assert "refused" in str(missed)
        node.close()
        """
    )
    assert ended.returncode == 0, ended
    assert "WARNING emend.client.subscriber" in ended.stdout and "refused" in ended.stdout, ended


def teach(pair: Pair, namespace: str, verb: str) -> None:
    """What "go" means from now on."""
    key = {"namespace": namespace, "kind": "RESOURCE_KIND_INVOCATION_PHRASE", "key": "go"}
    with emend.Review(pair.learning) as review:
        review.put_resource(key=key, value={"invocation_phrase": {"verb": verb}})


APP = """
import os
import emend
learning, namespace = os.environ["LEARNING"], os.environ["NAMESPACE"]
node = None

def start():
    global node
    node = emend.Node(learning, id=f"worker-{os.getpid()}")
    node.wait_ready(10)

def answer(environ, respond):
    hit = node.resolve(namespace, "go")
    respond("200 OK", [("content-type", "text/plain")])
    return [f"{os.getpid()} {hit.choice}".encode()]
"""


def test_two_workers_of_gunicorn_with_preload_answer(pair: Pair, namespace: str, tmp_path: Path) -> None:
    import urllib.request

    teach(pair, namespace, "walk")
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "settings.py").write_text("import app\ndef post_fork(server, worker):\n    app.start()\n")
    socket_path = tmp_path / "port"
    environment = {**os.environ, "LEARNING": pair.learning, "NAMESPACE": namespace}
    command = [sys.executable, "-m", "gunicorn", "app:answer", "--preload", "--workers", "2"]
    command += ["--bind", "127.0.0.1:0", "--config", "settings.py", "--access-logfile", "-"]
    log = socket_path.with_suffix(".log")
    with log.open("w") as output:
        server = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=output, stderr=output)
        try:
            address = eventually("it listens", lambda: _address(log))
            choices: dict[str, str] = {}

            def ask() -> set[str]:
                with urllib.request.urlopen(address, timeout=10) as answer:
                    worker, choice = answer.read().decode().split()
                choices[worker] = choice
                return set(choices.values())

            eventually("both workers answer", lambda: ask() and len(choices) == 2)
            assert set(choices.values()) == {"walk"}, "it was learned before they began"
            teach(pair, namespace, "sprint")
            eventually("both workers answer what is learned while they run", lambda: ask() == {"sprint"})
        finally:
            server.terminate()
            assert server.wait(timeout=20) == 0, log.read_text()


def _address(log: Path) -> str | None:
    for word in log.read_text().split():
        if word.startswith("http://127.0.0.1:") and not word.endswith(":0"):
            return word
    return None


CELERY = """
import os
import celery
from celery.signals import worker_process_init
import emend
app = celery.Celery("jobs", broker="filesystem://", backend="file://" + os.environ["RESULTS"])
app.conf.broker_transport_options = {
    "data_folder_in": os.environ["QUEUE"], "data_folder_out": os.environ["QUEUE"], "processed_folder": os.environ["QUEUE"],
}
namespace = os.environ["NAMESPACE"]
feedback = emend.Feedback(os.environ["FEEDBACK"], namespace=namespace)
# Made before the fork: what works on, and what does not.
feedback.get_settings()
node = None

@worker_process_init.connect
def start(**_):
    global node
    node = emend.Node(os.environ["LEARNING"], id=f"worker-{os.getpid()}")
    node.wait_ready(10)

@app.task
def look_up(number):
    feedback.verb(f"celery {number}", correct="go")
    return os.getpid(), node.resolve(namespace, "go").choice
"""


ASK = """
import json, jobs
waiting = [jobs.look_up.delay(number) for number in range(4)]
print(json.dumps([answer.get(timeout=50) for answer in waiting]))
"""


def test_a_worker_of_celery_that_forks_looks_up(pair: Pair, namespace: str, tmp_path: Path) -> None:
    teach(pair, namespace, "walk")
    (tmp_path / "jobs.py").write_text(CELERY)
    for name in ("queue", "results"):
        (tmp_path / name).mkdir()
    environment = {
        **os.environ,
        "LEARNING": pair.learning,
        "FEEDBACK": pair.feedback,
        "NAMESPACE": namespace,
        "QUEUE": str(tmp_path / "queue"),
        "RESULTS": str(tmp_path / "results"),
    }
    command = [sys.executable, "-m", "celery", "-A", "jobs", "worker", "--pool", "prefork", "--concurrency", "2"]
    log = tmp_path / "log"
    with log.open("w") as output:
        worker = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=output, stderr=output)
        try:
            asked = subprocess.run(
                [sys.executable, "-c", ASK],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=60,
            )
            assert asked.returncode == 0, (asked, log.read_text())
            answers = json.loads(asked.stdout)
            assert [choice for _, choice in answers] == ["walk"] * len(answers), (answers, log.read_text())
            assert worker.pid not in {process for process, _ in answers}
        finally:
            worker.terminate()
            assert worker.wait(timeout=30) == 0, log.read_text()
