"""What fills the generated parts of the documents: one file a kind of page."""
