-- Lists of one kind, newest first, find what they show and pass over nothing else, however rare the kind is.
CREATE INDEX feedback_by_kind ON feedback (namespace, kind, accept_order);
