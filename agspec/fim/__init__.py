"""Fill-in-the-middle: prompts per model family, windows, cross-file context, stopping and cleaning. Pure."""
