"""An assistant in Python: summarises what it is told, is rated, and gets better by the ratings.

It reads commands from standard input and answers each with one line of JSON:

    summarise TEXT                      a summary, its id, and the version of the prompt that it was made with
    rate ID good|bad REPORTER [FAULT]   a person says how a summary is, and what is wrong with it
    improve                             have a better prompt proposed, from the ratings
    approve CANDIDATE                   a person approves it

See docs/integration/assistant.md.
"""

import argparse
import json
import sys

import emend

TARGET = "SUMMARIZE_DAILY"
FIRST_PROMPT = "Summarise the text.\n"


# [model]
def model(prompt, text):
    """The model: it repeats the text, unless its prompt says somewhere that this is too long. A real one reads better."""
    sentences = [sentence.strip() for sentence in text.split(".") if sentence.strip()]
    return ". ".join(sentences[:1] if "too long" in prompt else sentences) + "."
# [/model]


class Assistant:
    def __init__(self, feedback, learning, namespace):
        self.feedback = emend.Feedback(feedback, namespace=namespace)
        self.outputs = emend.Outputs(learning, namespace=namespace)
        self.review = emend.Review(learning, namespace=namespace)
        # What was made, until it is rated.
        self.made = {}
        # Read your own writes: the newest revision that this assistant caused.
        self.revision = 0

    # [begin]
    def begin(self):
        """Puts the first version of the prompt, if there is none."""
        try:
            self.render()
        except emend.NotFound:
            key = {"namespace": self.review.namespace, "kind": "RESOURCE_KIND_PROMPT", "key": TARGET}
            value = {"prompt": {"text": FIRST_PROMPT}}
            self.revision = self.review.put_resource(key=key, value=value, reason="the first version").revision
    # [/begin]

    # [summarise]
    def render(self):
        """The prompt with the newest rated examples, as it is sent to the model. A node has it in memory: `render_prompt`."""
        return self.outputs.render_prompt(target=TARGET, min_revision=self.revision)

    def summarise(self, text):
        prompt = self.render()
        output = model(prompt.text, text)
        made = f"summary-{len(self.made) + 1}"
        self.made[made] = (text, output, prompt.version)
        return {"id": made, "summary": output, "prompt_version": prompt.version}
    # [/summarise]

    # [rate]
    def rate(self, made, value, reporter, fault):
        """Records a rating, with what it is about and the version of the prompt that it was made with."""
        text, output, version = self.made[made]
        said = self.feedback.rate_output(
            TARGET,
            value.upper(),
            target_id=made,
            input_text=text,
            output_text=output,
            prompt_version=version,
            issues=[fault] if fault else [],
            reporter=reporter,
            wait=True,
        )
        self.revision = max(self.revision, said.outcome.revision)
        return {"state": said.state.upper()}
    # [/rate]

    # [improve]
    def improve(self):
        """Has a better prompt proposed. With too few bad ratings, says how many are missing."""
        stats = self.outputs.get_output_stats(target=TARGET)
        if not stats.can_generate:
            return {"proposed": False, "why": stats.cannot_reason, "missing": stats.bad_missing}
        generated = self.outputs.generate_improvement(target=TARGET, deadline=60)
        return {
            "proposed": True,
            "candidate": generated.candidate.candidate_id,
            "diff": generated.improvement.diff,
            "reason": generated.improvement.reason,
        }

    def approve(self, candidate):
        """What a person does with `emend outputs prompts approve`: nodes render the new version from here on."""
        approved = self.review.approve_candidate(candidate_id=candidate)
        self.revision = max(self.revision, approved.revision)
        return {"prompt_version": approved.candidate.proposal.version}
    # [/improve]

    def command(self, line):
        name, _, rest = line.partition(" ")
        if name == "summarise":
            return self.summarise(rest)
        if name == "rate":
            made, value, reporter, *fault = rest.split(" ", 3)
            return self.rate(made, value, reporter, " ".join(fault))
        if name == "improve":
            return self.improve()
        if name == "approve":
            return self.approve(rest)
        return {"error": f"unknown command {name}"}


def main():
    parser = argparse.ArgumentParser(description="An assistant whose summaries get better by ratings")
    parser.add_argument("--feedback", default="127.0.0.1:7401", help="where feedback-svc is")
    parser.add_argument("--learning", default="127.0.0.1:7402", help="where learning-svc is")
    parser.add_argument("--namespace", default="assistant", help="the application")
    options = parser.parse_args()

    assistant = Assistant(options.feedback, options.learning, options.namespace)
    assistant.begin()
    for line in sys.stdin:
        print(json.dumps(assistant.command(line.strip())), flush=True)


if __name__ == "__main__":
    main()
