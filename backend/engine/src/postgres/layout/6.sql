-- Layout 6: what each writer adds to counters, in rows of its own. The table `counter` keeps what was
-- counted before, and what rows that rest are folded into.

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

-- What heartbeats expect, by their last beat.
CREATE TABLE expectation_by_beat (entry bytea PRIMARY KEY, record bytea NOT NULL) WITH (fillfactor = 90);
