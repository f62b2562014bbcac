//! The erasure of a reporter on the wire.

use emend_core::{Namespace, ReporterId, Violations};
use emend_proto::feedback::v1 as pb;

use super::redact::Erased;

/// Whom to erase.
pub(crate) fn reporter(request: &pb::RedactReporterRequest) -> Result<(Namespace, ReporterId), Violations> {
    let mut violations = Violations::new();
    let namespace = violations.check("namespace", Namespace::parse(&request.namespace));
    let reporter = violations.check("reporter_id", ReporterId::parse(&request.reporter_id));
    violations.finish(namespace.zip(reporter))
}

/// How far it is.
pub(crate) fn erased(erased: Erased) -> pb::RedactReporterResponse {
    let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    pb::RedactReporterResponse {
        redacted_count: count(erased.redacted),
        remaining_count: count(erased.left.remaining),
        undelivered_count: count(erased.left.undelivered),
    }
}
