"""A client of an edge that is made from its description alone.

Usage: edge.py ADDRESS REVISION DIRECTORY. The description is valid by openapi-spec-validator; openapi-python-client makes a client of it in
DIRECTORY, which asks the edge at ADDRESS. Exits with 0 if everything was as expected.
"""

import json
import os
import pathlib
import subprocess
import sys
import urllib.request

from openapi_spec_validator import OpenAPIV31SpecValidator

NAMESPACE = "fund-admin"


def generate(address, directory):
    """Validates the description and makes the client; returns where it is."""
    with urllib.request.urlopen(f"{address}/openapi.json", timeout=20) as answer:
        description = json.load(answer)
    errors = list(OpenAPIV31SpecValidator(description).iter_errors())
    assert not errors, errors
    file = directory / "openapi.json"
    file.write_text(json.dumps(description))
    made = directory / "client"
    # What formats the code is beside the interpreter.
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
    generator = [sys.executable, "-m", "openapi_python_client", "generate", "--path", str(file), "--output-path", str(made)]
    result = subprocess.run(
        [*generator, "--meta", "none", "--fail-on-warning"], capture_output=True, text=True, timeout=120, check=False, env={**os.environ, "PATH": path}
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return made


def ask(address, revision):
    """Asks as a program would that knows nothing but the generated client."""
    from client import Client, models
    from client.api.default import blocked, get_expand, get_synonyms, rank, resolve, status

    client = Client(base_url=address)

    answer = get_synonyms.sync(NAMESPACE, client=client, term="notebook", min_revision=revision)
    assert isinstance(answer, models.SynonymsOfTermAnswered), answer
    assert answer.synonyms == ["laptop computer"], answer
    assert answer.revision >= revision, answer

    query = get_expand.sync(
        NAMESPACE, client=client, text="cheap notebook", as_=models.Engine.SOLR, fields=["title^2", "body"]
    )
    assert query.expanded and '"laptop computer"' in query.query, query

    one = models.ResolveLookup(phrase="notebook", candidates=[models.Candidate(value="a", score=0.5)])
    answer = resolve.sync(NAMESPACE, client=client, body=one)
    assert isinstance(answer, models.ResolvedAnswered) and answer.choice is None, answer
    answer = resolve.sync(NAMESPACE, client=client, body=[one, models.ResolveLookup(phrase="")])
    assert isinstance(answer, models.ResolvedList), answer
    first, second = answer.answers
    assert first.normalized == "notebook", first
    assert second.error.violations[0].field == "phrase", second

    spam = blocked.sync(NAMESPACE, client=client, body=models.BlockedLookup(host="spam.example"))
    assert spam.blocked, spam
    results = [models.Scored(id=1, host="a.example", score=1.0), models.Scored(id="two", host="spam.example", score=2.0)]
    ranked = rank.sync(NAMESPACE, client=client, body=models.RankLookup(results=results))
    assert [result.id for result in ranked.results] == [1], ranked

    refused = get_synonyms.sync(NAMESPACE, client=client, term="")
    assert isinstance(refused, models.Refusal), refused
    assert refused.error.violations[0].field == "term", refused
    assert status.sync(client=client).connected


def main():
    address, revision, directory = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
    generate(address, directory)
    sys.path.insert(0, str(directory))
    ask(address, revision)
    print("all as it should be")


main()
