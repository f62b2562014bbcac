"""What the package costs beside a dict: import, loading, memory, look-ups. `cargo xtask bench clients` runs it, and prints what it
says beside what the other clients say.

    python clients/python/measure.py LEARNING NAMESPACE ROWS

LEARNING is the learning service's address, ROWS what was learned in the namespace: `phrase,verb` and a line for each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

# The same in every language: see clients/binding/examples/measure.rs.
SAMPLE = 1 << 16
STRIDE = 245_489
ROUNDS = 9


def resident() -> float:
    """The memory of this process in MB."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def nanoseconds(look_up: Callable[[str], object], phrases: Sequence[str]) -> float:
    """The median of some rounds, for one look-up."""
    rounds = []
    for _ in range(ROUNDS):
        begins = time.perf_counter_ns()
        for phrase in phrases:
            look_up(phrase)
        rounds.append((time.perf_counter_ns() - begins) / len(phrases))
    return sorted(rounds)[ROUNDS // 2]


def importing() -> float:
    """The milliseconds that a new interpreter takes to import the package: the best of five."""
    program = "import time; begins = time.perf_counter(); import emend; print(time.perf_counter() - begins)"
    return 1e3 * min(float(subprocess.check_output([sys.executable, "-c", program])) for _ in range(5))


def main() -> None:
    learning, namespace, rows = sys.argv[1:]
    figures = {"import_ms": importing()}

    import emend

    begins = time.perf_counter()
    with emend.Node(learning, id="measured-in-python", namespaces=[namespace]) as node:
        node.wait_ready(300)
        figures["load_s"] = time.perf_counter() - begins
        figures["memory_mb"] = resident()
        with open(rows, encoding="utf-8") as file:
            next(file)
            learned = dict(line.rstrip("\n").split(",") for line in file)
        phrases = list(learned)
        known = [phrases[place * STRIDE % len(phrases)] for place in range(SAMPLE)]
        unknown = [f"{phrase} nobody knows" for phrase in known]
        resolve = node.resolve
        assert all(resolve(namespace, phrase).choice == learned[phrase] for phrase in known)
        assert not any(resolve(namespace, phrase).choice for phrase in unknown)
        figures["known_ns"] = nanoseconds(lambda phrase: resolve(namespace, phrase).choice, known)
        figures["unknown_ns"] = nanoseconds(lambda phrase: resolve(namespace, phrase).choice, unknown)
        figures["map_ns"] = nanoseconds(lambda phrase: learned[phrase], known)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
