"""``make table``: agspec against the other retrieval drafts, on families of public recorded sessions.

A family is one kind of recorded sessions on one tool wire; a setting is a family at a cost ratio. Whatever is fitted
(agspec's caps, the baselines' settings) is fitted on one half of a family's sessions and measured on the other half,
and the reverse. ``families`` reads the sessions, ``sweep`` and ``run`` replay them, ``tune`` chooses, ``score`` prices,
``tables`` puts it together, ``show`` prints.
"""
