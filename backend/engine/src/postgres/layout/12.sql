-- Layout 12 adds the tables of two kinds. Without enrichment tables, events would be ingested differently.

-- Nodes of the previous version do not read it. They are removed together with their writers, and stop.
DELETE FROM writer;
DELETE FROM node;
