"""An assistant by the official Python SDK, over stdio and over HTTP, in revisions with and without sessions.

It calls the tools as the applications do for which they were made. Every answer must be as its tool's output schema says.

Usage: assistant.py EMEND FEEDBACK_ADDRESS LEARNING_ADDRESS NAMESPACE URL. Exits with 0 if everything was as expected.
"""

import asyncio
import sys

from jsonschema import Draft202012Validator
from mcp import Client
from mcp.client.stdio import StdioServerParameters

# The seed's own calls, word for word, and what each answers.
VERB = {
    "feedback_type": "verb_correction",
    "original_input": "set up custody",
    "system_choice": "cbu.add-product",
    "correct_choice": "custody.configure-account",
    "user_explanation": "User wanted account configuration, not product addition",
}
ENTITY = {
    "feedback_type": "entity_correction",
    "original_input": "Sarah Chen",
    "system_choice": "uuid-singapore-sarah",
    "correct_choice": "uuid-london-sarah",
}
PHRASE = {
    "feedback_type": "phrase_mapping",
    "original_input": "spin up a fund",
    "correct_choice": "cbu.create",
    "user_explanation": "User's preferred terminology",
}
CONTEXT = {
    "session_id": "5f0c6a2e-7c1b-4f4e-9d3a-0a1b2c3d4e5f",
    "cbu_id": "0b9c7d1e-2f3a-4b5c-8d6e-7f8091a2b3c4",
    "domain": "custody",
}
ACTIONS = [
    {
        "action": "domain_block",
        "args": {"domain_pattern": "spam-site.com", "reason": "Low quality content, mostly advertisements"},
    },
    {
        "action": "domain_unblock",
        "args": {"domain_pattern": "legitimate-site.com", "reason": "Previously blocked by mistake"},
    },
    {
        "action": "domain_clear_override",
        "args": {"domain_pattern": "legitimate-site.com", "reason": "Back to what the levels say"},
    },
    {
        "action": "claim_reject",
        "args": {"claim_id": "claim_abc123", "reason": "Claim is too vague to verify"},
    },
    {
        "action": "claim_restore",
        "args": {"claim_id": "claim_abc123", "reason": "It was made more precise"},
    },
    {
        "action": "edge_correct",
        "args": {
            "edge_id": "edge_xyz789",
            "correct_relation": "supports",
            "reason": "The conclusion section clearly supports the hypothesis",
        },
    },
]
FIELDS = {
    "recorded",
    "candidate_id",
    "occurrence_count",
    "was_new",
    "learning_type",
    "risk_level",
    "auto_applied",
    "threshold_applied",
    "message",
    "what_was_learned",
}


class Assistant:
    """A client that knows the schemas of the tools' answers."""

    def __init__(self, client, schemas):
        self.client = client
        self.schemas = schemas

    async def call(self, tool, arguments):
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, (tool, arguments, result.content)
        answer = result.structured_content
        self.schemas[tool].validate(answer)
        return answer


async def converse(server, mode, namespace_is_new):
    """All calls in one conversation."""
    async with Client(server, mode=mode) as client:
        listed = await client.list_tools()
        for tool in listed.tools:
            Draft202012Validator.check_schema(tool.input_schema)
            Draft202012Validator.check_schema(tool.output_schema)
        schemas = {tool.name: Draft202012Validator(tool.output_schema) for tool in listed.tools}
        assistant = Assistant(client, schemas)
        for payload, learning_type, risk in (
            (VERB, "invocation_phrase", "medium"),
            (ENTITY, "entity_alias", "low"),
            (PHRASE, "invocation_phrase", "medium"),
            (VERB | {"context": CONTEXT}, "invocation_phrase", "medium"),
        ):
            answer = await assistant.call("intent_feedback", payload)
            assert FIELDS <= set(answer), FIELDS - set(answer)
            assert answer["recorded"] is True, answer
            assert answer["learning_type"] == learning_type, answer
            assert answer["risk_level"] == risk, answer
            assert answer["what_was_learned"] == {
                "input": payload["original_input"],
                "maps_to": payload["correct_choice"],
                "type": payload["feedback_type"],
            }, answer
            if payload is ENTITY and namespace_is_new:
                assert answer["auto_applied"] is True, answer
        found = await assistant.call("intent_resolve", {"phrase": "Sarah Chen", "resolve_type": "entity"})
        assert found["value"] == "uuid-london-sarah", found
        for payload in ACTIONS:
            answer = await assistant.call("feedback", {"task_id": "task_001"} | payload)
            assert answer["recorded"] is True, answer
        status = await assistant.call("get_status", {"task_id": "task_001"})
        blocked = [domain["domain"] for domain in status["blocked_domains"]]
        assert "spam-site.com" in str(blocked), status
        materials = await assistant.call("get_materials", {"task_id": "task_001"})
        assert [claim["claim_id"] for claim in materials["claims"]] == ["claim_abc123"], materials


async def two_at_once(url):
    """Clients of different revisions at the same time: what one teaches, the other is told."""
    async with Client(url, mode="legacy") as older, Client(url, mode="2026-07-28") as newer:
        assert older.protocol_version != newer.protocol_version
        said = {"feedback_type": "entity_correction", "original_input": "Wei Lin", "correct_choice": "wei-lin-2"}
        result = await older.call_tool("intent_feedback", said)
        assert not result.is_error, result.content
        result = await newer.call_tool("intent_resolve", {"phrase": "Wei Lin", "resolve_type": "entity"})
        assert result.structured_content["value"] == "wei-lin-2", result


async def main(emend, feedback, learning, namespace, url):
    arguments = ["mcp", "--feedback-addr", feedback, "--learning-addr", learning, "--namespace", namespace]
    stdio = StdioServerParameters(command=emend, args=arguments)
    is_new = True
    for server in (stdio, url):
        for mode in ("legacy", "2026-07-28"):
            await converse(server, mode, is_new)
            is_new = False
    await two_at_once(url)
    print("all as it should be")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
