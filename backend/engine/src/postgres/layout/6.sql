-- Layout 6: the increments of each writer, in separate rows. The table `counter` has the earlier counts, into
-- which the rows of inactive writers are folded.

CREATE TABLE counter_part (
  key bytea NOT NULL,
  writer bytea NOT NULL,
  version bigint NOT NULL,
  n0 bigint NOT NULL,
  n1 bigint NOT NULL,
  n2 bigint NOT NULL,
  n3 bigint NOT NULL,
  n4 bigint NOT NULL,
  n5 bigint NOT NULL,
  PRIMARY KEY (key, writer)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- Expectations of heartbeats, by their last beat.
CREATE TABLE expectation_by_beat (entry bytea PRIMARY KEY, record bytea NOT NULL) WITH (fillfactor = 90);
