-- Layout 10: an occurrence that repeats changes a narrow table, which holds what changes with it. The entries
-- that stand still lie in a table of their own, without the value, and without an index on the key.

-- Nodes that still run write no more until this is over: what they commit is copied, or refused afterwards.
LOCK TABLE occurrence, occurrence_by_state IN ACCESS EXCLUSIVE MODE;
CREATE TABLE occurrence_now (
  key bytea NOT NULL,
  version bigint NOT NULL,
  by_state bytea,
  value bytea NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
-- Sessions that write walk indexes only; this reads two whole tables.
SET LOCAL enable_hashjoin = on;
SET LOCAL enable_seqscan = on;
INSERT INTO occurrence_now (key, version, by_state, value)
  SELECT o.key, o.version, s.entry, o.value FROM occurrence AS o
  LEFT JOIN occurrence_by_state AS s ON s.record = o.key;
ALTER TABLE occurrence_now ADD PRIMARY KEY (key), ADD UNIQUE (by_state);
DROP TABLE occurrence_by_state;
ALTER TABLE occurrence DROP CONSTRAINT occurrence_pkey, DROP COLUMN version, DROP COLUMN value;
DELETE FROM occurrence WHERE num_nulls(by_event, by_start, by_review, by_severity) = 4;
-- A row there is replaced as a whole, so that no room is kept in its page. Writes it without the values.
ALTER TABLE occurrence SET (fillfactor = 100);
CLUSTER occurrence USING occurrence_by_start_key;

-- Nodes of the version before know nothing of that table: they are forgotten, with what lets them write,
-- and stop.
DELETE FROM writer;
DELETE FROM node;
