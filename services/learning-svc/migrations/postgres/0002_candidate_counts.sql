-- How many candidates there are of each kind and status is shown all the time: counted on an index of its own, not on the
-- table with its values. A candidate's status changes seldom, so votes do not touch it.
CREATE INDEX candidates_by_kind_and_status ON candidates (kind, status);
