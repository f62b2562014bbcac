//! Claiming entries of the outbox that are due: the one statement that differs between the databases. Both take the limit, the
//! lease's length, its token, and how far ahead no lease ends, and return the claimed rows.

/// On SQLite only one transaction writes at a time. A LIMIT that is a parameter alone would have it planned anew each time.
pub(crate) const SQLITE: &str =
    "UPDATE outbox SET lease_token = $3, due_at = $2 + (SELECT now FROM database_clock)
     WHERE event_id IN (SELECT event_id FROM outbox
                        WHERE state = 1 AND (due_at <= (SELECT now FROM database_clock)
                                             OR due_at > $4 + (SELECT now FROM database_clock))
                        ORDER BY accept_order, event_number LIMIT CAST($1 AS INTEGER))
     RETURNING event_id, accept_order, event_number, occurred_at, attempts, payload";

/// On PostgreSQL replicas claim at once: each skips what another one has locked.
pub(crate) const POSTGRES: &str = "
WITH due AS MATERIALIZED (
    SELECT event_id FROM outbox
    WHERE state = 1 AND (due_at <= (SELECT now FROM database_clock)
                         OR due_at > $4 + (SELECT now FROM database_clock))
    ORDER BY accept_order, event_number LIMIT $1 FOR UPDATE SKIP LOCKED
)
UPDATE outbox AS o SET lease_token = $3, due_at = $2 + (SELECT now FROM database_clock)
FROM due WHERE o.event_id = due.event_id
RETURNING o.event_id, o.accept_order, o.event_number, o.occurred_at, o.attempts, o.payload";
