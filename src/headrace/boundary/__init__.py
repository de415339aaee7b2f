"""Where callers come in: their arguments are checked, and what fails leaves as a HeadraceError."""
