//! What can be learned. A kind is one module here, which holds its whole row, and one entry of `kinds!`; a module that
//! lacks a part does not compile.

mod claim_state;
mod domain_rule;
mod edge_label;
mod entity_alias;
mod few_shot_set;
mod form;
mod invocation_phrase;
mod near_lookup;
mod profile;
mod prohibition;
mod prompt;
mod search_tuning;
mod synonym;

use std::{borrow::Cow, fmt};

pub use self::{
    claim_state::{ClaimState, ReasonCode},
    domain_rule::HUMAN,
    edge_label::EdgeLabel,
    form::Form,
    near_lookup::{NearLookup, NearMethod},
    profile::{
        EXPERIENCE_YEARS, KNOWN_TECHNOLOGIES, LEARNING_GOALS, LISTS, MAX_YEARS, ProfileEntry, SPECIALTIES,
    },
    prompt::{PRODUCTION, PROMPT_CHARS, Prompt, Setting, Variable},
    search_tuning::SearchTuning,
    synonym::{Relation, Synonym},
};
use crate::{
    evidence::DomainRuleValue,
    ids::length_prefixed,
    ratings::{FewShotSet, OutputTally, Rated, RatedId, RatingClass, WindowPolicy},
    roles::{RiskLevel, Role},
    violation::Invalid,
};

/// How a kind behaves; one row per kind.
#[derive(Debug, Clone, Copy)]
pub struct KindRules {
    /// Stable name, used in files, on command lines and in messages, as the label of metrics, and as the name of the
    /// value's field on the wire.
    pub name: &'static str,
    /// The number in `emend.common.v1.ResourceKind`, also used in databases and digests.
    pub number: i32,
    /// What is learned, in a few words.
    pub summary: &'static str,
    /// A shorter name that imported files may use.
    pub short_name: &'static str,
    /// Other names that command lines and imported files may use.
    pub aliases: &'static [&'static str],
    /// How keys are written.
    pub key: Form,
    /// What the qualifier is, if keys of this kind need one.
    pub qualifier: Option<Qualifier>,
    /// How it is decided what is learned.
    pub rule: Rule,
    /// The usual meaning of a choice: what a key maps to, as one word of a file or command line.
    pub parse: fn(String) -> Result<Learned, Invalid>,
    /// Whether new decisions may name a key and qualifier, which are in their forms.
    pub allows: fn(&str, &str) -> Result<(), Invalid>,
    /// Whether a phrase is resolved to what is learned.
    pub is_answer: bool,
    /// Stands between the key and what it maps to: `set up a CSA → create_csa`.
    pub arrow: char,
}

/// How it is decided what is learned for a key.
#[derive(Debug, Clone, Copy)]
pub enum Rule {
    /// The value that enough voters support applies.
    Votes {
        /// The risk level if no policy sets one.
        default_risk: RiskLevel,
    },
    /// The newest effective ruling of an entitled person or agent is in force.
    Ruling(RulingRules),
    /// The newest ratings are the value. Nobody sets it otherwise.
    Window(WindowRules),
    /// A person decides about each proposal.
    Review(ReviewRules),
}

impl Rule {
    /// What decides, in words: `decided by …`.
    pub const fn decided_by(&self) -> &'static str {
        match self {
            Self::Votes { .. } => "votes",
            Self::Ruling(_) => "rulings",
            Self::Window(_) => "a window of ratings",
            Self::Review(_) => "review",
        }
    }

    /// Whether a decision takes effect only once what the key names is known.
    pub const fn needs_target(&self) -> bool {
        matches!(self, Self::Ruling(rules) if rules.needs_target)
    }

    /// Whose keys are.
    pub const fn users(&self) -> Users {
        match self {
            Self::Votes { .. } => Users::Also,
            Self::Review(rules) if rules.of_users => Users::Only,
            Self::Ruling(_) | Self::Window(_) | Self::Review(_) => Users::No,
        }
    }

    /// Whether a decision depends on what was decided about others of its contest. Where it does not, of a contest's candidates
    /// only those need be there that are open or applied, and those that the event names.
    pub const fn depends_on_the_decided(&self) -> bool {
        match self {
            Self::Votes { .. } | Self::Ruling(_) | Self::Window(_) => true,
            Self::Review(rules) => rules.rejection_closes_to_generators,
        }
    }

    /// Whether corrections say what is learned, one by one, so that files of such rows can.
    pub const fn is_by_corrections(&self) -> bool {
        match self {
            Self::Votes { .. } => true,
            Self::Ruling(rules) => rules.by_corrections,
            Self::Window(_) | Self::Review(_) => false,
        }
    }

    /// Whether the log keeps earlier values beside the newest, and they can be brought back.
    pub const fn keeps_history(&self) -> bool {
        match self {
            Self::Votes { .. } | Self::Ruling(_) | Self::Review(_) => true,
            Self::Window(_) => false,
        }
    }
}

/// Whether users have resources of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Users {
    /// All are everybody's.
    No,
    /// Some are.
    Also,
    /// Each is one user's.
    Only,
}

/// What distinguishes the kinds that are decided by review.
#[derive(Debug, Clone, Copy)]
pub struct ReviewRules {
    /// Whether a rejection closes the contest to generators: what nobody wants is not proposed again.
    pub rejection_closes_to_generators: bool,
    /// Whether every key is a user's own; otherwise none is.
    pub of_users: bool,
    /// The qualifier of the contest that counts the versions of all contests with that key; `None`: each counts its own.
    pub numbered_with: Option<&'static str>,
    /// Writes a version's number into its value, where values have one.
    pub numbered: fn(&mut Learned, u32),
}

/// What distinguishes the kinds that are decided by rulings.
#[derive(Debug, Clone, Copy)]
pub struct RulingRules {
    /// What applies, from what the effective rulings say, the newest first; `None`: nothing, and there is no resource.
    pub in_force: fn(&[&Learned]) -> Option<Learned>,
    /// The ruling that nothing applies.
    pub nothing: fn() -> Learned,
    /// Whether only a person may put a ruling on this key into force, whoever sent it.
    pub is_high_risk: fn(&str) -> bool,
    /// Whether a ruling takes effect only once what its key names is known.
    pub needs_target: bool,
    /// Whose rulings are effective at once, if no policy says.
    pub entitled: Role,
    /// Whether corrections say it; otherwise only whoever sets values does.
    pub by_corrections: bool,
}

/// The newest ruling, unless it says that nothing applies.
fn newest(newest_first: &[&Learned], nothing: &Learned) -> Option<Learned> {
    let newest = *newest_first.first()?;
    (newest != nothing).then(|| newest.clone())
}

/// What distinguishes the kinds that are decided by a window of ratings.
#[derive(Debug, Clone, Copy)]
pub struct WindowRules {
    /// What the outputs and their live ratings come to, given in any order, in at most as many bytes; `None`: nothing, and there
    /// is no resource.
    pub value: fn(&[OutputTally], &[Rated], &WindowPolicy, usize) -> Option<Learned>,
    /// Whether a value shows an output as one of this class.
    pub shows: fn(&Learned, RatedId, RatingClass) -> bool,
    /// What is left of a value without an output that it shows as one of this class.
    pub without: fn(&Learned, RatedId, RatingClass) -> Option<Learned>,
    /// The value that shows nothing; never a resource.
    pub nothing: fn() -> Learned,
}

/// What distinguishes resources of one kind with the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Qualifier {
    /// How it is written.
    pub form: Form,
    /// What it is, in a few words.
    pub meaning: &'static str,
    /// The field of the value that says it, perhaps in another spelling; `None` if only the key says it.
    pub field: Option<&'static str>,
    /// What it is where nobody says; `None`: it is required.
    pub default: Option<&'static str>,
}

/// One field of what is learned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field<'a> {
    /// The field's name in the value's message on the wire. A repeated field comes once for each entry.
    pub name: &'static str,
    /// What it says.
    pub text: Cow<'a, str>,
    /// Whether values that differ in it are different candidates. If not, it is only how something is written.
    pub distinguishes: bool,
}

impl<'a> Field<'a> {
    const fn distinguishing(name: &'static str, text: &'a str) -> Self {
        Self {
            name,
            text: Cow::Borrowed(text),
            distinguishes: true,
        }
    }

    const fn shown(name: &'static str, text: &'a str) -> Self {
        Self {
            name,
            text: Cow::Borrowed(text),
            distinguishes: false,
        }
    }
}

/// Declares the kinds: for each its name, what is learned, and its module. The module holds the kind's `RULES` and, for
/// what is learned, `fields`, `maps_to` and `describe`.
macro_rules! kinds {
    ($($(#[$of_kind:meta])+ $kind:ident: $(#[$of_learned:meta])+ $learned:ident($content:ty) in $module:ident;)+) => {
        /// What a resource is about.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[$of_kind])+ $kind,)+
        }

        /// What a key maps to, by kind.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum Learned {
            $($(#[$of_learned])+ $learned($content),)+
        }

        impl Kind {
            /// All kinds, in the order of their numbers.
            pub const ALL: [Self; [$(Self::$kind),+].len()] = [$(Self::$kind),+];

            /// How this kind behaves.
            pub const fn rules(self) -> &'static KindRules {
                match self {
                    $(Self::$kind => &$module::RULES,)+
                }
            }
        }

        impl Learned {
            /// The kind that this belongs to.
            pub const fn kind(&self) -> Kind {
                match self {
                    $(Self::$learned(_) => Kind::$kind,)+
                }
            }

            /// The usual meaning of `choice` for that kind; an error where no choice says it.
            pub fn of(kind: Kind, choice: String) -> Result<Self, Invalid> {
                (kind.rules().parse)(choice)
            }

            /// All fields, in the order of their numbers on the wire.
            pub fn fields(&self) -> Vec<Field<'_>> {
                match self {
                    $(Self::$learned(content) => $module::fields(content),)+
                }
            }

            /// What the key maps to, as text.
            pub fn maps_to(&self) -> &str {
                match self {
                    $(Self::$learned(content) => $module::maps_to(content),)+
                }
            }

            /// Completes a message to the reporter: what `input` now means.
            pub fn describe(&self, input: &str) -> String {
                match self {
                    $(Self::$learned(content) => $module::describe(input, content),)+
                }
            }
        }
    };
}

kinds! {
    /// A phrase and the verb it invokes.
    InvocationPhrase:
        /// The verb that the phrase invokes.
        Verb(String) in invocation_phrase;
    /// A name people use and the entity it means.
    EntityAlias:
        /// The entity that the alias means.
        Entity(String) in entity_alias;
    /// A choice that must never be offered for a phrase.
    Prohibition:
        /// The choice that must never be offered.
        Forbidden(String) in prohibition;
    /// A term and the one that it stands for.
    Synonym:
        /// What the term stands for.
        Synonym(Synonym) in synonym;
    /// What was decided about the sources that a pattern of domains covers.
    DomainRule:
        /// The decision.
        DomainRule(DomainRuleValue) in domain_rule;
    /// The newest rated examples for a target.
    FewShotSet:
        /// The examples.
        FewShotSet(FewShotSet) in few_shot_set;
    /// Whether a claim is shown.
    ClaimState:
        /// What was decided about it; `None`: nothing, which is never a resource.
        ClaimState(Option<ClaimState>) in claim_state;
    /// The label that a person gave an edge of the evidence graph.
    EdgeLabel:
        /// The label; `None`: the model's applies, which is never a resource.
        EdgeLabel(Option<EdgeLabel>) in edge_label;
    /// The prompt with which an AI is asked for an output.
    Prompt:
        /// The version.
        Prompt(Prompt) in prompt;
    /// What a user knows and wants to learn.
    Profile:
        /// One entry.
        ProfileEntry(ProfileEntry) in profile;
    /// How queries of one type are searched.
    SearchTuning:
        /// How; `None`: by the defaults, which is never a resource.
        SearchTuning(Option<SearchTuning>) in search_tuning;
    /// How phrases that nobody corrected are answered by what was learned for similar ones.
    NearLookup:
        /// How; `None`: by the defaults, which is never a resource.
        NearLookup(Option<NearLookup>) in near_lookup;
}

impl Kind {
    /// The number on the wire and in databases.
    pub const fn number(self) -> i32 {
        self.rules().number
    }

    /// The stable name, for example `invocation_phrase`.
    pub const fn name(self) -> &'static str {
        self.rules().name
    }

    /// The kind with this number, if this version knows it.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// Parses the stable name.
    pub fn parse(name: &str) -> Result<Self, Invalid> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| {
                let names: Vec<_> = Self::ALL.iter().map(|kind| kind.name()).collect();
                Invalid::new(format!("must be one of {}", names.join(", ")))
            })
    }

    /// Parses any name that files may use: the stable or the short one or an alias, in any case.
    pub fn parse_any(name: &str) -> Result<Self, Invalid> {
        let sought = name.trim().to_ascii_lowercase();
        Self::ALL
            .into_iter()
            .find(|kind| kind.names().any(|known| known == sought))
            .ok_or_else(|| {
                let names: Vec<_> = Self::ALL.iter().map(|kind| kind.name()).collect();
                Invalid::new(format!("must be one of {}; is {name:?}", names.join(", ")))
            })
    }

    /// All names, the stable one first.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let KindRules {
            name,
            short_name,
            aliases,
            ..
        } = self.rules();
        [*name, *short_name].into_iter().chain(aliases.iter().copied())
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Learned {
    /// The bytes that tell candidates of one contest apart: the kind and the fields that distinguish.
    pub fn canonical(&self) -> Vec<u8> {
        let kind = self.kind().number().to_le_bytes();
        let fields = self.fields();
        let mut parts: Vec<&[u8]> = Vec::with_capacity(fields.len() + 1);
        parts.push(&kind);
        for field in &fields {
            if field.distinguishes {
                parts.push(field.text.as_bytes());
            }
        }
        length_prefixed(&parts)
    }

    /// The field that says the key's qualifier, if the kind has one.
    pub fn qualifier(&self) -> Option<Field<'_>> {
        let field = self.kind().rules().qualifier?.field?;
        self.fields().into_iter().find(|known| known.name == field)
    }

    /// The same with what another field only writes as people do in the form that it has in the key.
    #[must_use]
    pub fn in_normal_form(&self, qualifier: &str) -> Self {
        match self {
            Self::Synonym(synonym) => Self::Synonym(Synonym {
                relation: synonym.relation,
                representative: qualifier.to_owned(),
            }),
            _ => self.clone(),
        }
    }

    /// Stands between the key and this: that of the kind, unless the key is led to it and it is not led to the key.
    pub const fn arrow(&self) -> char {
        match self {
            Self::Synonym(synonym) if !matches!(synonym.relation, Relation::Equivalent) => '→',
            _ => self.kind().rules().arrow,
        }
    }

    /// Checks that this may be learned for a key, where the kind's keys say something of it; the error names the field.
    pub fn check_key(&self, key: &str) -> Result<(), (&'static str, Invalid)> {
        match self {
            Self::ProfileEntry(entry) => profile::check_key(key, entry),
            _ => Ok(()),
        }
    }

    /// The qualifier of the key that this is learned for, in its form, if the value says it; empty if the kind has none.
    pub fn qualifier_of_key(&self) -> Option<Result<String, Invalid>> {
        match (self.kind().rules().qualifier, self.qualifier()) {
            (None, _) => Some(Ok(String::new())),
            (Some(Qualifier { form, .. }), Some(field)) => Some(form.parse(&field.text)),
            (Some(_), None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_of_kinds_are_unique() {
        let mut names = std::collections::HashMap::new();
        for kind in Kind::ALL {
            assert_eq!(Kind::from_number(kind.number()), Some(kind));
            assert_eq!(Kind::parse(kind.name()), Ok(kind));
            for name in kind.names() {
                assert_eq!(Kind::parse_any(&name.to_uppercase()), Ok(kind));
                assert_eq!(*names.entry(name).or_insert(kind), kind, "{name}");
            }
        }
        assert_eq!(Kind::from_number(0), None);
        assert!(Kind::parse("verbs").unwrap_err().0.contains("entity_alias"));
        let unknown = Kind::parse_any("verbs").unwrap_err();
        assert!(
            unknown.0.contains("invocation_phrase, entity_alias, prohibition"),
            "{unknown}"
        );
    }

    #[test]
    fn a_value_says_the_qualifier_of_its_key() {
        for kind in Kind::ALL {
            let choices = [
                "delete_fund",
                "block",
                "rejected",
                "supports",
                "top_k=5",
                "method=off",
            ];
            let learned = choices
                .into_iter()
                .find_map(|choice| Learned::of(kind, choice.to_owned()).ok())
                .unwrap_or_else(|| Learned::FewShotSet(FewShotSet::default()));
            assert_eq!(learned.kind(), kind);
            let of_value = learned.qualifier_of_key().map(Result::unwrap);
            match kind.rules().qualifier {
                None => assert_eq!(of_value.as_deref(), Some("")),
                Some(Qualifier { field: None, .. }) => assert_eq!(of_value, None),
                Some(_) => assert_eq!(of_value.as_deref(), Some("delete_fund")),
            }
        }
    }

    #[test]
    fn fields_that_distinguish_make_the_canonical_bytes_and_only_these() {
        let synonym = |relation, representative: &str| {
            let representative = representative.to_owned();
            Learned::Synonym(Synonym {
                relation,
                representative,
            })
            .canonical()
        };
        assert_eq!(synonym(Relation::Typo, "Board"), synonym(Relation::Typo, "board"));
        assert_ne!(
            synonym(Relation::Typo, "board"),
            synonym(Relation::OneWay, "board")
        );
        for kind in [Kind::InvocationPhrase, Kind::EntityAlias, Kind::Prohibition] {
            let [one, other] =
                ["a", "b"].map(|choice| Learned::of(kind, choice.to_owned()).unwrap().canonical());
            assert_ne!(one, other, "{kind}");
        }
    }
}
