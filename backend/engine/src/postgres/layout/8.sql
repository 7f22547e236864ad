-- Layout 8: owners of slots. Slots 0 to 255 are for destinations, slot 256 is the leadership.

CREATE TABLE claim (
  slot smallint PRIMARY KEY,
  writer bytea NOT NULL,
  epoch bigint NOT NULL,
  node bytea NOT NULL
) WITH (fillfactor = 25);
INSERT INTO claim (slot, writer, epoch, node) SELECT slot, '', 0, '' FROM generate_series(0, 256) AS slot;
-- The writer with which a node owns slots, and the last time at which it worked.
ALTER TABLE node ADD COLUMN writer bytea;
ALTER TABLE node ADD COLUMN works timestamptz NOT NULL DEFAULT '-infinity';

-- Nodes of the previous version keep running but can no longer lead: a holder that never expires keeps the leadership.
INSERT INTO holder (id, node, name, since, renewed)
  VALUES (1, '', '', clock_timestamp(), 'infinity')
  ON CONFLICT (id) DO UPDATE SET node = '', name = '', renewed = 'infinity';
DELETE FROM writer WHERE leads;
