"""Copy programs on vLLM: the grammar that a request decodes under, and copied text spliced into it in one forward."""
