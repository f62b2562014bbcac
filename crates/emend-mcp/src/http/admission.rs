//! Events are sent to a caller for as long as it may call.

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use emend_base::bearer::Token;
use futures::StreamExt as _;
use tokio::time::sleep;

use super::{Callers, Refused};

/// How often it is asked whether a caller to whom events are sent may still call.
pub(super) const ASKED: Duration = Duration::from_secs(30);

/// The events, which end once the caller may not call any more. While nobody can tell, they go on.
pub(super) fn while_admitted<C: Callers>(events: Body, callers: Arc<C>, token: Option<Token>) -> Body {
    let refused = async move {
        loop {
            sleep(ASKED).await;
            match callers.admitted(token.as_ref()).await {
                Ok(_) | Err(Refused::Unavailable(_)) => {}
                Err(Refused::NoToken(_) | Refused::BadToken(_) | Refused::Forbidden(_)) => return,
            }
        }
    };
    Body::from_stream(events.into_data_stream().take_until(Box::pin(refused)))
}
