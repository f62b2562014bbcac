//! Standard input and output as lines. A line that the protocol would not answer is answered here, with the error that
//! JSON-RPC has for it: every request that has an id gets an answer.

use std::io;

use serde_json::Value;
use tokio::{
    io::{
        AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _,
        BufReader, DuplexStream, duplex,
    },
    sync::mpsc,
};

use crate::{
    message::{self, BYTE_ORDER_MARK, INVALID_REQUEST},
    unread::UnreadId,
};

/// The longest line that is read, in bytes.
const LONGEST: u64 = 16 * 1024 * 1024;
/// The bytes that may wait between the lines and the protocol.
const BUFFER: usize = 64 * 1024;

/// What the protocol reads from and writes to.
#[derive(Debug)]
pub struct Lines {
    /// Lines of JSON.
    pub incoming: DuplexStream,
    /// The protocol's answers.
    pub outgoing: DuplexStream,
}

/// The ends of the lines, and what carries them until `from` has ended and all answers are written.
pub fn between(
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
    refuse: mpsc::Sender<Value>,
) -> io::Result<()> {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut from).take(LONGEST).read_until(b'\n', &mut line).await?;
        if read == 0 {
            return Ok(());
        }
        let is_whole = line.last() == Some(&b'\n') || (read as u64) < LONGEST;
        let refused = if is_whole {
            let text = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line).trim_ascii();
            // White space between messages is nothing.
            if text.is_empty() {
                continue;
            }
            match message::read(text) {
                Ok(_) => {
                    to.write_all(text).await?;
                    to.write_all(b"\n").await?;
                    continue;
                }
                Err(refused) => refused,
            }
        } else {
            let id = id_of_the_rest(&mut from, &line).await?;
            let message = format!("the line is longer than {LONGEST} bytes");
            message::error(&id, INVALID_REQUEST, &message)
        };
        if refuse.send(refused).await.is_err() {
            return Ok(());
        }
    }
}

/// Passes over the rest of a line, and finds the id of the message that it is.
async fn id_of_the_rest(from: &mut (impl AsyncBufRead + Unpin), begun: &[u8]) -> io::Result<Value> {
    let mut id = UnreadId::default();
    id.read(begun);
    loop {
        let piece = from.fill_buf().await?;
        if piece.is_empty() {
            return Ok(id.found());
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(piece.len(), |end| end + 1);
        id.read(&piece[..length]);
        from.consume(length);
        if end.is_some() {
            return Ok(id.found());
        }
    }
}

async fn write(
    answers: DuplexStream,
    mut refused: mpsc::Receiver<Value>,
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
                    // What was refused before the protocol ended is still said.
                    while let Ok(refusal) = refused.try_recv() {
                        to.write_all(format!("{refusal}\n").as_bytes()).await?;
                    }
                    return to.flush().await;
                }
                to.write_all(&line).await?;
                line.clear();
            }
            refusal = refused.recv(), if may_refuse => match refusal {
                Some(refusal) => to.write_all(format!("{refusal}\n").as_bytes()).await?,
                None => may_refuse = false,
            },
        }
        to.flush().await?;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::PARSE_ERROR;

    #[tokio::test]
    async fn requests_are_passed_on_and_what_is_none_is_answered() {
        let long = format!(
            r#"{{"jsonrpc":"2.0","method":"ping","params":{{"x":"{}"}},"id":"long"}}"#,
            "x".repeat(usize::try_from(LONGEST).unwrap())
        );
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{}1{}}}"#,
            "[".repeat(5_000),
            "]".repeat(5_000)
        );
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let notification = r#"{"jsonrpc":"2.0","method":"notifications/unheard_of"}"#;
        let said = [
            &format!("\u{FEFF}{ping}"),
            "",
            "nonsense",
            notification,
            &format!("[{ping}]"),
            r#"{"jsonrpc":"2.0","id":3,"method":"ping","params":{"x":"\ud800"}}"#,
            r#"{"jsonrpc":"2.0","id":4}"#,
            &deep,
            &long,
            ping,
        ]
        .join("\n");
        let mut written = Vec::new();
        let (lines, carried) = between(said.as_bytes(), &mut written);
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
        assert_eq!(read, format!("{ping}\n{notification}\n{ping}\n"));
        let written = String::from_utf8(written).unwrap();
        let answers = written
            .lines()
            .map(|line| -> Value { serde_json::from_str(line).unwrap() });
        let refused: Vec<_> = answers
            .filter(|answer| answer.get("answer").is_none())
            .map(|answer| (answer["id"].clone(), answer["error"]["code"].clone()))
            .collect();
        let expected = [
            (Value::Null, PARSE_ERROR),
            (Value::Null, INVALID_REQUEST),
            (json!(3), PARSE_ERROR),
            (json!(4), INVALID_REQUEST),
            (json!(5), PARSE_ERROR),
            (json!("long"), INVALID_REQUEST),
        ];
        assert_eq!(refused, expected.map(|(id, code)| (id, json!(code))));
    }
}
