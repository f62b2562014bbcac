-- Lists of one kind, newest first, find what they show and pass over nothing else, however rare the kind is.
CREATE INDEX changes_by_kind ON changes (namespace, kind, revision DESC);
CREATE INDEX candidates_by_kind ON candidates (namespace, kind, created_at DESC, candidate_id DESC);
