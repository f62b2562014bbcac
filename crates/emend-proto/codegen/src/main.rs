//! Generates the code of `emend-proto`, and the classes of the Python package, from the protos, without `protoc`: protox → descriptor set → tonic and prost code.
//!
//! `cargo xtask proto` runs it; `cargo xtask lint` runs it into a directory of its own and compares. So building Emend
//! needs none of these packages.

mod python;

use std::{env, fs, path::Path};

use anyhow::{Context as _, Result};
use prost::Message as _;
use tonic_prost_build::{Config, manual};

const PROTOS: &[&str] = &[
    "emend/access/v1/access_service.proto",
    "emend/common/v1/correction.proto",
    "emend/common/v1/resource.proto",
    "emend/feedback/v1/feedback_service.proto",
    "emend/feedback/v1/query.proto",
    "emend/feedback/v1/query_service.proto",
    "emend/feedback/v1/settings_service.proto",
    "emend/learning/v1/candidate_service.proto",
    "emend/learning/v1/evidence_service.proto",
    "emend/learning/v1/ingest_service.proto",
    "emend/learning/v1/output_service.proto",
    "emend/learning/v1/policy_service.proto",
    "emend/learning/v1/profile_service.proto",
    "emend/learning/v1/resource_service.proto",
    "emend/learning/v1/subscription_service.proto",
];

/// What search nodes offer, which Emend's own services do not serve: not in their descriptor set.
const SEARCH: &str = "emend/search/v1/search_service.proto";
/// What an edge offers, which has descriptors of its own.
const EDGE: &str = "emend/edge/v1/look_up_service.proto";

/// The codec that bounds what decoding may allocate.
const CODEC: &str = "crate::codec::BoundedCodec";

fn main() -> Result<()> {
    let mut arguments = env::args_os().skip(1);
    let (protos, out) = arguments
        .next()
        .zip(arguments.next())
        .context("usage: emend-proto-codegen PROTOS OUT PYTHON")?;
    let python = arguments.next();
    let python = python.context("usage: emend-proto-codegen PROTOS OUT PYTHON")?;
    generate(Path::new(&protos), Path::new(&out))?;
    fs::create_dir_all(&python)?;
    let mut all: Vec<&str> = PROTOS.to_vec();
    all.push(SEARCH);
    let descriptors = protox::compile(all, [&protos])?;
    python::generate(&descriptors, Path::new(&python))
}

fn generate(protos: &Path, out: &Path) -> Result<()> {
    fs::create_dir_all(out)?;
    // First, because what they import is written, too, and then once more below.
    for apart in [SEARCH, EDGE] {
        let descriptors = protox::compile([apart], [protos])?;
        if apart == EDGE {
            fs::write(out.join("edge_descriptors.bin"), descriptors.encode_to_vec())?;
        }
        let mut config = Config::new();
        config.enable_type_names();
        tonic_prost_build::configure()
            .codec_path(CODEC)
            .extern_path(".emend.common.v1", "crate::common::v1")
            .out_dir(out)
            .compile_fds_with_config(descriptors, config)?;
    }
    let descriptors = protox::compile(PROTOS, [protos])?;
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;

    let mut config = Config::new();
    // The codec needs the name of the message it decodes.
    config.enable_type_names();
    tonic_prost_build::configure()
        .codec_path(CODEC)
        .bytes(".emend.learning.v1.Digest.hash")
        // The largest value: apart, so that a list of resources holds little for each that has another.
        .boxed(".emend.common.v1.ResourceValue.value.search_tuning")
        .out_dir(out)
        .compile_fds_with_config(descriptors, config)?;
    manual::Builder::new()
        .out_dir(out)
        .compile(&[encoded_subscription_service()]);
    Ok(())
}

/// A second version of the subscription service, whose stream carries pre-encoded frames: a batch is encoded once for
/// all streams that receive it.
fn encoded_subscription_service() -> manual::Service {
    let unary = |name: &str, route: &str| {
        manual::Method::builder()
            .name(name)
            .route_name(route)
            .input_type(format!("crate::learning::v1::{route}Request"))
            .output_type(format!("crate::learning::v1::{route}Response"))
            .codec_path(CODEC)
            .build()
    };
    manual::Service::builder()
        .name("SubscriptionService")
        .package("emend.learning.v1")
        .method(
            manual::Method::builder()
                .name("subscribe")
                .route_name("Subscribe")
                .input_type("crate::learning::v1::SubscribeRequest")
                .output_type("crate::frame::Frame")
                .codec_path("crate::frame::FrameCodec")
                .server_streaming()
                .build(),
        )
        .method(unary("report_status", "ReportStatus"))
        .method(unary("list_nodes", "ListNodes"))
        .build()
}
