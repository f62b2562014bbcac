//! The neural network of an encoder: what it takes, what it gives, running it.

use std::sync::Arc;

use tract_onnx::{
    prelude::{
        DatumType, Fact as _, Framework as _, InferenceFact, InferenceModel, InferenceModelExt as _,
        IntoArcTensor as _, IntoRunnable as _, IntoTValue, OutletId, SpecialOps as _, TDim, TVec, Tensor,
        TractError, TractResult, TypedModel, TypedRunnableModel, tvec,
    },
    tract_core::model::TypedModelPatch,
};

/// What a network gives of a phrase, the one that is taken first: a vector, or one for each token.
const OUTPUTS: [&str; 3] = ["sentence_embedding", "last_hidden_state", "token_embeddings"];

/// A phrase in numbers, of each token one.
pub(super) struct Tokens {
    pub(super) ids: Vec<i64>,
    pub(super) types: Vec<i64>,
}

/// What a network takes of a phrase.
#[derive(Debug, Clone, Copy)]
enum Input {
    Ids,
    Mask,
    Types,
}

/// A network that can be run.
pub(super) struct Graph {
    network: Arc<TypedRunnableModel>,
    /// In the network's order, each as the integers that it takes.
    inputs: Vec<(Input, DatumType)>,
}

impl Graph {
    /// Reads the bytes of an ONNX file.
    pub(super) fn read(mut onnx: &[u8]) -> Result<Self, String> {
        let mut model = tract_onnx::onnx()
            // Shapes that an export says of what is between: they name a batch's size, which is 1 here.
            .with_ignore_value_info(true)
            .model_for_read(&mut onnx)
            .map_err(|error| format!("{error:#}"))?;
        let inputs = inputs(&model)?;
        take_output(&mut model)?;
        Self::of(model, inputs).map_err(|error| format!("{error:#}"))
    }

    fn of(mut model: InferenceModel, inputs: Vec<(Input, DatumType)>) -> TractResult<Self> {
        let tokens = model.symbols.sym("tokens");
        for (at, &(_, integers)) in inputs.iter().enumerate() {
            let shape: [TDim; 2] = [1.into(), tokens.clone().into()];
            model.set_input_fact(at, InferenceFact::dt_shape(integers, shape))?;
        }
        let mut model = model.into_typed()?;
        fold(&mut model)?;
        Ok(Self {
            network: model.into_optimized()?.into_runnable()?,
            inputs,
        })
    }

    /// What the network makes of a phrase; of one vector for each token the mean.
    pub(super) fn run(&self, tokens: &Tokens) -> TractResult<Vec<f32>> {
        let count = tokens.ids.len();
        // One phrase at a time: no token is padding.
        let mask = vec![1; count];
        let mut inputs = tvec![];
        for &(input, integers) in &self.inputs {
            let numbers = match input {
                Input::Ids => &tokens.ids,
                Input::Mask => &mask,
                Input::Types => &tokens.types,
            };
            let numbers = Tensor::from_shape(&[1, count], numbers)?;
            inputs.push(numbers.cast_to_dt(integers)?.into_owned().into());
        }
        let outputs = self.network.run(inputs)?;
        let output = outputs[0].cast_to::<f32>()?;
        let plain = output.try_as_plain_ram()?;
        let numbers = plain.as_slice::<f32>()?;
        match *output.shape() {
            [1, _] => Ok(numbers.to_vec()),
            [1, rows, length] if rows == count && length > 0 => Ok(mean(numbers, length)),
            ref shape => {
                let expected = format!("[1, numbers] or [1, {count}, numbers]");
                let made = format!("of {count} tokens it makes {shape:?}, not {expected}");
                Err(TractError::msg(made))
            }
        }
    }
}

/// Computes what follows from the file alone. tract does not where that is larger than what it is made of, as weights are that the
/// file has in a byte each: they would be made again for each phrase.
fn fold(model: &mut TypedModel) -> TractResult<()> {
    for id in model.eval_order()? {
        let node = model.node(id);
        let value = |outlet: &OutletId| {
            let fact = model.outlet_fact(*outlet).ok()?;
            fact.konst.clone().map(IntoTValue::into_tvalue)
        };
        let Some(inputs) = node.inputs.iter().map(value).collect::<Option<TVec<_>>>() else {
            continue;
        };
        if inputs.is_empty() || node.outputs.len() != 1 {
            continue;
        }
        if let Ok(Some(made)) = node.op.eval_out_of_plan(inputs)
            && let Some(made) = made.into_iter().next()
        {
            let mut patch = TypedModelPatch::default();
            let constant = patch.add_const(format!("{}.folded", node.name), made.into_arc_tensor())?;
            patch.shunt_outside(model, id.into(), constant)?;
            patch.apply(model)?;
        }
    }
    Ok(())
}

/// The mean of rows of this length.
fn mean(rows: &[f32], length: usize) -> Vec<f32> {
    let mut mean = vec![0.0; length];
    let mut count = 0.0;
    for row in rows.chunks_exact(length) {
        count += 1.0;
        for (sum, value) in mean.iter_mut().zip(row) {
            *sum += value;
        }
    }
    for sum in &mut mean {
        *sum /= count;
    }
    mean
}

/// What each of the network's inputs is.
fn inputs(model: &InferenceModel) -> Result<Vec<(Input, DatumType)>, String> {
    let mut inputs = Vec::new();
    for (at, outlet) in model.inputs.iter().enumerate() {
        let name = &*model.nodes[outlet.node].name;
        let input = match name {
            "input_ids" => Input::Ids,
            "attention_mask" => Input::Mask,
            "token_type_ids" => Input::Types,
            _ => {
                return Err(format!(
                    "it takes `{name}`: only input_ids, attention_mask and token_type_ids are given"
                ));
            }
        };
        let fact = model.input_fact(at).map_err(|error| format!("{error:#}"))?;
        let integers = fact.datum_type().unwrap_or(DatumType::I64);
        if !matches!(integers, DatumType::I64 | DatumType::I32) {
            return Err(format!("`{name}` is {integers:?}: int64 or int32 is given"));
        }
        inputs.push((input, integers));
    }
    if inputs.iter().any(|(input, _)| matches!(input, Input::Ids)) {
        Ok(inputs)
    } else {
        Err("it does not take `input_ids`".to_owned())
    }
}

/// Has the network compute the first of [`OUTPUTS`] that it has, and nothing else.
fn take_output(model: &mut InferenceModel) -> Result<(), String> {
    let named = |name: &str| {
        let mut outlets = model.outputs.iter();
        outlets.find(|outlet| model.outlet_label(**outlet) == Some(name))
    };
    let Some(&outlet) = OUTPUTS.iter().find_map(|name| named(name)) else {
        let labels = model
            .outputs
            .iter()
            .filter_map(|outlet| model.outlet_label(*outlet));
        let given: Vec<&str> = labels.collect();
        return Err(format!("it gives {given:?}: {} is needed", OUTPUTS.join(" or ")));
    };
    model
        .select_output_outlets(&[outlet])
        .map_err(|error| format!("{error:#}"))
}
