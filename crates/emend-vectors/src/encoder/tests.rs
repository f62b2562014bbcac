use std::{collections::HashMap, fs};

use prost::Message as _;
use tempfile::TempDir;
use tract_onnx::pb::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto,
    TypeProto, ValueInfoProto, attribute_proto::AttributeType, tensor_proto::DataType, tensor_shape_proto,
    type_proto,
};

use super::*;

/// The vectors of the tokens 0 to 3.
const ROWS: [[f32; 2]; 4] = [[0.0, 1.0], [1.0, 2.0], [3.0, -4.0], [1.0, 0.0]];
const WORDS: [(&str, u32); 3] = [("pay", 1), ("fee", 2), ("[CLS]", 3)];

/// Words with these numbers, each text behind a special token; an unknown word is 0.
fn tokenizer(words: &[(&str, u32)], truncation: &serde_json::Value) -> Vec<u8> {
    let vocab: HashMap<&str, u32> = words.iter().copied().chain([("[UNK]", 0)]).collect();
    let special = serde_json::json!({
        "id": 3, "content": "[CLS]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true,
    });
    serde_json::to_vec(&serde_json::json!({
        "version": "1.0",
        "truncation": truncation,
        "padding": {
            "strategy": {"Fixed": 12}, "direction": "Right", "pad_to_multiple_of": null,
            "pad_id": 0, "pad_type_id": 0, "pad_token": "[UNK]",
        },
        "added_tokens": [special],
        "normalizer": null,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [3], "tokens": ["[CLS]"]}},
        },
        "decoder": null,
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "[UNK]"},
    }))
    .unwrap()
}

/// A network that looks each token's row up.
struct Network {
    inputs: Vec<(&'static str, DataType)>,
    /// By name, and whether all tokens share one vector.
    outputs: Vec<(&'static str, bool)>,
    rows: Vec<f32>,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            inputs: vec![
                ("input_ids", DataType::Int64),
                ("attention_mask", DataType::Int64),
            ],
            outputs: vec![("last_hidden_state", false)],
            rows: ROWS.as_flattened().to_vec(),
        }
    }
}

impl Network {
    fn with_inputs(inputs: &[&'static str], integers: DataType) -> Self {
        Self {
            inputs: inputs.iter().map(|&name| (name, integers)).collect(),
            ..Self::default()
        }
    }

    fn with_outputs(outputs: &[(&'static str, bool)]) -> Self {
        Self {
            outputs: outputs.to_vec(),
            ..Self::default()
        }
    }

    /// The graph of an ONNX file.
    fn graph(&self) -> GraphProto {
        let length = i64::try_from(self.rows.len() / ROWS.len()).unwrap();
        let mut nodes = vec![node("Gather", &["rows", self.inputs[0].0], "hidden", vec![])];
        let mut hidden = "hidden";
        if self.inputs.iter().any(|(name, _)| *name == "attention_mask") {
            let float = ints("to", AttributeType::Int, &[DataType::Float as i64]);
            nodes.push(node("Cast", &["attention_mask"], "mask", vec![float]));
            nodes.push(node("Unsqueeze", &["mask", "last"], "column", vec![]));
            nodes.push(node("Mul", &["hidden", "column"], "masked", vec![]));
            hidden = "masked";
        }
        if self.inputs.iter().any(|(name, _)| *name == "token_type_ids") {
            nodes.push(node("Gather", &["types", "token_type_ids"], "typed", vec![]));
            nodes.push(node("Add", &[hidden, "typed"], "both", vec![]));
            hidden = "both";
        }
        for &(name, is_pooled) in &self.outputs {
            let attributes = vec![
                ints("axes", AttributeType::Ints, &[1]),
                ints("keepdims", AttributeType::Int, &[0]),
            ];
            nodes.push(if is_pooled {
                node("ReduceMax", &[hidden], name, attributes)
            } else {
                node("Identity", &[hidden], name, vec![])
            });
        }
        let tokens = || vec![dimension("batch"), dimension("sequence")];
        GraphProto {
            name: "encoder".to_owned(),
            node: nodes,
            initializer: vec![
                floats("rows", &[4, length], &self.rows),
                floats(
                    "types",
                    &[2, length],
                    &vec![0.0; 2 * usize::try_from(length).unwrap()],
                ),
                TensorProto {
                    name: "last".to_owned(),
                    dims: vec![1],
                    data_type: DataType::Int64 as i32,
                    int64_data: vec![2],
                    ..TensorProto::default()
                },
            ],
            input: self
                .inputs
                .iter()
                .map(|&(name, integers)| value(name, integers, tokens()))
                .collect(),
            output: self
                .outputs
                .iter()
                .map(|&(name, _)| value(name, DataType::Float, vec![]))
                .collect(),
            ..GraphProto::default()
        }
    }

    fn onnx(&self) -> Vec<u8> {
        file(self.graph())
    }
}

fn file(graph: GraphProto) -> Vec<u8> {
    let opset = OperatorSetIdProto {
        domain: String::new(),
        version: 13,
    };
    let model = ModelProto {
        ir_version: 8,
        opset_import: vec![opset],
        graph: Some(graph),
        ..ModelProto::default()
    };
    model.encode_to_vec()
}

fn node(op: &str, inputs: &[&str], output: &str, attribute: Vec<AttributeProto>) -> NodeProto {
    NodeProto {
        op_type: op.to_owned(),
        input: inputs.iter().map(|&input| input.to_owned()).collect(),
        output: vec![output.to_owned()],
        attribute,
        ..NodeProto::default()
    }
}

fn ints(name: &str, kind: AttributeType, values: &[i64]) -> AttributeProto {
    AttributeProto {
        name: name.to_owned(),
        r#type: kind as i32,
        i: values[0],
        ints: values.to_vec(),
        ..AttributeProto::default()
    }
}

fn floats(name: &str, dims: &[i64], values: &[f32]) -> TensorProto {
    TensorProto {
        name: name.to_owned(),
        dims: dims.to_vec(),
        data_type: DataType::Float as i32,
        float_data: values.to_vec(),
        ..TensorProto::default()
    }
}

fn dimension(name: &str) -> tensor_shape_proto::Dimension {
    tensor_shape_proto::Dimension {
        value: Some(tensor_shape_proto::dimension::Value::DimParam(name.to_owned())),
        ..tensor_shape_proto::Dimension::default()
    }
}

fn value(name: &str, kind: DataType, dim: Vec<tensor_shape_proto::Dimension>) -> ValueInfoProto {
    let tensor = type_proto::Tensor {
        elem_type: kind as i32,
        shape: (!dim.is_empty()).then_some(TensorShapeProto { dim }),
    };
    ValueInfoProto {
        name: name.to_owned(),
        r#type: Some(TypeProto {
            value: Some(type_proto::Value::TensorType(tensor)),
            ..TypeProto::default()
        }),
        ..ValueInfoProto::default()
    }
}

fn directory(tokenizer: &[u8], model: &[u8]) -> TempDir {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join(TOKENIZER), tokenizer).unwrap();
    fs::write(directory.path().join(MODEL), model).unwrap();
    directory
}

fn read(tokenizer: &[u8], model: &[u8]) -> Result<Encoder, String> {
    Encoder::read(directory(tokenizer, model).path()).map_err(|error| error.to_string())
}

fn words() -> Vec<u8> {
    tokenizer(&WORDS, &serde_json::Value::Null)
}

/// These numbers as a vector of length 1 has them.
fn rounded_to(numbers: [f32; 2]) -> Vec<f32> {
    let length = numbers[0].hypot(numbers[1]);
    let rounded = numbers.map(|number| (number / length * STEPS).round() / STEPS);
    rounded.to_vec()
}

#[test]
fn a_phrase_has_the_mean_of_what_the_network_gives_its_tokens_brought_to_length_1() {
    for integers in [DataType::Int64, DataType::Int32] {
        for inputs in [
            &["input_ids"][..],
            &["input_ids", "attention_mask"],
            &["input_ids", "token_type_ids", "attention_mask"],
        ] {
            let network = Network::with_inputs(inputs, integers);
            let encoder = read(&words(), &network.onnx()).unwrap();
            assert!(format!("{encoder:?}").contains("dimensions: 2"), "{encoder:?}");
            // [CLS], pay and fee; no padding.
            assert_eq!(
                encoder.vector("pay fee"),
                Some(rounded_to([5.0, -2.0])),
                "{inputs:?}"
            );
            assert_eq!(
                encoder.vector("pay rent"),
                Some(rounded_to([2.0, 3.0])),
                "an unknown word has a row"
            );
            assert_eq!(encoder.vector(""), None, "nothing is known of it");
            assert_eq!(encoder.of_learned("pay"), Some(rounded_to([2.0, 2.0])));
        }
    }
}

#[test]
fn a_network_that_pools_itself_is_taken_at_its_word() {
    for outputs in [
        &[("sentence_embedding", true)][..],
        &[("token_embeddings", false), ("sentence_embedding", true)],
    ] {
        let encoder = read(&words(), &Network::with_outputs(outputs).onnx()).unwrap();
        assert_eq!(
            encoder.vector("pay fee"),
            Some(rounded_to([3.0, 2.0])),
            "{outputs:?}"
        );
    }
    for outputs in [
        &[("token_embeddings", false)][..],
        &[("last_hidden_state", false), ("pooler_output", true)],
    ] {
        let encoder = read(&words(), &Network::with_outputs(outputs).onnx()).unwrap();
        assert_eq!(
            encoder.vector("pay fee"),
            Some(rounded_to([5.0, -2.0])),
            "{outputs:?}"
        );
    }
}

#[test]
fn equal_files_have_one_hash_and_equal_vectors() {
    let model = Network::default().onnx();
    let (one, other) = (read(&words(), &model).unwrap(), read(&words(), &model).unwrap());
    let expected = files::hash(&[[model.clone(), words()].concat().as_slice()]);
    assert_eq!((one.hash(), expected.len()), (&*expected, 64));
    assert_eq!(one.hash(), other.hash());
    for phrase in ["pay", "fee fee pay", "nothing of it"] {
        let vector = one.vector(phrase);
        assert_eq!(vector, other.vector(phrase));
        assert_eq!(vector, one.vector(phrase), "kept");
        assert_eq!(vector, one.of_learned(phrase));
    }
    let mut rows = ROWS;
    rows[1][0] = 1.5;
    let others = Network {
        rows: rows.as_flattened().to_vec(),
        ..Network::default()
    };
    assert_ne!(read(&words(), &others.onnx()).unwrap().hash(), expected);
    let spaced = [words(), b" ".to_vec()].concat();
    assert_ne!(read(&spaced, &model).unwrap().hash(), expected);
}

#[test]
fn of_a_long_text_the_first_tokens_count() {
    let model = Network::default().onnx();
    let truncation = |most: usize| serde_json::json!({"max_length": most, "strategy": "LongestFirst", "stride": 0, "direction": "Right"});
    let text = format!("pay {}", "fee ".repeat(2_000));
    for (truncation, tokens) in [
        (serde_json::Value::Null, MAX_TOKENS),
        (truncation(100_000), MAX_TOKENS),
        (truncation(3), 3),
    ] {
        let encoder = read(&tokenizer(&WORDS, &truncation), &model).unwrap();
        let cut = format!("pay {}", "fee ".repeat(tokens - 2));
        assert_eq!(encoder.encode(&text), encoder.encode(&cut), "{tokens}");
        assert_ne!(encoder.encode(&text), encoder.encode("pay"), "{tokens}");
    }
}

#[test]
fn what_can_not_be_run_is_refused_before_a_phrase_needs_it() {
    let good = Network::default();
    let edited = |edit: fn(&mut GraphProto)| {
        let mut graph = good.graph();
        edit(&mut graph);
        file(graph)
    };
    let wide = Network {
        rows: vec![1.0; 4 * (MAX_DIMENSIONS + 1)],
        ..Network::default()
    };
    let flat = Network {
        rows: vec![0.0; 8],
        ..Network::default()
    };
    for (model, reason) in [
        (b"no model".to_vec(), "model.onnx: "),
        (Vec::new(), "model.onnx: "),
        (
            Network::with_inputs(&["input_ids", "position_ids"], DataType::Int64).onnx(),
            "it takes `position_ids`",
        ),
        (
            Network::with_inputs(&["attention_mask", "token_type_ids"], DataType::Int64).onnx(),
            "it does not take `input_ids`",
        ),
        (
            Network::with_inputs(&["input_ids"], DataType::Float).onnx(),
            "`input_ids` is F32",
        ),
        (
            Network::with_outputs(&[("logits", false)]).onnx(),
            "it gives [\"logits\"]: sentence_embedding or last_hidden_state or token_embeddings is needed",
        ),
        (wide.onnx(), "vectors have 1025 numbers, may have 1024"),
        (flat.onnx(), "has no length"),
        (
            edited(|graph| graph.node[1].op_type = "Unheard".to_owned()),
            "Unheard",
        ),
        (
            edited(|graph| graph.node[1].op_type = "NonZero".to_owned()),
            "model.onnx: ",
        ),
        (edited(|graph| graph.node.truncate(2)), "model.onnx: "),
        (
            edited(|graph| {
                graph.initializer[0].data_location = Some(1);
                graph.initializer[0].float_data.clear();
            }),
            "external data",
        ),
    ] {
        let refused = read(&words(), &model).unwrap_err();
        assert!(
            refused.contains("not a sentence encoder that can be run"),
            "{refused}"
        );
        assert!(refused.contains(reason), "{refused}");
        assert!(refused.len() < 1_000, "{refused}");
    }
    let beyond = [("pay", 1), ("fee", 4), ("[CLS]", 3)];
    for (tokenizer, reason) in [
        (b"nothing".to_vec(), "tokenizer.json: "),
        (tokenizer(&beyond, &serde_json::Value::Null), "it can't be run"),
    ] {
        let refused = read(&tokenizer, &good.onnx()).unwrap_err();
        assert!(refused.contains(reason), "{refused}");
    }
    let nowhere = Encoder::read(Path::new("/nowhere")).unwrap_err().to_string();
    assert!(nowhere.contains("/nowhere/model.onnx"), "{nowhere}");
}
