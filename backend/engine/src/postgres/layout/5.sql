-- Layout 5: what nodes report about themselves.

ALTER TABLE node ADD COLUMN about text NOT NULL DEFAULT '';
