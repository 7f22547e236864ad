-- Layout 10: a repeated occurrence changes only a narrow table with its changing columns. The entries that do
-- not change are in a separate table, without the value and without an index on the key.

-- Running nodes cannot write until this has finished: their earlier commits are copied, later ones rejected.
LOCK TABLE occurrence, occurrence_by_state IN ACCESS EXCLUSIVE MODE;
CREATE TABLE occurrence_now (
  key bytea NOT NULL,
  version bigint NOT NULL,
  by_state bytea,
  value bytea NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
-- Writing sessions use only index scans, while this reads two whole tables.
SET LOCAL enable_hashjoin = on;
SET LOCAL enable_seqscan = on;
INSERT INTO occurrence_now (key, version, by_state, value)
  SELECT o.key, o.version, s.entry, o.value FROM occurrence AS o
  LEFT JOIN occurrence_by_state AS s ON s.record = o.key;
ALTER TABLE occurrence_now ADD PRIMARY KEY (key), ADD UNIQUE (by_state);
DROP TABLE occurrence_by_state;
ALTER TABLE occurrence DROP CONSTRAINT occurrence_pkey, DROP COLUMN version, DROP COLUMN value;
DELETE FROM occurrence WHERE num_nulls(by_event, by_start, by_review, by_severity) = 4;
-- Rows of this table are replaced as a whole, so no space is reserved in a page. Rewrites it without the values.
ALTER TABLE occurrence SET (fillfactor = 100);
CLUSTER occurrence USING occurrence_by_start_key;

-- Nodes of the previous version do not know that table. They are removed together with their writers, and
-- stop.
DELETE FROM writer;
DELETE FROM node;
