//! The stream validator: checks what one subscriber received on the wire against the eleven guarantees of the update
//! stream, with the revision log as the truth.
//!
//! ```no_run
//! use emend_tests::{
//!     audit::stream::{Recorder, RevisionLog, Run, everything},
//!     harness::System,
//! };
//!
//! # async fn example() {
//! let system = System::sqlite().await;
//! let run = Run::new();
//! let recorder = Recorder::start(&run, system.learning[0].front.address(), everything("search-1"));
//! // … write, cut connections, kill services: it reconnects with its newest cursor and records on …
//! let log = RevisionLog::read(&system.stored()).await; // once nobody writes any more
//! let summary = recorder.audited(&log).await; // waits for the head, panics with every breach
//! println!("{summary}");
//! # }
//! ```
//!
//! * [`Run`] is a run's own time: one index that orders what several recorders and writers saw, never a clock.
//! * [`Recorder`] is a real subscriber over a real socket; [`Recording`] is what it received, message by message.
//! * [`RevisionLog`] is the log as the database holds it after the run, with former epochs if the run changed the
//!   epoch.
//! * [`validate()`] is pure: a recording and a log in, a [`Summary`] or every [`Violation`] out.
//!
//! # What is checked
//!
//! | | guarantee | a recording breaks it if |
//! |---|---|---|
//! | 1 | ordered | a range, a bookmark or a change lies below what was applied, or changes are out of order |
//! | 2 | unique | a key comes again with a revision that came before, or twice in one message |
//! | 3 | reliable | the newest state of a key that changed in (from, to] does not come or differs from the log's; a digest is not that of the envelopes received; a range leaves something out; the recording ends short of the head |
//! | 4 | atomic | some changes of a revision come without the others, or an update does not show the state at `to`, or something comes between its parts |
//! | 5 | resumable | a cursor is not one of the subscriber's position, a good one is not resumed from, a bad one is, or a snapshot gives a wrong reason |
//! | 6 | bookmarkable | something at or below a bookmark follows it |
//! | 7 | deletions | what was deleted while away is not deleted by the first update or bookmark after it, or is in a snapshot |
//! | 8 | private | a key or digest lies outside the filter |
//! | 9 | isolated | see below |
//! | 10 | non-blocking | see below |
//! | 11 | explicit | a stream begins neither with a resumption nor with a snapshot, or with a resumption without a cursor; a snapshot announced as empty is not |
//!
//! Guarantees 9 and 10 are about the server and other subscribers. A recording can show them only together with what
//! the run witnessed in the same time: [`Run::stall_begins`] and [`Run::stall_ends`] frame the period in which one
//! subscriber did not read; [`Run::committed`], [`Run::published`] and [`Run::resident`] tell what writers, readers and
//! the system saw. Every *other* recording must have reached the head that the stall ended with before it ended, and
//! the server's memory must have stayed within its bound (9); and that head must have been committed and published,
//! which is read from the published state itself, before the stall ended (10). If nothing was witnessed, neither is
//! checked: [`Summary::checked`] tells. That publishing waits for no subscriber *at all* is beyond any recording; the
//! evidence for that is the unit tests of the audiences and the module's structure.

mod content;
mod guarantee;
mod holding;
mod isolation;
mod log;
mod opening;
mod recorder;
mod recording;
mod update;
mod validate;

pub use guarantee::{Guarantee, Place, Summary, Violation};
pub use log::{Life, RevisionLog};
pub use recorder::{Habits, Recorder, everything};
pub use recording::{Connection, Ending, Moment, Received, Recording, Run, Witness, Witnessed, covers};
pub use validate::validate;
