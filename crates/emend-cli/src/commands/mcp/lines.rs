//! Standard input and output as lines. A line that is no JSON is answered with the error that JSON-RPC has for it; the
//! protocol's own reader would pass it over in silence.

use std::io;

use serde::de::IgnoredAny;
use tokio::{
    io::{
        AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
        DuplexStream, duplex,
    },
    sync::mpsc,
};

/// The longest line that is read, in bytes.
const LONGEST: u64 = 16 * 1024 * 1024;
/// The bytes that may wait between the lines and the protocol.
const BUFFER: usize = 64 * 1024;
/// The answer to what is no JSON, whose id nobody knows.
const NO_JSON: &[u8] =
    br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: the line is not JSON"}}"#;

/// What the protocol reads from and writes to.
pub(super) struct Lines {
    /// Lines of JSON.
    pub(super) incoming: DuplexStream,
    /// The protocol's answers.
    pub(super) outgoing: DuplexStream,
}

/// The ends of the lines, and what carries them until `from` has ended and all answers are written.
pub(super) fn between(
    from: impl AsyncRead + Unpin,
    to: impl AsyncWrite + Unpin,
) -> (Lines, impl Future<Output = io::Result<()>>) {
    let (taken, incoming) = duplex(BUFFER);
    let (outgoing, answers) = duplex(BUFFER);
    // One answer at a time: who sends what is no JSON waits until it is told.
    let (refuse, refused) = mpsc::channel(1);
    let carried =
        async move { tokio::try_join!(take(from, taken, refuse), write(answers, refused, to)).map(drop) };
    (Lines { incoming, outgoing }, carried)
}

async fn take(
    from: impl AsyncRead + Unpin,
    mut to: DuplexStream,
    refuse: mpsc::Sender<()>,
) -> io::Result<()> {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        line.clear();
        if (&mut from).take(LONGEST).read_until(b'\n', &mut line).await? == 0 {
            return Ok(());
        }
        // White space between messages is nothing.
        if line.trim_ascii().is_empty() {
            continue;
        }
        if serde_json::from_slice::<IgnoredAny>(&line).is_ok() {
            if line.last() != Some(&b'\n') {
                line.push(b'\n');
            }
            to.write_all(&line).await?;
        } else if refuse.send(()).await.is_err() {
            return Ok(());
        }
    }
}

async fn write(
    answers: DuplexStream,
    mut refused: mpsc::Receiver<()>,
    mut to: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut answers = BufReader::new(answers);
    let mut line = Vec::new();
    let mut may_refuse = true;
    loop {
        tokio::select! {
            // A line that was begun is finished: what was read of it stays in `line`.
            read = answers.read_until(b'\n', &mut line) => {
                if read? == 0 && line.is_empty() {
                    return Ok(());
                }
                to.write_all(&line).await?;
                line.clear();
            }
            no_json = refused.recv(), if may_refuse => match no_json {
                Some(()) => {
                    to.write_all(NO_JSON).await?;
                    to.write_all(b"\n").await?;
                }
                None => may_refuse = false,
            },
        }
        to.flush().await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_of_json_are_passed_on_and_others_are_answered() {
        let mut written = Vec::new();
        let (lines, carried) = between(&b"{\"a\": 1}\n\nnonsense\n[2]"[..], &mut written);
        let Lines {
            mut incoming,
            mut outgoing,
        } = lines;
        let protocol = async {
            let mut read = String::new();
            incoming.read_to_string(&mut read).await.unwrap();
            outgoing.write_all(b"{\"answer\": 1}\n").await.unwrap();
            drop(outgoing);
            read
        };
        let (read, carried) = tokio::join!(protocol, carried);
        carried.unwrap();
        assert_eq!(read, "{\"a\": 1}\n[2]\n");
        let written = String::from_utf8(written).unwrap();
        let mut lines: Vec<&str> = written.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["{\"answer\": 1}", std::str::from_utf8(NO_JSON).unwrap()]);
    }
}
