//! Prompts: versions that operators put, that ratings make better and that a person approves, as nodes render them.

use std::collections::HashMap;

use emend_client::RenderOptions;
use emend_core::Namespace;
use emend_proto::{
    common::v1::{PromptSetting, PromptValue, PromptVariable, ResourceValue, resource_value::Value},
    feedback::v1::{RedactFeedbackRequest, Wait},
    learning::v1::{
        ApproveCandidateRequest, Candidate, CandidateStatus, ExampleFormat, ExportExamplesRequest,
        GenerateImprovementRequest, GetCandidateRequest, GetOutputStatsRequest, ListPromptVersionsRequest,
        PreviewImprovementRequest, RenderPromptRequest, UsePromptVersionRequest,
    },
};
use emend_tests::{
    both_databases,
    harness::{
        NAMESPACE, answered,
        clients::Learning,
        node::Node,
        refused,
        says::{finds_fault, prompt_key, prompt_value, rates},
    },
};
use tonic::Code;

const TARGET: &str = "SUMMARIZE_DAILY";

/// What a node sends to the AI, and the version of the prompt.
fn rendered(node: &Node, day: &str) -> (String, u32) {
    let namespace = Namespace::parse(NAMESPACE).unwrap();
    let options = RenderOptions {
        variables: [("day".to_owned(), day.to_owned())].into(),
        ..RenderOptions::default()
    };
    let rendered = node.view().render(&namespace, TARGET, &options).unwrap().unwrap();
    (rendered.text, rendered.version)
}

fn first_version() -> ResourceValue {
    ResourceValue {
        value: Some(Value::Prompt(PromptValue {
            version: 0,
            text: "Summarise {{day}}.\n".into(),
            variables: vec![PromptVariable {
                name: "day".into(),
                default_value: None,
            }],
            settings: vec![PromptSetting {
                name: "model".into(),
                value: "m-1".into(),
            }],
        })),
        ..ResourceValue::default()
    }
}

fn generate() -> GenerateImprovementRequest {
    GenerateImprovementRequest {
        namespace: NAMESPACE.into(),
        target: TARGET.into(),
        ..GenerateImprovementRequest::default()
    }
}

async fn render(learning: &Learning, min_revision: i64) -> emend_proto::learning::v1::RenderPromptResponse {
    let request = RenderPromptRequest {
        namespace: NAMESPACE.into(),
        target: TARGET.into(),
        variables: HashMap::from([("day".to_owned(), "Monday".to_owned())]),
        min_revision,
        ..RenderPromptRequest::default()
    };
    answered(learning.outputs.clone().render_prompt(request).await)
}

both_databases! {
    async fn three_bad_ratings_make_a_better_prompt_that_both_nodes_render_once_it_is_approved(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let address = system.learning[0].front.address();
        let nodes = [Node::start(&address, "one").await, Node::start(&address, "two").await];
        let put = learning.put(prompt_key(""), first_version()).await;
        for node in &nodes {
            node.until(put.revision).await;
            assert_eq!(rendered(node, "Monday"), ("Summarise Monday.\n".to_owned(), 1), "byte for byte");
        }
        for (output, fault) in [("1", "too long"), ("2", "no numbers")] {
            feedback.learn(finds_fault("ann", output, fault)).await;
        }
        let too_few = refused(learning.outputs.clone().generate_improvement(generate()).await);
        assert_eq!(too_few.code, Code::FailedPrecondition);
        assert!(too_few.message.contains("needs 1 more bad rating"), "{too_few:?}");
        feedback.learn(finds_fault("bob", "3", "No  numbers")).await;
        feedback.learn(rates("bob", "4", "GOOD")).await;

        let stats = GetOutputStatsRequest { namespace: NAMESPACE.into(), target: TARGET.into() };
        let stats = answered(learning.outputs.clone().get_output_stats(stats).await);
        assert!(stats.can_generate, "{stats:?}");
        assert_eq!((stats.bad_since_proposal, stats.good_since_proposal, stats.bad_missing), (3, 1, 0));
        assert_eq!(stats.versions.iter().map(|of| of.bad).sum::<i64>(), 3);

        let improved = answered(learning.outputs.clone().generate_improvement(generate()).await);
        let candidate = improved.candidate.unwrap();
        let shown = GetCandidateRequest {
            namespace: NAMESPACE.into(),
            candidate_id: candidate.candidate_id.clone(),
        };
        let shown = answered(learning.candidates.clone().get_candidate(shown).await).improvement.unwrap();
        assert_eq!(Some(&shown), improved.improvement.as_ref());
        assert_eq!((shown.bad_count, shown.good_count, shown.rating_count), (3, 1, 4));
        assert_eq!(shown.previous_text, "Summarise {{day}}.\n");
        assert!(shown.diff.contains("\n+- no numbers (×2)\n") || shown.diff.contains("\n+- No numbers (×2)\n"), "{}", shown.diff);
        assert!(shown.diff.starts_with("@@ "), "{}", shown.diff);
        let again = refused(learning.outputs.clone().generate_improvement(generate()).await);
        assert!(again.message.contains(&candidate.candidate_id), "{again:?}");

        let preview = PreviewImprovementRequest {
            namespace: NAMESPACE.into(),
            candidate_id: candidate.candidate_id.clone(),
            inputs: 4,
        };
        let preview = answered(learning.outputs.clone().preview_improvement(preview).await);
        assert_eq!((preview.inputs.len(), preview.was_run), (4, false));
        assert_eq!(preview.inputs[0].previous_prompt, "Summarise {{day}}.\n\n\nwhat happened today");

        let (approved, revision) = learning.approve(&candidate).await.unwrap();
        assert_eq!(approved.status(), CandidateStatus::Applied);
        let proposal = approved.proposal.unwrap();
        assert!(proposal.approved_at.is_some() && proposal.rejected_at.is_none());
        let twice = learning.approve(&approved).await.unwrap_err();
        assert_eq!(twice.code(), Code::FailedPrecondition);
        let late = learning.reject(&approved, "late").await.unwrap_err();
        assert_eq!(late.code(), Code::FailedPrecondition);

        let central = render(&learning, revision).await;
        assert_eq!((central.version, central.settings.len()), (2, 1));
        assert_eq!((central.bad_examples, central.good_examples), (3, 1));
        for node in &nodes {
            node.until(revision).await;
            assert_eq!(rendered(node, "Monday"), (central.text.clone(), 2));
        }
    }

    async fn a_proposal_made_of_ratings_redacted_since_says_so_and_is_approved_only_with_a_word(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        learning.put(prompt_key(""), first_version()).await;
        let mut rated = Vec::new();
        for output in ["1", "2", "3"] {
            rated.push(feedback.learn(finds_fault("ann", output, "too long")).await);
        }
        let improved = answered(learning.outputs.clone().generate_improvement(generate()).await);
        let candidate_id = improved.candidate.unwrap().candidate_id;
        let redaction = RedactFeedbackRequest {
            namespace: NAMESPACE.into(),
            feedback_id: rated[0].feedback_id.clone(),
            wait: Wait::Evaluated.into(),
        };
        answered(feedback.service.clone().redact_feedback(redaction).await);
        feedback.delivered(NAMESPACE, &rated[0].feedback_id).await;

        let shown = learning.candidate(&candidate_id).await;
        assert_eq!(shown.improvement.unwrap().redacted_count, 1);
        let counted = |candidate: &Candidate| candidate.proposal.unwrap().redacted_count;
        assert_eq!(counted(&shown.candidate.unwrap()), 1);
        let listed = learning.candidates_for(TARGET).await;
        let counts: Vec<i32> = listed.iter().map(counted).collect();
        assert_eq!(counts, [1, 0], "the proposal, and the version that was put");

        let unread = ApproveCandidateRequest {
            namespace: NAMESPACE.into(),
            candidate_id: candidate_id.clone(),
            ..ApproveCandidateRequest::default()
        };
        let refusal = refused(learning.candidates.clone().approve_candidate(unread.clone()).await);
        assert_eq!((refusal.code, refusal.reason.as_deref()), (Code::FailedPrecondition, Some("RATINGS_REDACTED")));
        assert!(refusal.message.contains("accept_redacted"), "{refusal:?}");
        let edited = ApproveCandidateRequest {
            edited_value: Some(prompt_value("Summarise {{day}} well.\n")),
            ..unread.clone()
        };
        let refusal = refused(learning.candidates.clone().approve_candidate(edited).await);
        assert_eq!(refusal.reason.as_deref(), Some("RATINGS_REDACTED"));
        let read = ApproveCandidateRequest { accept_redacted: true, ..unread };
        let approved = answered(learning.candidates.clone().approve_candidate(read).await);
        assert_eq!(approved.candidate.unwrap().status(), CandidateStatus::Applied);
    }

    async fn versions_are_listed_and_used_again_and_examples_exported(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        learning.put(prompt_key(""), prompt_value("One.")).await;
        learning.put(prompt_key(""), prompt_value("Two.")).await;
        let wanted = UsePromptVersionRequest {
            namespace: NAMESPACE.into(),
            target: TARGET.into(),
            version: 1,
            ..UsePromptVersionRequest::default()
        };
        let used = answered(learning.outputs.clone().use_prompt_version(wanted.clone()).await);
        assert_eq!(used.version.unwrap().labels, ["production"]);
        let again = refused(learning.outputs.clone().use_prompt_version(wanted).await);
        assert_eq!(again.code, Code::FailedPrecondition);
        let list = ListPromptVersionsRequest {
            namespace: NAMESPACE.into(),
            target: TARGET.into(),
            page_size: 1,
            ..ListPromptVersionsRequest::default()
        };
        let newest = answered(learning.outputs.clone().list_prompt_versions(list.clone()).await);
        let rest = ListPromptVersionsRequest { page_token: newest.next_page_token, ..list };
        let rest = answered(learning.outputs.clone().list_prompt_versions(rest).await);
        assert_eq!((newest.versions[0].labels.len(), rest.versions[0].labels.len()), (0, 1));
        assert_eq!(rest.next_page_token, "");
        let redacted = ListPromptVersionsRequest {
            namespace: NAMESPACE.into(),
            only_redacted: true,
            ..ListPromptVersionsRequest::default()
        };
        let redacted = answered(learning.outputs.clone().list_prompt_versions(redacted).await);
        assert_eq!(redacted.versions, [], "nothing was redacted");

        feedback.learn(rates("ann", "1", "GOOD")).await;
        feedback.learn(finds_fault("ann", "2", "vague")).await;
        for (format, lines) in [(ExampleFormat::Chat, 2), (ExampleFormat::Preference, 1)] {
            let export = ExportExamplesRequest {
                namespace: NAMESPACE.into(),
                target: TARGET.into(),
                format: format.into(),
                ..ExportExamplesRequest::default()
            };
            let mut stream = answered(learning.outputs.clone().export_examples(export).await);
            let mut exported = Vec::new();
            while let Some(line) = stream.message().await.unwrap() {
                exported.push(serde_json::from_str::<serde_json::Value>(&line.line).unwrap());
            }
            assert_eq!(exported.len(), lines, "{exported:?}");
            assert!(exported.iter().all(|line| line["split"].is_string()));
        }
    }
}
