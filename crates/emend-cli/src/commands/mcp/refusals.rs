//! Refusals as errors of the protocol: of resources, prompts and completion, which have no results that say why.

use emend_core::text::clean;
use rmcp::model::{ErrorCode, ErrorData};
use tonic::Code;

use crate::failure::Failure;

/// What a client gets in the place of a resource, a prompt or a completion. Details stand in `data`, as those of tools do in `error`.
#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
pub(super) fn error_data(failure: Failure) -> ErrorData {
    let code = match &failure {
        Failure::NotFound(_) => ErrorCode::RESOURCE_NOT_FOUND,
        Failure::Usage(_) => ErrorCode::INVALID_PARAMS,
        Failure::Refused(refused) => match refused.code {
            Code::NotFound => ErrorCode::RESOURCE_NOT_FOUND,
            Code::InvalidArgument => ErrorCode::INVALID_PARAMS,
            Code::PermissionDenied | Code::Unauthenticated => ErrorCode::INVALID_REQUEST,
            _ => ErrorCode::INTERNAL_ERROR,
        },
        _ => ErrorCode::INTERNAL_ERROR,
    };
    let mut data = failure.to_json()["error"].take();
    let word = |name: &str| data[name].as_str().unwrap_or_default().to_owned();
    let (status, reason) = (word("code"), word("reason"));
    if code == ErrorCode::INTERNAL_ERROR {
        tracing::warn!(status, reason, "an assistant's read failed");
    } else {
        tracing::info!(status, reason, "an assistant's read was refused");
    }
    super::call::leave_out_hidden(&mut data);
    ErrorData::new(code, clean(&failure.to_string()).into_owned(), Some(data))
}
