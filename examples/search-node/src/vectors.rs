//! The vectors of the index in memory, and how close its records are to another one: each is compared, which a hundred
//! thousand records allow.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tantivy::{
    DocAddress, DocSet as _, Searcher, SearcherGeneration, TERMINATED, TantivyDocument, Warmer,
    schema::{IndexRecordOption, Value as _},
};

use crate::{embedding::Vector, index::Fields, ranking::Bounds};

/// Where a vector is of.
#[derive(Debug)]
struct Place {
    address: DocAddress,
    of: Box<str>,
    namespace: Box<str>,
    host: Option<Box<str>>,
}

/// The vectors of one embedding version in one state of the index.
#[derive(Debug, Default)]
pub(crate) struct Vectors {
    dimensions: usize,
    /// One vector after the other.
    numbers: Vec<f32>,
    places: Vec<Place>,
    rows: HashMap<DocAddress, usize>,
}

impl Vectors {
    /// How many numbers each has.
    pub(crate) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// How close each is to a vector of as many numbers.
    pub(crate) fn compared(self: Arc<Self>, to: &Vector) -> Closeness {
        let cosine = |numbers: &[f32]| -> f32 {
            numbers
                .iter()
                .zip(to.numbers())
                .map(|(one, other)| one * other)
                .sum()
        };
        let values = self.numbers.chunks_exact(self.dimensions.max(1)).map(cosine);
        Closeness {
            values: values.map(|cosine| f64::from(cosine.clamp(0.0, 1.0))).collect(),
            vectors: self,
        }
    }

    /// Adds the vector of a record, if it has as many numbers as the others.
    fn add(&mut self, place: Place, vector: &[u8]) {
        let (numbers, rest) = vector.as_chunks::<4>();
        if self.places.is_empty() {
            self.dimensions = numbers.len();
        }
        if numbers.len() == self.dimensions && rest.is_empty() {
            self.numbers
                .extend(numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)));
            self.rows.insert(place.address, self.places.len());
            self.places.push(place);
        }
    }
}

/// A vector as the index stores it.
pub(crate) fn stored(vector: &Vector) -> Vec<u8> {
    vector
        .numbers()
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}

/// How close the records that have vectors are to one vector: the cosine, 0.0 to 1.0.
#[derive(Debug)]
pub(crate) struct Closeness {
    vectors: Arc<Vectors>,
    values: Vec<f64>,
}

impl Closeness {
    /// How close a record is; `None` if it has no vector.
    pub(crate) fn of(&self, record: DocAddress) -> Option<f64> {
        let row = self.vectors.rows.get(&record)?;
        self.values.get(*row).copied()
    }

    /// The closest records within bounds, at most so many.
    pub(crate) fn closest(&self, bounds: &Bounds, limit: usize) -> Vec<DocAddress> {
        let is_within = |place: &Place| {
            let is_blocked = |host: &str| bounds.blocked.iter().any(|blocked| blocked == host);
            bounds.namespaces.contains(&*place.namespace)
                && !bounds.prohibited.iter().any(|subject| **subject == *place.of)
                && !place.host.as_deref().is_some_and(is_blocked)
        };
        let places = self.vectors.places.iter().zip(&self.values);
        let mut within: Vec<(f64, DocAddress)> = places
            .filter(|(place, value)| **value > 0.0 && is_within(place))
            .map(|(place, value)| (*value, place.address))
            .collect();
        within.sort_unstable_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        within.truncate(limit);
        within.into_iter().map(|(_, address)| address).collect()
    }
}

/// By embedding version.
type ByVersion = HashMap<String, Arc<Vectors>>;

/// The vectors of each state of the index that is in use, read before the first query sees that state.
pub(crate) struct VectorStates {
    fields: Fields,
    by_generation: Mutex<HashMap<u64, ByVersion>>,
}

impl VectorStates {
    pub(crate) fn new(fields: Fields) -> Self {
        Self {
            fields,
            by_generation: Mutex::default(),
        }
    }

    /// The vectors of a version, if the index has any in the state that a searcher sees.
    pub(crate) fn of(&self, searcher: &Searcher, version: &str) -> Option<Arc<Vectors>> {
        let states = self.by_generation.lock().unwrap_or_else(PoisonError::into_inner);
        let state = states.get(&searcher.generation().generation_id())?;
        state.get(version).cloned()
    }

    fn read(&self, searcher: &Searcher) -> tantivy::Result<ByVersion> {
        let fields = &self.fields;
        let mut versions: HashMap<String, Vectors> = HashMap::new();
        for (segment_ord, segment) in (0..).zip(searcher.segment_readers()) {
            let inverted = segment.inverted_index(fields.embedding_version)?;
            let mut terms = inverted.terms().stream()?;
            while let Some((version, info)) = terms.next() {
                let version = String::from_utf8_lossy(version).into_owned();
                let vectors = versions.entry(version).or_default();
                let mut records = inverted.read_postings_from_terminfo(info, IndexRecordOption::Basic)?;
                while records.doc() != TERMINATED {
                    let address = DocAddress::new(segment_ord, records.doc());
                    if segment
                        .alive_bitset()
                        .is_none_or(|alive| alive.is_alive(address.doc_id))
                    {
                        let document: TantivyDocument = searcher.doc(address)?;
                        let record = fields.record(&document);
                        let vector = document
                            .get_first(fields.vector)
                            .and_then(|value| value.as_bytes());
                        let place = Place {
                            address,
                            of: record.of().into(),
                            namespace: record.namespace.as_str().into(),
                            host: record.host().map(Into::into),
                        };
                        vectors.add(place, vector.unwrap_or_default());
                    }
                    records.advance();
                }
            }
        }
        versions.retain(|_, vectors| !vectors.places.is_empty());
        let shared = |(version, vectors)| (version, Arc::new(vectors));
        Ok(versions.into_iter().map(shared).collect())
    }
}

impl Warmer for VectorStates {
    fn warm(&self, searcher: &Searcher) -> tantivy::Result<()> {
        let read = self.read(searcher)?;
        let mut states = self.by_generation.lock().unwrap_or_else(PoisonError::into_inner);
        states.insert(searcher.generation().generation_id(), read);
        Ok(())
    }

    fn garbage_collect(&self, live_generations: &[&SearcherGeneration]) {
        let mut states = self.by_generation.lock().unwrap_or_else(PoisonError::into_inner);
        let is_live = |id: &u64| live_generations.iter().any(|live| live.generation_id() == *id);
        states.retain(|id, _| is_live(id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_come_first_within_bounds() {
        let mut vectors = Vectors::default();
        let mut add = |doc_id, namespace: &str, host: Option<&str>, numbers: &[f32]| {
            let place = Place {
                address: DocAddress::new(0, doc_id),
                of: format!("card-{doc_id}").into(),
                namespace: namespace.into(),
                host: host.map(Into::into),
            };
            vectors.add(place, &stored(&Vector::new(numbers.to_vec()).unwrap()));
        };
        add(1, "effects", None, &[0.0, 1.0]);
        add(2, "effects", None, &[1.0, 1.0]);
        add(3, "effects", Some("blocked.example"), &[0.0, 1.0]);
        add(4, "flavor", None, &[0.0, 1.0]);
        add(5, "effects", None, &[0.0, 2.0]);
        add(6, "effects", None, &[1.0, 0.0]);
        add(7, "effects", None, &[0.0, -1.0]);
        // Not as long as the others: left out.
        add(8, "effects", None, &[1.0]);
        let closeness = Arc::new(vectors).compared(&Vector::new(vec![0.0, 3.0]).unwrap());
        let bounds = Bounds {
            namespaces: ["effects".to_owned()].into(),
            prohibited: vec!["card-5".to_owned()],
            blocked: vec!["blocked.example".to_owned()],
            ..Bounds::default()
        };
        let closest = |limit| -> Vec<u32> {
            let found = closeness.closest(&bounds, limit);
            found.iter().map(|address| address.doc_id).collect()
        };
        assert_eq!((closest(10), closest(1)), (vec![1, 2], vec![1]));
        let of = |doc_id| closeness.of(DocAddress::new(0, doc_id));
        assert_eq!(
            (of(1), of(6), of(7), of(8)),
            (Some(1.0), Some(0.0), Some(0.0), None)
        );
        assert!((of(2).unwrap() - std::f64::consts::FRAC_1_SQRT_2).abs() < 1e-6);
    }
}
