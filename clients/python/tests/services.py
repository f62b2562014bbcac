"""A real pair of services, what stands between it and its clients, and certificates."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, TypeVar

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = os.environ.get("EMEND_TEST_PROGRAM", str(ROOT / "target/debug/emend"))


def eventually(what: str, found: Callable[[], T | None], within: float = 30.0) -> T:
    """Asks until the answer is true."""
    ends = time.monotonic() + within
    while not (answer := found()):
        if time.monotonic() > ends:
            raise AssertionError(f"{what}: not within {within} s; the last answer was {answer!r}")
        time.sleep(0.02)
    return answer


class Pair:
    """Both services in one process, on ports that stay the same when it starts again."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self.directory = directory
        self._arguments = arguments
        self._addresses = ("127.0.0.1:0", "127.0.0.1:0")
        self._process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        feedback, learning = self._addresses
        command = [
            PROGRAM,
            "up",
            *("--data-dir", str(self.directory / "data")),
            *("--feedback-addr", feedback, "--learning-addr", learning),
            *self._arguments,
        ]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("EMEND_")}
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        output = self._process.stdout
        assert output is not None
        said = []
        for line in output:
            said.append(line)
            ready = re.search(r"ready feedback=(\S+) learning=(\S+)", line)
            if ready:
                self._addresses = (ready[1], ready[2])
                break
        else:
            raise AssertionError("the services did not start:\n" + "".join(said))
        threading.Thread(target=_drain, args=(output,), daemon=True).start()

    @property
    def feedback(self) -> str:
        return self._addresses[0]

    @property
    def learning(self) -> str:
        return self._addresses[1]

    def kill(self) -> None:
        """Ends it as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def _drain(output: IO[str]) -> None:
    for _ in output:
        pass


class Proxy:
    """Hands on bytes until it falls silent: connections stay open, and nothing arrives."""

    def __init__(self, target: str) -> None:
        host, port = target.rsplit(":", 1)
        self._target = (host, int(port))
        self._talking = threading.Event()
        self._talking.set()
        self.open: set[socket.socket] = set()
        """The connections of clients that are open."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def fall_silent(self) -> None:
        self._talking.clear()

    def talk(self) -> None:
        self._talking.set()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._target)
            except OSError:
                client.close()
                continue
            self.open.add(client)
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                self._talking.wait()
                sink.sendall(data)
        except OSError:
            pass
        finally:
            self.open.discard(source)
            for end in (source, sink):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


def certificates(directory: Path, *names: str) -> None:
    """A CA, and for each name a certificate with its key, for servers and clients alike."""
    openssl = shutil.which("openssl")
    assert openssl, "openssl is missing: it makes the certificates of these tests"

    def run(*arguments: str) -> None:
        subprocess.run([openssl, *arguments], cwd=directory, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    run(
        *("req", "-x509", *key, "-days", "2", "-subj", "/CN=CA", "-keyout", "ca.key", "-out", "ca.pem"),
        *("-addext", "keyUsage=critical,keyCertSign"),
    )
    for name in names:
        run("req", *key, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        extensions = "subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n"
        (directory / f"{name}.ext").write_text(extensions)
        run(
            *("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"),
            *("-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.pem"),
        )
