-- A fingerprint of the definition that a receipt was made for. Receipts that have none are of an
-- earlier version, and prove nothing about the definition of today.
ALTER TABLE headrace.receipts ADD COLUMN definition text;
