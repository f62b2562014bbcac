//! Reads an import: a header, then rows, each parsed as it arrives.
//!
//! The rows of an all-or-nothing import wait in memory until the last has arrived: only then is it known whether all are
//! valid. Where bad rows are skipped they are written part by part as they arrive, however many there are. [`Slots`] bounds
//! the number of concurrent imports and the memory of each, [`IDLE`] how long a silent sender keeps its slot. Because an import takes time, the sender's rights
//! are checked with each message and again before each part is committed.

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use emend_base::Error;
use emend_core::{Caller, FieldViolation, Namespace, OperationId, Proposal, Refusal, Violations};
use emend_proto::learning::v1::{self as pb, import_resources_request::Message};
use emend_serve::auth::Access;
use emend_wire::parse as wire;
use futures::{Stream, StreamExt as _};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use tonic::Status;

use crate::{
    failure::{refused, subject},
    resources::{
        grpc::parse,
        import::{Import, ImportAs, Imported, Imports, Mode, PART, Row, RowError, Said, Settled},
    },
    roles,
};

/// Rows in one message at most.
const ROWS_PER_MESSAGE: usize = 1_000;
/// The estimated bytes a row takes besides its texts.
const ROW_BYTES: usize = 320;
/// Errors of bad rows reported at most.
const ERRORS: usize = 1_000;
/// Errors of bad rows a refusal names: a status travels in HTTP/2 headers, which clients bound at 8 to 16 KiB.
const ERRORS_IN_STATUS: usize = 20;

/// Imports at once in one process.
const IMPORTS: usize = 2;
/// When a refused import may be worth repeating.
const RETRY_AFTER: Duration = Duration::from_secs(10);
/// How long the sender of an import may be silent.
const IDLE: Duration = Duration::from_mins(1);

/// Bounds how many imports one process takes at once, and the memory of each. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Slots {
    free: Arc<Semaphore>,
    /// The estimated bytes the rows of one import may take.
    bytes: usize,
}

impl Slots {
    /// For imports of at most this many bytes each.
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(IMPORTS)),
            bytes,
        }
    }

    /// Takes a slot, held until dropped.
    fn take(&self) -> Result<OwnedSemaphorePermit, Error> {
        Arc::clone(&self.free)
            .try_acquire_owned()
            .map_err(|_| Error::ResourceExhausted {
                reason: "IMPORTS_BUSY",
                message: format!(
                    "{IMPORTS} imports are already in progress on this replica, which is the maximum"
                ),
                retry_after: Some(RETRY_AFTER),
            })
    }
}

/// What has been read so far.
struct Upload {
    namespace: Namespace,
    mode: Mode,
    /// The rows that are yet to be imported, and the bytes that they are estimated to take.
    rows: Vec<Row>,
    bytes: usize,
    max_bytes: usize,
    /// What rows that are no longer in memory said.
    said: Said,
    rejected: u64,
    errors: Vec<RowError>,
}

/// Whether the sender currently has the rights the import needs.
fn admit(access: &Access, header: &pb::ImportHeader, for_users: bool) -> Result<(), Error> {
    let now = access.as_of_now()?;
    roles::admit(&now, header)?;
    if for_users {
        now.speaks_for_users(&header.namespace)?;
    }
    Ok(())
}

/// Reads and runs an import.
pub(crate) async fn run(
    imports: &Imports,
    slots: &Slots,
    (caller, access): (&Caller, &Access),
    messages: impl Stream<Item = Result<pb::ImportResourcesRequest, Status>>,
) -> Result<pb::ImportResourcesResponse, Error> {
    let _slot = slots.take()?;
    let mut messages = std::pin::pin!(messages);
    let operation = imports.new_operation();
    let Some(Message::Header(header)) = next(&mut messages, Mode::AllOrNothing)
        .await?
        .and_then(|first| first.message)
    else {
        return Err(Error::invalid("header", "is required in the first message"));
    };
    admit(access, &header, false)?;
    let import = self::header(caller, &header, operation)?;
    let mut upload = Upload::new(&import, slots.bytes);
    // Whether some rows so far are one user's own.
    let for_users = AtomicBool::new(false);
    let may = || admit(access, &header, for_users.load(Ordering::Relaxed));
    let may_take = |rows: &pb::ImportRows| {
        if rows.rows.iter().any(|row| !row.user_id.is_empty()) {
            for_users.store(true, Ordering::Relaxed);
        }
        may()
    };
    let mut rows = upload.read(&mut messages, &may_take).await?;
    if header.validate_only {
        while !rows.is_empty() {
            upload.settle(rows);
            rows = upload.read(&mut messages, &may_take).await?;
        }
        return Ok(upload.response(&import, Imported::default()));
    }
    let imported = match import.mode {
        Mode::AllOrNothing => {
            let settled = upload.settle(rows);
            if upload.rejected > 0 {
                return Err(upload.refusal());
            }
            imports.import(&import, settled, &may).await?
        }
        Mode::SkipInvalid => {
            let mut imported = Imported::default();
            while !rows.is_empty() {
                let settled = upload.settle(rows);
                // The next part is read while this one is written.
                let (done, next) = futures::join!(
                    imports.import_part(&import, settled, &may),
                    upload.read(&mut messages, &may_take)
                );
                imported.add(done?);
                upload.report(std::mem::take(&mut imported.refused));
                rows = next?;
            }
            imports.publish(imported.last).await;
            imported
        }
    };
    Ok(upload.response(&import, imported))
}

/// What of an import is in place if it ends early, and what to do.
const fn so_far(mode: Mode) -> &'static str {
    match mode {
        Mode::AllOrNothing => "so nothing was imported: send the import again",
        Mode::SkipInvalid => {
            "so later rows are not imported: send the import again, what is in place already stays as it is"
        }
    }
}

/// The next message; none at the end.
async fn next(
    messages: &mut (impl Stream<Item = Result<pb::ImportResourcesRequest, Status>> + Unpin),
    mode: Mode,
) -> Result<Option<pb::ImportResourcesRequest>, Error> {
    match timeout(IDLE, messages.next()).await {
        Ok(message) => message.transpose().map_err(|status| broken(&status, mode)),
        Err(_) => Err(Error::Aborted {
            reason: "IMPORT_STALLED",
            message: format!("no message arrived for {} s, {}", IDLE.as_secs(), so_far(mode)),
        }),
    }
}

/// The client cancelled, exceeded a limit or sent an unreadable message; or the service is stopping.
fn broken(status: &Status, mode: Mode) -> Error {
    match status.code() {
        tonic::Code::Cancelled => Error::Cancelled,
        tonic::Code::Unavailable => Error::unavailable(
            "STOPPING",
            format!(
                "the service is stopping and the import is incomplete, {}",
                so_far(mode)
            ),
        ),
        tonic::Code::ResourceExhausted => Error::ResourceExhausted {
            reason: "TOO_MANY_BYTES",
            message: status.message().to_owned(),
            retry_after: Some(RETRY_AFTER),
        },
        tonic::Code::OutOfRange => Error::OutOfRange {
            reason: "REQUEST_TOO_LARGE",
            message: status.message().to_owned(),
        },
        _ => Error::invalid("message", format!("can't be read: {}", status.message())),
    }
}

fn header(caller: &Caller, header: &pb::ImportHeader, operation: OperationId) -> Result<Import, Violations> {
    let mut within = Violations::new();
    let namespace = parse::namespace(&mut within, &header.namespace);
    let mode = match pb::ImportMode::try_from(header.mode) {
        Ok(pb::ImportMode::Unspecified | pb::ImportMode::AllOrNothing) => Some(Mode::AllOrNothing),
        Ok(pb::ImportMode::SkipInvalid) => Some(Mode::SkipInvalid),
        Err(_) => {
            within.add("mode", format!("is not a known import mode: {}", header.mode));
            None
        }
    };
    let import_as = match pb::ImportAs::try_from(header.import_as) {
        Ok(pb::ImportAs::Unspecified | pb::ImportAs::Decision) => Some(ImportAs::Decision),
        Ok(pb::ImportAs::Votes) => Some(ImportAs::Votes),
        Err(_) => {
            within.add(
                "import_as",
                format!("is not a known import_as: {}", header.import_as),
            );
            None
        }
    };
    let reason = parse::reason(&mut within, &header.reason);
    let actor = parse::actor(&mut within, caller, &header.on_behalf_of);
    let parsed = (|| {
        Some(Import {
            namespace: namespace?,
            mode: mode?,
            import_as: import_as?,
            reason: reason?,
            actor: actor?,
            operation,
        })
    })();
    let mut violations = Violations::new();
    violations.nest("header", within);
    violations.finish(parsed)
}

impl Upload {
    fn new(import: &Import, max_bytes: usize) -> Self {
        Self {
            namespace: import.namespace.clone(),
            mode: import.mode,
            rows: Vec::new(),
            bytes: 0,
            max_bytes,
            said: Said::new(max_bytes / 8),
            rejected: 0,
            errors: Vec::new(),
        }
    }

    /// Reads rows: all of an all-or-nothing import, otherwise the next part; none at the end.
    async fn read(
        &mut self,
        messages: &mut (impl Stream<Item = Result<pb::ImportResourcesRequest, Status>> + Unpin),
        may_take: &(impl Fn(&pb::ImportRows) -> Result<(), Error> + Sync),
    ) -> Result<Vec<Row>, Error> {
        while !self.is_part()
            && let Some(message) = next(messages, self.mode).await?
        {
            match message.message {
                Some(Message::Rows(rows)) => {
                    may_take(&rows)?;
                    self.take(&rows.rows)?;
                }
                Some(Message::Header(_)) => {
                    return Err(Error::invalid("header", "must be in the first message only"));
                }
                None => return Err(Error::invalid("message", "is required: rows")),
            }
        }
        self.bytes = 0;
        Ok(std::mem::take(&mut self.rows))
    }

    /// Whether what has been read is to be imported before anything else is read. Two parts are in memory at once, which take
    /// a quarter of what an import may take; the rest is for what is kept of each key.
    fn is_part(&self) -> bool {
        self.mode == Mode::SkipInvalid && (self.rows.len() >= PART || self.bytes >= self.max_bytes / 8)
    }

    fn take(&mut self, rows: &[pb::ImportRow]) -> Result<(), Error> {
        if rows.is_empty() || rows.len() > ROWS_PER_MESSAGE {
            let found = rows.len();
            return Err(Error::invalid(
                "rows.rows",
                format!("must have 1 to {ROWS_PER_MESSAGE} entries in one message, has {found}"),
            ));
        }
        for row in rows {
            match self.proposals(row) {
                Ok(proposals) => {
                    let line = row.line;
                    for proposal in proposals {
                        if proposal.rating.is_some() {
                            return Err(refused(&Refusal::Window, &subject(&proposal.key)));
                        }
                        self.bytes += ROW_BYTES
                            + proposal.key.key.as_str().len()
                            + 2 * proposal.key.qualifier.len()
                            + proposal.key.user_id().len()
                            + proposal.value.display.len()
                            + proposal.value.learned.maps_to().len();
                        self.rows.push(Row { line, proposal });
                    }
                }
                Err(violations) => {
                    self.rejected += 1;
                    for FieldViolation { field, description } in violations.into_vec() {
                        if self.errors.len() < ERRORS {
                            self.errors.push(RowError {
                                line: row.line,
                                field,
                                description,
                            });
                        }
                    }
                }
            }
        }
        let most = self.max_bytes / 1024 / 1024;
        let message = if self.mode == Mode::AllOrNothing && self.bytes > self.max_bytes {
            format!(
                "the rows of an all-or-nothing import may take at most {most} MiB of memory: split the import, or skip \
                 invalid rows, of which less is held"
            )
        } else if self.said.bytes() > self.max_bytes / 4 * 3 {
            format!(
                "what is kept of each key, to find rows that disagree, may take at most three quarters of {most} MiB of \
                 memory: split the import; what is in place already stays as it is"
            )
        } else {
            return Ok(());
        };
        Err(Error::ResourceExhausted {
            reason: "IMPORT_TOO_LARGE",
            message,
            retry_after: None,
        })
    }

    /// The rows to write: one for each key of the import. Those that disagree with them are bad.
    fn settle(&mut self, rows: Vec<Row>) -> Settled {
        let mut settled = self.said.settle(rows);
        self.report(std::mem::take(&mut settled.disagreeing));
        settled
    }

    /// What a row proposes: each effect of its correction.
    fn proposals(&self, row: &pb::ImportRow) -> Result<Vec<Proposal>, Violations> {
        let mut violations = Violations::new();
        if row.line < 1 {
            violations.add("line", format!("must be 1 or more, is {}", row.line));
        }
        let correction = wire::new_correction(row.correction.as_ref(), &[]);
        let correction = violations.part("correction", correction.map_err(|refused| refused.violations));
        if let Some(correction) = &correction {
            let form = correction.form();
            if !row.user_id.is_empty() && !form.may_be_for_a_user() {
                violations.add(
                    "user_id",
                    format!("must be empty with {}: it is decided for everybody", form.name()),
                );
            }
        }
        let user = violations.check("user_id", parse::user(&row.user_id));
        let proposals = correction
            .zip(user)
            .map(|(correction, user)| correction.effects(&self.namespace, user.as_ref()));
        violations.finish(proposals)
    }

    /// The refusal of an all-or-nothing import with bad rows.
    fn refusal(&self) -> Error {
        let mut violations: Vec<FieldViolation> = self
            .errors
            .iter()
            .take(ERRORS_IN_STATUS)
            .map(|error| FieldViolation {
                field: format!("rows[line {}].{}", error.line, error.field),
                description: error.description.clone(),
            })
            .collect();
        if self.errors.len() > ERRORS_IN_STATUS {
            violations.push(FieldViolation {
                field: "rows".to_owned(),
                description: format!(
                    "{} rows are invalid; SKIP_INVALID imports the others and reports up to {ERRORS}",
                    self.rejected
                ),
            });
        }
        Error::InvalidArgument(violations)
    }

    /// Counts rows that were refused, and keeps as many as are reported.
    fn report(&mut self, refused: Vec<RowError>) {
        self.rejected += refused.len() as u64;
        self.errors.extend(refused);
        self.errors.sort_by_key(|error| error.line);
        self.errors.truncate(ERRORS);
    }

    fn response(mut self, import: &Import, imported: Imported) -> pb::ImportResourcesResponse {
        self.report(imported.refused);
        let errors = self.errors;
        let errors = errors.into_iter().map(|error| pb::ImportError {
            line: error.line,
            field: error.field,
            description: error.description,
        });
        let count = emend_wire::render::saturated;
        pb::ImportResourcesResponse {
            operation_id: import.operation.to_string(),
            applied_count: count(imported.applied),
            unchanged_count: count(imported.unchanged),
            rejected_count: count(self.rejected),
            first_revision: imported.first.0,
            last_revision: imported.last.0,
            errors: errors.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use emend_proto::common::v1::{Correction, PhraseMapping, correction};
    use tonic::Code;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_import_whose_sender_is_silent_is_ended() {
        let mut silent = std::pin::pin!(futures::stream::pending());
        let stalled = timeout(2 * IDLE, next(&mut silent, Mode::AllOrNothing))
            .await
            .unwrap()
            .unwrap_err();
        assert_eq!(
            (stalled.code(), stalled.reason()),
            (Code::Aborted, "IMPORT_STALLED")
        );
    }

    #[test]
    fn an_all_or_nothing_import_above_the_byte_limit_is_refused() {
        let upload = |mode| Upload {
            namespace: Namespace::parse("default").unwrap(),
            mode,
            rows: Vec::new(),
            bytes: 0,
            max_bytes: 3 * (ROW_BYTES + 100),
            said: Said::new(0),
            rejected: 0,
            errors: Vec::new(),
        };
        let row = |line| pb::ImportRow {
            line,
            correction: Some(Correction {
                correction: Some(correction::Correction::PhraseMapping(PhraseMapping {
                    phrase: format!("phrase {line}"),
                    verb: "create_csa".to_owned(),
                })),
            }),
            ..Default::default()
        };
        let (mut upload, mut skipping) = (upload(Mode::AllOrNothing), upload(Mode::SkipInvalid));
        for line in 1..=3 {
            upload.take(&[row(line)]).unwrap();
            skipping.take(&[row(line)]).unwrap();
        }
        assert!(
            skipping.is_part(),
            "what skips invalid rows is imported part by part"
        );
        skipping.take(&[row(4)]).unwrap();
        let refused = upload.take(&[row(4)]).unwrap_err();
        assert_eq!(
            (refused.code(), refused.reason()),
            (Code::ResourceExhausted, "IMPORT_TOO_LARGE")
        );
    }

    #[test]
    fn two_imports_may_run_at_once() {
        let slots = Slots::new(1 << 20);
        let (first, _second) = (slots.take().unwrap(), slots.clone().take().unwrap());
        let busy = slots.take().unwrap_err();
        assert_eq!(
            (busy.code(), busy.reason()),
            (Code::ResourceExhausted, "IMPORTS_BUSY")
        );
        assert!(matches!(
            busy,
            Error::ResourceExhausted {
                retry_after: Some(_),
                ..
            }
        ));
        drop(first);
        assert!(slots.take().is_ok());
    }
}
