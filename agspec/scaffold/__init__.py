"""Scaffold profiles: which agent sent a request, in which role, what it has read and how it writes edits.

>>> from agspec.messages import Message
>>> match = load_profiles().classify([Message(role="system", content="Act as an expert architect engineer")])
>>> match.scaffold.name, match.role
('aider', 'architect')
"""

from agspec.scaffold.match import Match, Profiles, Scaffold, load_profiles
from agspec.scaffold.profile import Profile, ToolWire
from agspec.scaffold.reads import OpenedFile

__all__ = ["Match", "OpenedFile", "Profile", "Profiles", "Scaffold", "ToolWire", "load_profiles"]
