//! Emend's wire contract: the code generated from `proto/`, the descriptor set for reflection, and the stream's
//! messages with values left encoded ([`wire`], [`frame`]), so that a server encodes each batch once and a node keeps
//! every value's bytes exactly as stored, even of kinds it does not know.

/// What a caller may do, answered by every server.
pub mod access {
    /// Version 1.
    #[expect(
        clippy::pedantic,
        clippy::allow_attributes,
        clippy::allow_attributes_without_reason,
        reason = "generated from documented protos"
    )]
    pub mod v1 {
        include!("generated/emend.access.v1.rs");
    }
}

/// Shared by the services: resources and corrections.
pub mod common {
    /// Version 1.
    #[expect(clippy::pedantic, reason = "generated from documented protos")]
    pub mod v1 {
        include!("generated/emend.common.v1.rs");
    }
}

/// The feedback service.
pub mod feedback {
    /// Version 1.
    #[expect(
        clippy::pedantic,
        clippy::allow_attributes,
        clippy::allow_attributes_without_reason,
        reason = "generated from documented protos"
    )]
    pub mod v1 {
        include!("generated/emend.feedback.v1.rs");
    }
}

/// The learning services.
pub mod learning {
    /// Version 1.
    #[expect(
        clippy::pedantic,
        clippy::allow_attributes,
        clippy::allow_attributes_without_reason,
        clippy::large_enum_variant,
        reason = "generated from documented protos"
    )]
    pub mod v1 {
        include!("generated/emend.learning.v1.rs");
    }
    /// Version 1 of the subscription service, streaming encoded [frames](crate::frame::Frame).
    #[expect(
        clippy::pedantic,
        clippy::allow_attributes,
        clippy::allow_attributes_without_reason,
        reason = "generated"
    )]
    pub mod encoded {
        include!("generated/emend.learning.v1.SubscriptionService.rs");
    }
}

/// What an edge answers.
pub mod edge {
    /// The encoded `google.protobuf.FileDescriptorSet` of its protos, for server reflection.
    pub const DESCRIPTOR_SET: &[u8] = include_bytes!("generated/edge_descriptors.bin");

    /// Version 1.
    #[expect(
        clippy::pedantic,
        clippy::allow_attributes,
        clippy::allow_attributes_without_reason,
        reason = "generated from documented protos"
    )]
    pub mod v1 {
        include!("generated/emend.edge.v1.rs");
    }
}

/// What a search node offers to those who compare its results.
pub mod search {
    /// Version 1.
    #[expect(
        clippy::pedantic,
        clippy::allow_attributes,
        clippy::allow_attributes_without_reason,
        reason = "generated from documented protos"
    )]
    pub mod v1 {
        include!("generated/emend.search.v1.rs");
    }
}

pub mod codec;
pub mod frame;
mod shape;
pub mod wire;

/// The encoded `google.protobuf.FileDescriptorSet` of the services' protos, for server reflection.
pub const DESCRIPTOR_SET: &[u8] = include_bytes!("generated/descriptors.bin");
