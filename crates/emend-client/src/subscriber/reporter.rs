//! When a node reports to the server what it has applied: at once after a rejection, otherwise at most once per
//! interval. The contents of a failed report go into the next one.

use std::{future::pending, time::Duration};

use futures::future::BoxFuture;
use jiff::SignedDuration;
use tokio::time::{Instant, sleep_until};
use tonic::Status;

use super::delays::{Delays, Effects};

/// What to report, and when.
pub(super) struct Reporter {
    interval: Duration,
    delays: Delays,
    effects: Effects,
    problem: Option<&'static str>,
    dirty: bool,
    urgent: bool,
    not_before: Instant,
    in_flight: Option<InFlight>,
}

struct InFlight {
    answer: BoxFuture<'static, Result<(), Status>>,
    contents: ReportContents,
}

/// What happened since the last report.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ReportContents {
    pub(super) delays: Delays,
    pub(super) effects: Effects,
    pub(super) problem: Option<&'static str>,
}

/// Why [`Reporter::tick`] returned.
#[derive(Debug)]
pub(super) enum ReporterWake {
    /// A report is due: build it from [`Reporter::take`] and hand it to [`Reporter::sending`].
    Due,
    /// The report was answered.
    Answered(Result<(), Status>),
}

impl Reporter {
    pub(super) fn new(interval: Duration) -> Self {
        Self {
            interval,
            delays: Delays::default(),
            effects: Effects::default(),
            problem: None,
            dirty: false,
            urgent: false,
            not_before: Instant::now(),
            in_flight: None,
        }
    }

    /// Notes that there is something to report once the interval is over.
    pub(super) fn note(&mut self) {
        self.dirty = true;
    }

    /// Notes the delay from a change's commit until it was applied.
    pub(super) fn note_delay(&mut self, delay: SignedDuration) {
        self.delays.add(delay);
        self.dirty = true;
    }

    /// Notes the delay from the receipt of a change's feedback until the change was applied.
    pub(super) fn note_effect(&mut self, delay: SignedDuration, traceparent: &str) {
        self.effects.add(delay, traceparent);
        self.dirty = true;
    }

    /// Notes that something was rejected, to be reported at once.
    pub(super) fn note_rejection(&mut self) {
        self.urgent = true;
    }

    /// Notes a problem, in `UPPER_SNAKE_CASE`, to be reported at once.
    pub(super) fn note_problem(&mut self, problem: &'static str) {
        self.problem = Some(problem);
        self.urgent = true;
    }

    /// Whether a problem is still to be reported, or is being reported.
    pub(super) fn has_problem(&self) -> bool {
        let in_flight = self.in_flight.as_ref();
        self.problem.is_some() || in_flight.is_some_and(|in_flight| in_flight.contents.problem.is_some())
    }

    /// Waits until there is something to do. Cancel-safe.
    pub(super) async fn tick(&mut self) -> ReporterWake {
        if let Some(in_flight) = &mut self.in_flight {
            let answer = (&mut in_flight.answer).await;
            let contents = self.in_flight.take().map(|in_flight| in_flight.contents);
            if answer.is_err() {
                self.put_back(contents);
            }
            return ReporterWake::Answered(answer);
        }
        if self.urgent {
            return ReporterWake::Due;
        }
        if !self.dirty {
            return pending().await;
        }
        sleep_until(self.not_before).await;
        ReporterWake::Due
    }

    /// Takes the contents of the due report.
    pub(super) fn take(&mut self) -> ReportContents {
        self.dirty = false;
        self.urgent = false;
        self.not_before = Instant::now() + self.interval;
        ReportContents {
            delays: std::mem::take(&mut self.delays),
            effects: std::mem::take(&mut self.effects),
            problem: self.problem.take(),
        }
    }

    /// Notes that the report has been sent.
    pub(super) fn sending(
        &mut self,
        contents: ReportContents,
        answer: BoxFuture<'static, Result<(), Status>>,
    ) {
        self.in_flight = Some(InFlight { answer, contents });
    }

    /// Notes that the connection is lost, and with it a report in flight.
    pub(super) fn disconnected(&mut self) {
        let contents = self.in_flight.take().map(|in_flight| in_flight.contents);
        if contents.is_some() {
            self.put_back(contents);
        }
    }

    fn put_back(&mut self, contents: Option<ReportContents>) {
        let ReportContents {
            delays,
            effects,
            problem,
        } = contents.unwrap_or_default();
        self.delays.merge(&delays);
        self.effects.merge(effects);
        self.problem = self.problem.or(problem);
        // Not urgent: a report that was refused must not be sent again at once.
        self.dirty = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(10);

    async fn due(reporter: &mut Reporter) -> Duration {
        let start = Instant::now();
        assert!(matches!(reporter.tick().await, ReporterWake::Due));
        start.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_rejection_is_reported_before_the_interval_is_over() {
        let mut reporter = Reporter::new(INTERVAL);
        reporter.note();
        assert_eq!(due(&mut reporter).await, Duration::ZERO);
        reporter.take();
        reporter.note_delay(SignedDuration::from_millis(3));
        assert_eq!(due(&mut reporter).await, INTERVAL);
        reporter.take();
        reporter.note_rejection();
        assert_eq!(due(&mut reporter).await, Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn the_contents_of_a_failed_report_go_into_the_next_one() {
        let mut reporter = Reporter::new(INTERVAL);
        reporter.note_delay(SignedDuration::from_millis(3));
        let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        reporter.note_effect(SignedDuration::from_millis(8), traceparent);
        reporter.note_problem("DIGEST_MISMATCH");
        let contents = reporter.take();
        let refused = Box::pin(async { Err(Status::unavailable("down")) });
        reporter.sending(contents.clone(), refused);
        assert!(matches!(reporter.tick().await, ReporterWake::Answered(Err(_))));
        assert_eq!(due(&mut reporter).await, INTERVAL);
        assert_eq!(reporter.take(), contents);

        reporter.sending(contents.clone(), Box::pin(pending()));
        reporter.disconnected();
        assert_eq!(reporter.take(), contents);
    }

    #[tokio::test(start_paused = true)]
    async fn without_anything_new_no_report_is_due() {
        let mut reporter = Reporter::new(INTERVAL);
        reporter.sending(ReportContents::default(), Box::pin(async { Ok(()) }));
        assert!(matches!(reporter.tick().await, ReporterWake::Answered(Ok(()))));
        assert!(
            tokio::time::timeout(INTERVAL * 10, reporter.tick())
                .await
                .is_err()
        );
    }
}
