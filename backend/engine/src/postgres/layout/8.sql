-- Layout 8: who owns what. Slots 0 to 255 are those of destinations, slot 256 is the lead.

CREATE TABLE claim (
  slot smallint PRIMARY KEY,
  writer bytea NOT NULL,
  epoch bigint NOT NULL,
  node bytea NOT NULL
) WITH (fillfactor = 25);
INSERT INTO claim (slot, writer, epoch, node) SELECT slot, '', 0, '' FROM generate_series(0, 256) AS slot;
-- What a node owns with, and when that last worked.
ALTER TABLE node ADD COLUMN writer bytea;
ALTER TABLE node ADD COLUMN works timestamptz NOT NULL DEFAULT '-infinity';

-- Nodes of the version before keep running, and lead no more: for ever there is one that does.
INSERT INTO holder (id, node, name, since, renewed)
  VALUES (1, '', '', clock_timestamp(), 'infinity')
  ON CONFLICT (id) DO UPDATE SET node = '', name = '', renewed = 'infinity';
DELETE FROM writer WHERE leads;
