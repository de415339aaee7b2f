"""Relations as what queries read and write: epochs, columns, weights."""
