use std::{collections::HashMap, fs};

use emend_core::generalise::Vectors as _;
use safetensors::tensor::{Dtype, TensorView, serialize};
use tempfile::TempDir;

use super::*;

const CONFIG_TEXT: &str = r#"{"normalize": false}"#;

/// Words with these numbers, and the one of an unknown word.
fn tokenizer(words: &[(&str, u32)]) -> String {
    let vocab: HashMap<&str, u32> = words.iter().copied().chain([("[UNK]", 0)]).collect();
    serde_json::json!({
        "version": "1.0",
        "added_tokens": [],
        "normalizer": null,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": null,
        "decoder": null,
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "[UNK]"},
    })
    .to_string()
}

fn matrix(name: &str, rows: &[[f32; 2]]) -> Vec<u8> {
    let bytes: Vec<u8> = rows
        .as_flattened()
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let view = TensorView::new(Dtype::F32, vec![rows.len(), 2], &bytes).unwrap();
    serialize([(name, view)], &None).unwrap()
}

fn directory(tokenizer: &str, model: &[u8]) -> TempDir {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join(CONFIG), CONFIG_TEXT).unwrap();
    fs::write(directory.path().join(TOKENIZER), tokenizer).unwrap();
    fs::write(directory.path().join(MODEL), model).unwrap();
    directory
}

fn read(tokenizer: &str, model: &[u8]) -> Result<StaticVectors, String> {
    StaticVectors::read(directory(tokenizer, model).path()).map_err(|error| error.to_string())
}

const ROWS: [[f32; 2]; 3] = [[9.0, 9.0], [1.0, 2.0], [3.0, -4.0]];

#[test]
fn a_phrase_has_the_mean_of_its_words() {
    let words = tokenizer(&[("pay", 1), ("fee", 2)]);
    for name in ["embeddings", "embedding.weight"] {
        let vectors = read(&words, &matrix(name, &ROWS)).unwrap();
        assert!(format!("{vectors:?}").contains("dimensions: 2"), "{vectors:?}");
        assert_eq!(vectors.vector("pay fee"), Some(vec![2.0, -1.0]));
        assert_eq!(
            vectors.vector("pay rent"),
            Some(vec![1.0, 2.0]),
            "unknown words do not count"
        );
        assert_eq!(vectors.vector("rent"), None, "nothing is known of it");
        assert_eq!(vectors.vector(""), None);
    }
}

#[test]
fn numbers_that_have_no_length_are_no_vector() {
    let words = tokenizer(&[("pay", 1), ("fee", 2)]);
    for bad in [f32::NAN, f32::INFINITY, f32::MAX] {
        let vectors = read(&words, &matrix("embeddings", &[ROWS[0], [1.0, bad], ROWS[2]])).unwrap();
        assert_eq!(vectors.vector("pay"), None, "{bad}");
        assert!(vectors.vector("fee").is_some(), "{bad}");
    }
}

#[test]
fn the_hash_is_of_all_three_files() {
    let (words, model) = (tokenizer(&[("pay", 1), ("fee", 2)]), matrix("embeddings", &ROWS));
    let hash = |tokenizer: &str, model: &[u8]| read(tokenizer, model).unwrap().hash().to_owned();
    let expected = files::hash(&[[CONFIG_TEXT.as_bytes(), &model, words.as_bytes()]
        .concat()
        .as_slice()]);
    assert_eq!(hash(&words, &model), expected);
    assert_eq!(expected.len(), 64);
    let mut others = ROWS;
    others[1][0] = 1.5;
    assert_ne!(hash(&words, &matrix("embeddings", &others)), expected);
    assert_ne!(hash(&format!("{words} "), &model), expected);
}

#[test]
fn files_that_do_not_belong_together_are_refused_before_a_phrase_needs_them() {
    let good = matrix("embeddings", &ROWS);
    let words = tokenizer(&[("pay", 1), ("fee", 2)]);
    for (tokenizer, model, reason) in [
        (
            tokenizer(&[("pay", 7)]),
            good.clone(),
            "a token 7, model.safetensors has rows for 3",
        ),
        (words.clone(), matrix("other", &ROWS), "no tensor `embeddings`"),
        (words.clone(), b"no tensors".to_vec(), "model.safetensors"),
        ("{}".to_owned(), good.clone(), "has no model.vocab"),
        ("nothing".to_owned(), good, "tokenizer.json"),
    ] {
        let refused = read(&tokenizer, &model).unwrap_err();
        assert!(refused.contains(reason), "{refused}");
    }
    let nowhere = StaticVectors::read(Path::new("/nowhere"))
        .unwrap_err()
        .to_string();
    assert!(nowhere.contains("/nowhere/config.json"), "{nowhere}");
}
