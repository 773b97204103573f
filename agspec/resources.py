"""Where the data that ships with the package lies: in the wheel, or in a checkout."""

from pathlib import Path

from agspec.errors import InputError


def data_dir(name: str) -> Path:
    """Folder ``scaffolds`` or ``replays``, from the installed wheel or from the checkout."""
    here = Path(__file__).resolve().parent
    for folder in (here / "_data" / name, here.parent / name):
        if folder.is_dir():
            return folder
    raise InputError(f"want the data folder {name!r} beside {here}, found none: reinstall agspec")
