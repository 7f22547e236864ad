-- Layout 4: views that people share. VIEW is a word of SQL.

CREATE TABLE saved_view (
  key bytea PRIMARY KEY,
  version bigint NOT NULL,
  value bytea NOT NULL
);
