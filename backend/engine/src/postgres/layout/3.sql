-- Layout 3: several nodes over one store, one of which is the leader.

CREATE TABLE node (
  id bytea PRIMARY KEY,
  name text NOT NULL,
  since timestamptz NOT NULL,
  renewed timestamptz NOT NULL,
  follows bigint NOT NULL
) WITH (fillfactor = 50);
ALTER TABLE writer ADD COLUMN node bytea;
ALTER TABLE writer ADD COLUMN leads boolean NOT NULL DEFAULT false;
