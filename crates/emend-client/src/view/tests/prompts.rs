//! Which prompt a node renders, and with what.

use emend_core::{
    FewShotSet, Language, Profile, ProfileEntry, Prompt,
    kinds::{KNOWN_TECHNOLOGIES, Variable},
    outputs::render_for,
};

use super::*;

fn prompt_fact(target: &str, label: &str, prompt: Option<&Prompt>, revision: i64) -> Fact<'static> {
    let value = prompt.map(|prompt| ResourceValue::new(target, Learned::Prompt(prompt.clone())));
    Fact {
        namespace: "fund-admin",
        kind: Kind::Prompt,
        key: target.to_owned().leak(),
        qualifier: label.to_owned().leak(),
        user_id: "",
        revision: Revision(revision),
        value: value.map(Cow::Owned),
    }
}

/// Version `version` of a prompt of this text, where `day` and `tone` are variables, `dry` the tone if nobody says.
fn prompt(version: u32, text: &str) -> Prompt {
    let variable = |name: &str, default: Option<&str>| Variable {
        name: name.into(),
        default: default.map(str::to_owned),
    };
    let variables = vec![variable("day", None), variable("tone", Some("dry"))];
    let variables = variables
        .into_iter()
        .filter(|variable| text.contains(&variable.name))
        .collect();
    let mut prompt = Prompt::new(text, variables, vec![]).unwrap();
    prompt.version = version;
    prompt
}

#[test]
fn a_prompt_is_the_one_under_the_label_that_is_followed() {
    let (mut publisher, view) = view();
    let (first, second) = (prompt(1, "first"), prompt(2, "second"));
    publisher.apply(
        [
            prompt_fact("T", "production", Some(&first), 1),
            prompt_fact("T", "staging", Some(&second), 2),
        ],
        Revision(2),
    );
    let rendered = |label| {
        let options = RenderOptions {
            label,
            ..RenderOptions::default()
        };
        let rendered = view.render(&namespace(), "T", &options).unwrap();
        rendered.map(|rendered| (rendered.text, rendered.version))
    };
    assert_eq!(rendered(None), Some(("first".into(), 1)));
    assert_eq!(rendered(Some("production")), Some(("first".into(), 1)));
    assert_eq!(rendered(Some("staging")), Some(("second".into(), 2)));
    assert_eq!(rendered(Some("nightly")), None);
    assert_eq!(
        view.prompt(&namespace(), "t", "production"),
        None,
        "targets are exact"
    );
    let in_force = view.prompt(&namespace(), "T", "staging").unwrap();
    assert_eq!((&*in_force.prompt, in_force.revision), (&second, Revision(2)));

    publisher.apply([prompt_fact("T", "production", Some(&second), 3)], Revision(3));
    assert_eq!(rendered(None), Some(("second".into(), 2)));
    publisher.apply([prompt_fact("T", "production", None, 4)], Revision(4));
    assert_eq!(rendered(None), None);
    assert_eq!(
        rendered(Some("staging")),
        Some(("second".into(), 2)),
        "the other label stays"
    );
}

#[test]
fn a_prompt_without_feedback_and_profile_is_its_text_byte_for_byte() {
    let (mut publisher, view) = view();
    let text = "  {{day}},\r\n{{tone}} {{other}}\t\n\n";
    publisher.apply(
        [prompt_fact("T", "production", Some(&prompt(1, text)), 1)],
        Revision(1),
    );
    let render = |variables: &[(&str, &str)]| {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let options = RenderOptions {
            variables: variables.iter().map(owned).collect(),
            user: Some(&UserId::parse("nobody").unwrap()),
            ..RenderOptions::default()
        };
        view.render(&namespace(), "T", &options)
    };
    let rendered = render(&[("day", "{{tone}}")]).unwrap().unwrap();
    assert_eq!(rendered.text, "  {{tone}},\r\ndry {{other}}\t\n\n");
    let refused = render(&[("tone", "warm"), ("who", "me")])
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("variables[day]") && refused.contains("variables[who]"),
        "{refused}"
    );
}

#[test]
fn a_users_profile_is_a_section_of_its_own_and_only_that_users() {
    let (mut publisher, view) = view();
    let entry = ProfileEntry::Text("Rust".into());
    let own = Fact {
        kind: Kind::Profile,
        key: KNOWN_TECHNOLOGIES,
        qualifier: "rust",
        user_id: "jane",
        value: Some(Cow::Owned(ResourceValue::new(
            "Rust",
            Learned::ProfileEntry(entry.clone()),
        ))),
        ..prompt_fact("", "", None, 2)
    };
    publisher.apply(
        [prompt_fact("T", "production", Some(&prompt(1, "text")), 1), own],
        Revision(2),
    );
    let render = |user: Option<&str>, language| {
        let user = user.map(|user| UserId::parse(user).unwrap());
        let options = RenderOptions {
            user: user.as_ref(),
            language,
            ..RenderOptions::default()
        };
        view.render(&namespace(), "T", &options).unwrap().unwrap().text
    };
    let mut profile = Profile::default();
    profile.set(KNOWN_TECHNOLOGIES, "rust", Some(&entry));
    assert_eq!(
        view.profile(&namespace(), &UserId::parse("jane").unwrap()),
        profile
    );
    for language in [Language::En, Language::Ja] {
        let expected = render_for("text", &FewShotSet::default(), &profile, language);
        assert_eq!(render(Some("jane"), Some(language)), expected);
        assert!(
            expected.starts_with("text") && expected.contains("Rust"),
            "{expected}"
        );
    }
    assert_eq!(render(Some("john"), None), "text");
    assert_eq!(render(None, None), "text");
}
