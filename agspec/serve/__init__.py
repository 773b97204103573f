"""The HTTP side: who is speaking, what was opened, and routes to look at it. Runs in vLLM's API server process."""
