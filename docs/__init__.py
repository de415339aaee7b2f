"""The documents, and the programs that fill their generated parts."""
