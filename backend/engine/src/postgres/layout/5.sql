-- Layout 5: what nodes tell of their settings.

ALTER TABLE node ADD COLUMN about text NOT NULL DEFAULT '';
