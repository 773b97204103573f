"""``POST /v1/edits``: files rewritten as copy programs, or whole; opt-in with ``agspec serve --copy-edits``."""
