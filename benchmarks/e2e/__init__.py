"""Real agents in front of ``agspec serve``, their answers scripted: ``make e2e``."""
