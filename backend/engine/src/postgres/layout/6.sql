-- Layout 6: what heartbeats expect, by their last beat.

CREATE TABLE expectation_by_beat (entry bytea PRIMARY KEY, record bytea NOT NULL) WITH (fillfactor = 90);
