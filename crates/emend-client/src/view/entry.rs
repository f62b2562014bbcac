//! All that was learned for one phrase in one namespace, for one user or for everybody.

use std::sync::Arc;

use emend_core::{Kind, Layer, Learned, NearLookup, Revision, search::Tuning};

use super::{
    domains::{DomainRules, OnlyRule, RulesFound},
    evidence::{ClaimDecided, EdgeDecided},
    outputs::Outputs,
    publisher::Fact,
    synonyms::Synonyms,
};

/// A learned answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The verb or entity id.
    pub(crate) value: Arc<str>,
    /// The revision that applied it.
    pub(crate) revision: Revision,
}

/// What was learned, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The verb the phrase invokes.
    pub(crate) verb: Option<Answer>,
    /// The entity the phrase is an alias of.
    pub(crate) entity: Option<Answer>,
    /// The choices never to be offered, sorted.
    pub(crate) prohibited: Vec<Arc<str>>,
    /// What the phrase stands for, and what stands for it; `None` if nothing.
    pub(crate) synonyms: Option<Box<Synonyms>>,
    /// What was decided about the sources of a domain of that name; `None` if nothing.
    pub(crate) domains: Option<Box<DomainRules>>,
    /// What an AI is asked with for a target of that name, or a user's entries in the field of profiles of that name; `None` if
    /// nothing.
    pub(crate) outputs: Option<Box<Outputs>>,
    /// What was decided about the claim of that id; `None` if nothing.
    pub(crate) claim: Option<Box<ClaimDecided>>,
    /// The label of the edge of that id; `None` if no person gave one.
    pub(crate) edge: Option<EdgeDecided>,
    /// How queries of the type of that name are searched; `None`: with the defaults.
    pub(crate) tuning: Option<Arc<Tuning>>,
    /// How phrases of the kind of that name that nobody corrected are answered; `None`: with the defaults.
    pub(crate) near: Option<Arc<NearLookup>>,
}

impl Entry {
    /// The answer of that kind, if the kind has answers.
    pub(crate) fn answer(&self, kind: Kind) -> Option<&Answer> {
        match kind {
            Kind::InvocationPhrase => self.verb.as_ref(),
            Kind::EntityAlias => self.entity.as_ref(),
            Kind::Prohibition
            | Kind::Synonym
            | Kind::DomainRule
            | Kind::FewShotSet
            | Kind::ClaimState
            | Kind::EdgeLabel
            | Kind::Prompt
            | Kind::Profile
            | Kind::SearchTuning
            | Kind::NearLookup => None,
        }
    }

    /// Records what is now learned, or no longer, in the entry of the fact's key.
    pub(crate) fn note(&mut self, fact: &Fact<'_>) {
        let Some(value) = &fact.value else {
            return self.forget(fact);
        };
        match &value.learned {
            Learned::Verb(choice) | Learned::Entity(choice) => {
                self.set_answer(fact.kind, choice.as_str(), fact.revision);
            }
            Learned::Forbidden(choice) => self.prohibit(choice),
            Learned::Synonym(synonym) => {
                let synonyms = self.synonyms.get_or_insert_default();
                synonyms.stands_for(fact.qualifier, synonym, fact.revision);
            }
            Learned::DomainRule(value) => {
                // A layer that this version does not know decides nothing.
                if let Ok(layer) = Layer::parse(fact.qualifier) {
                    let domains = self.domains.get_or_insert_default();
                    domains.set(fact.key, layer, Some((value.rule, fact.revision)));
                }
            }
            Learned::FewShotSet(set) => {
                self.change_outputs(|outputs| outputs.examples = Some(Arc::new(set.clone())));
            }
            Learned::Prompt(prompt) => self.note_prompt(fact, Some(prompt)),
            Learned::ProfileEntry(entry) => {
                self.change_outputs(|outputs| outputs.set_entry(fact.qualifier, Some(entry.clone())));
            }
            Learned::ClaimState(state) => {
                self.claim = state.clone().map(|state| {
                    Box::new(ClaimDecided {
                        state,
                        revision: fact.revision,
                    })
                });
            }
            Learned::SearchTuning(set) => self.tuning = set.as_ref().map(|set| set.tuning().clone()),
            Learned::NearLookup(near) => self.near = near.clone().map(Arc::new),
            Learned::EdgeLabel(label) => {
                self.edge = label.map(|label| EdgeDecided {
                    relation: label.relation(),
                    revision: fact.revision,
                });
            }
        }
    }

    /// Records the answer of that kind.
    pub(crate) fn set_answer(&mut self, kind: Kind, value: impl Into<Arc<str>>, revision: Revision) {
        let answer = Some(Answer {
            value: value.into(),
            revision,
        });
        match kind {
            Kind::InvocationPhrase => self.verb = answer,
            Kind::EntityAlias => self.entity = answer,
            Kind::Prohibition
            | Kind::Synonym
            | Kind::DomainRule
            | Kind::FewShotSet
            | Kind::ClaimState
            | Kind::EdgeLabel
            | Kind::Prompt
            | Kind::Profile
            | Kind::SearchTuning
            | Kind::NearLookup => {}
        }
    }

    /// Records a choice never to be offered.
    pub(crate) fn prohibit(&mut self, choice: &str) {
        if let Err(place) = self
            .prohibited
            .binary_search_by(|prohibited| (**prohibited).cmp(choice))
        {
            self.prohibited.insert(place, choice.into());
        }
    }

    /// Removes what is no longer learned. For a prohibition, the qualifier is the choice that is no longer forbidden; for a
    /// synonym the representative.
    fn forget(&mut self, fact: &Fact<'_>) {
        let qualifier = fact.qualifier;
        match fact.kind {
            Kind::InvocationPhrase => self.verb = None,
            Kind::EntityAlias => self.entity = None,
            Kind::Prohibition => self.prohibited.retain(|choice| **choice != *qualifier),
            Kind::Synonym => self.change_synonyms(|synonyms| synonyms.stands_for_no_longer(qualifier)),
            Kind::DomainRule => {
                if let (Some(domains), Ok(layer)) = (&mut self.domains, Layer::parse(fact.qualifier)) {
                    domains.set(fact.key, layer, None);
                }
                self.domains.take_if(|domains| domains.is_empty());
            }
            Kind::FewShotSet => self.change_outputs(|outputs| outputs.examples = None),
            Kind::Prompt => self.note_prompt(fact, None),
            Kind::Profile => self.change_outputs(|outputs| outputs.set_entry(qualifier, None)),
            Kind::ClaimState => self.claim = None,
            Kind::EdgeLabel => self.edge = None,
            Kind::SearchTuning => self.tuning = None,
            Kind::NearLookup => self.near = None,
        }
    }

    /// Records a synonym, or that it is gone, in the entry of its representative.
    pub(crate) fn note_in_set(&mut self, fact: &Fact<'_>) {
        match fact.value.as_deref() {
            Some(value) => self.synonyms.get_or_insert_default().has_in_set(fact.key, value),
            None => self.change_synonyms(|synonyms| synonyms.has_no_longer(fact.key)),
        }
    }

    /// Changes the synonyms, if there are any, and leaves none empty.
    fn change_synonyms(&mut self, change: impl FnOnce(&mut Synonyms)) {
        if let Some(synonyms) = &mut self.synonyms {
            change(synonyms);
            if synonyms.is_empty() {
                self.synonyms = None;
            }
        }
    }

    /// Whether nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.verb.is_none()
            && self.entity.is_none()
            && self.prohibited.is_empty()
            && self.synonyms.is_none()
            && self.domains.is_none()
            && self.outputs.is_none()
            && self.claim.is_none()
            && self.edge.is_none()
            && self.tuning.is_none()
            && self.near.is_none()
    }
}

/// What a table holds for one phrase.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Found<'a> {
    /// One answer of that kind and nothing else.
    One(Kind, &'a Arc<str>, Revision),
    /// One decision about a domain and nothing else.
    Domain(OnlyRule),
    /// Synonyms and nothing else.
    Synonyms(&'a Synonyms),
    /// Everything in this entry.
    Many(&'a Entry),
}

impl<'a> Found<'a> {
    /// The answer of that kind.
    #[inline]
    pub(crate) fn answer(self, kind: Kind) -> Option<(&'a str, Revision)> {
        match self {
            Self::One(known, value, revision) => (known == kind).then_some((&**value, revision)),
            Self::Domain(_) | Self::Synonyms(_) => None,
            Self::Many(entry) => entry.answer(kind).map(|answer| (&*answer.value, answer.revision)),
        }
    }

    /// The choices never to be offered, sorted.
    #[inline]
    pub(crate) fn prohibited(self) -> &'a [Arc<str>] {
        match self {
            Self::One(..) | Self::Domain(_) | Self::Synonyms(_) => &[],
            Self::Many(entry) => &entry.prohibited,
        }
    }

    /// What the phrase stands for, and what stands for it.
    #[inline]
    pub(crate) fn synonyms(self) -> Option<&'a Synonyms> {
        match self {
            Self::One(..) | Self::Domain(_) => None,
            Self::Synonyms(synonyms) => Some(synonyms),
            Self::Many(entry) => entry.synonyms.as_deref(),
        }
    }

    /// What was decided about the sources of a domain of that name.
    #[inline]
    pub(crate) fn domains(self) -> Option<RulesFound<'a>> {
        match self {
            Self::One(..) | Self::Synonyms(_) => None,
            Self::Domain(only) => Some(RulesFound::Only(only)),
            Self::Many(entry) => entry.domains.as_deref().map(RulesFound::Several),
        }
    }

    /// What an AI is asked with for a target of that name, or a user's entries in the field of that name.
    #[inline]
    pub(crate) fn outputs(self) -> Option<&'a Outputs> {
        match self {
            Self::One(..) | Self::Domain(_) | Self::Synonyms(_) => None,
            Self::Many(entry) => entry.outputs.as_deref(),
        }
    }

    /// What was decided about the claim of that id.
    pub(crate) fn claim(self) -> Option<&'a ClaimDecided> {
        match self {
            Self::One(..) | Self::Domain(_) | Self::Synonyms(_) => None,
            Self::Many(entry) => entry.claim.as_deref(),
        }
    }

    /// The label of the edge of that id.
    pub(crate) fn edge(self) -> Option<EdgeDecided> {
        match self {
            Self::One(..) | Self::Domain(_) | Self::Synonyms(_) => None,
            Self::Many(entry) => entry.edge,
        }
    }

    /// How queries of the type of that name are searched.
    pub(crate) fn tuning(self) -> Option<&'a Arc<Tuning>> {
        match self {
            Self::One(..) | Self::Domain(_) | Self::Synonyms(_) => None,
            Self::Many(entry) => entry.tuning.as_ref(),
        }
    }

    /// How phrases of the kind of that name that nobody corrected are answered.
    pub(crate) fn near(self) -> Option<&'a NearLookup> {
        match self {
            Self::One(..) | Self::Domain(_) | Self::Synonyms(_) => None,
            Self::Many(entry) => entry.near.as_deref(),
        }
    }

    /// Converts it into an owned entry, which shares the texts.
    pub(crate) fn to_entry(self) -> Entry {
        match self {
            Self::One(kind, value, revision) => {
                let mut entry = Entry::default();
                entry.set_answer(kind, Arc::clone(value), revision);
                entry
            }
            Self::Domain(only) => Entry {
                domains: Some(Box::new(only.into())),
                ..Entry::default()
            },
            Self::Synonyms(synonyms) => Entry {
                synonyms: Some(Box::new(synonyms.clone())),
                ..Entry::default()
            },
            Self::Many(entry) => entry.clone(),
        }
    }
}
