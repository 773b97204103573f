"""Errors a user can meet. Each message is one line: what was wanted, what came, where.

::

    AgspecError
    ├── SettingsError        wrong settings file, flag or environment variable
    ├── InputError           a trace, profile, tokenizer or model that cannot be read
    │   └── RecordError      one record of it, with file, record and reason
    ├── TokensError          an array that is not a token array
    ├── StoreError           a store used against its contract
    ├── CopyError            a copy program that cannot be resolved, with its byte
    └── MissingExtraError    an optional package that is not installed
"""


class AgspecError(Exception):
    """Root of all errors that are the caller's to mend; the CLI prints it and exits with 1."""


class SettingsError(AgspecError):
    """Wrong settings: unknown key, wrong type, value out of range."""


class InputError(AgspecError):
    """A file that cannot be used."""


class RecordError(InputError):
    """One bad record of a file.

    Example: ``RecordError("a.jsonl", 3, "want a JSON object, got a list")`` prints
    ``a.jsonl, record 3: want a JSON object, got a list``.
    """

    def __init__(self, file: object, record: object, reason: str) -> None:
        super().__init__(f"{file}, record {record}: {reason}")
        self.file = str(file)
        self.record = record
        self.reason = reason


class TokensError(AgspecError):
    """Not a token array: want int32 1-D."""


class StoreError(AgspecError):
    """A store or automaton used against its contract."""


class CopyError(AgspecError):
    """A copy program that cannot be read or resolved; ``at``: the byte of the program where."""

    def __init__(self, at: int, reason: str) -> None:
        super().__init__(f"program byte {at}: {reason}")
        self.at = at
        self.reason = reason


class MissingExtraError(AgspecError):
    """An optional package is needed for what was asked."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; it comes with: pip install 'agspec[{extra}]'")
        self.package = package
        self.extra = extra
