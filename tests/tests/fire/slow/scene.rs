//! learning-svc in a process of its own, so that its memory can be measured, with a writer and subscribers that keep
//! up.

use std::net::SocketAddr;

use emend_proto::{
    common::v1::ResourceKind,
    learning::v1::{ImportHeader, ImportRow, ListResourcesRequest, SubscribeRequest},
};
use emend_tests::{
    audit::stream::{Habits, Recorder, RevisionLog, Run, everything},
    harness::{Gateway, Learning, NAMESPACE, alias, answered, deployment::Deployment},
};

/// The number of values that each key rotates through.
const VALUES: u32 = 4;

/// Trusts its connection, however long it stays silent.
pub(super) fn patient() -> Habits {
    Habits { ping: None }
}

/// Everything, by a unique filter: nothing that is encoded for it is shared.
pub(super) fn of_its_own(id: &str) -> SubscribeRequest {
    SubscribeRequest {
        namespaces: vec![NAMESPACE.into(), format!("only-{id}")],
        ..everything(id)
    }
}

/// The server and the writer.
pub(super) struct Scene {
    deployment: Deployment,
    /// The process's own listen address.
    pub(super) address: SocketAddr,
    pub(super) run: Run,
    learning: Learning,
    gate: Gateway,
}

impl Scene {
    pub(super) async fn start() -> Self {
        let mut deployment = Deployment::sqlite().await;
        // Without the gateway, which would read what clients do not.
        deployment.learning.kill().await;
        let address = deployment.start_learning().await;
        let gate = Gateway::open().await;
        gate.lead_to(address);
        Self {
            deployment,
            address,
            run: Run::new(),
            learning: Learning::at(address),
            gate,
        }
    }

    pub(super) fn subscriber(&self, request: SubscribeRequest) -> Recorder {
        Recorder::with(&self.run, self.address, request, patient())
    }

    /// A subscriber whose connection goes through the gate.
    pub(super) fn subscriber_by_the_gate(&self, request: SubscribeRequest) -> Recorder {
        Recorder::start(&self.run, self.gate.address(), request)
    }

    pub(super) fn close_gate(&self) {
        self.gate.close();
    }

    pub(super) fn open_gate(&self) {
        self.gate.lead_to(self.address);
    }

    /// Subscribers that keep up: with everything, with a part, in small messages.
    pub(super) fn healthy(&self) -> Vec<Recorder> {
        let part = SubscribeRequest {
            namespaces: vec![NAMESPACE.into()],
            kinds: vec![ResourceKind::EntityAlias.into()],
            include_user_scoped: false,
            ..everything("healthy-part")
        };
        let small = SubscribeRequest {
            max_batch_bytes: 64 * 1024,
            ..everything("healthy-small")
        };
        let all = [everything("healthy"), part, small];
        all.map(|request| self.subscriber(request)).into()
    }

    /// Changes `keys` keys, the same each time, to a value different from their last; about 900 bytes each on the wire.
    /// Answers with the head, committed and published.
    pub(super) async fn write(&self, keys: u32, round: u32) -> i64 {
        self.import(keys, round, &"x".repeat(400)).await
    }

    /// The same, about 100 bytes each.
    pub(super) async fn write_short(&self, keys: u32, round: u32) -> i64 {
        self.import(keys, round, "x").await
    }

    async fn import(&self, keys: u32, round: u32, long: &str) -> i64 {
        // Few values: a decision looks at every candidate of its contest, so with a new value each time the work itself
        // would take more memory from round to round.
        let value = format!("person-{}", round % VALUES);
        let rows = (1..=keys).map(|line| ImportRow {
            line: line.into(),
            correction: Some(alias(&format!("{line} {long}"), &value)),
            user_id: String::new(),
        });
        let header = ImportHeader {
            namespace: NAMESPACE.into(),
            ..ImportHeader::default()
        };
        let done = self.learning.import(header, rows.collect()).await.unwrap();
        let head = done.last_revision;
        assert!(head > 0, "each time something new: {done:?}");
        self.run.committed(head);
        let request = ListResourcesRequest {
            namespace: NAMESPACE.into(),
            page_size: 1,
            min_revision: head,
            ..ListResourcesRequest::default()
        };
        answered(self.learning.resources.clone().list_resources(request).await);
        self.run.published(head);
        head
    }

    /// The server's resident memory, in bytes.
    pub(super) fn resident(&self) -> u64 {
        self.deployment.learning.process.as_ref().unwrap().resident()
    }

    pub(super) fn open_files(&self) -> usize {
        self.deployment.learning.process.as_ref().unwrap().open_files()
    }

    pub(super) async fn log(&self) -> RevisionLog {
        RevisionLog::read(&self.deployment.stored()).await
    }

    /// Shuts the server down gracefully.
    pub(super) async fn stop(&mut self) {
        let process = self.deployment.learning.process.as_mut().unwrap();
        process.terminate().await;
        let status = process.ended().await;
        assert!(status.success(), "{status}:\n{}", process.output());
    }
}
