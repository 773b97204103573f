"""What of other files is shown: signatures and imports that the cursor's lines name, and chunks that are like them."""

from __future__ import annotations

import pytest

from agspec.fim.context import Symbol, context, similar, words
from agspec.fim.languages import language_of
from agspec.fim.outline import borders, outline
from agspec.fim.prompt import OtherFile

PYTHON = '''"""Doc."""
import os
from pathlib import Path


@cached
class Store:
    """Keeps."""

    def read(self, path: Path) -> bytes:
        """Read."""
        return path.read_bytes()

    def write_all(
        self,
        data: bytes,
    ) -> None:
        self.data = data


def open_store(path): return Store(path)
'''
TYPESCRIPT = """import { a } from "./a";
export class Box<T> {
  get(index: number): T { return this.items[index]; }
}
export function unbox(box: Box<number>): number { return box.get(0); }
export interface Named { name: string }
"""


def size(text: str) -> int:
    return len(text) // 3


def test_an_outline_has_imports_and_signatures():
    assert outline(PYTHON, language_of("python")) == (
        "import os", "from pathlib import Path", "class Store:", "    def read(self, path: Path) -> bytes:",
        "    def write_all( self, data: bytes, ) -> None:", "def open_store(path):",
    )  # fmt: skip
    told = outline(TYPESCRIPT, language_of(path="x.ts"))
    assert told[0] == 'import { a } from "./a";'
    assert "class Box<T>" in told
    assert any("get(index: number): T" in line for line in told)
    assert any(line.startswith("function unbox(box: Box<number>): number") for line in told)


@pytest.mark.parametrize("name", ["go", "rust", "java", "c", "cpp", "csharp", "ruby", "php", "shell", "json", "yaml",
                                  "sql", "html", "css", "javascript"])  # fmt: skip
def test_every_grammar_loads_and_takes_anything(name):
    assert isinstance(outline("}{ \x00 é def (", language_of(name)), tuple)


def test_borders_are_where_definitions_begin():
    found = borders(PYTHON, language_of("python"))
    assert [PYTHON[at:].split("\n", maxsplit=1)[0] for at in found] == [
        "@cached", "    def read(self, path: Path) -> bytes:", "    def write_all(",
        "def open_store(path): return Store(path)",
    ]  # fmt: skip
    assert borders("é = 1\ndef f(): pass\n", language_of("python")) == (6,)


def test_what_the_cursors_lines_name_is_shown_within_the_budget():
    files = [OtherFile("store.py", PYTHON), OtherFile("other.py", "def unrelated(): pass\n")]
    found = context("store = Store(p)\nstore.write_all(", files, 100, size)
    assert found[-1] == OtherFile(
        "store.py", "class Store:\n    def write_all( self, data: bytes, ) -> None:\ndef open_store(path):"
    )
    assert all(file.path == "store.py" for file in found)
    assert sum(size(f"{file.path}\n{file.text}\n") for file in found) <= 100
    assert context("store.write_all(", files, 3, size) == ()
    assert context("", files, 100, size) == ()


def test_symbols_of_the_client_come_first():
    found = context(
        "store.write_all(", [OtherFile("store.py", PYTHON)], 40, size, symbols=[Symbol("lsp.py", "def x(): ...")]
    )
    assert found[-1] == OtherFile("lsp.py", "def x(): ...")


def test_chunks_are_ranked_by_the_names_in_them():
    files = [OtherFile("a.py", "\n".join(f"line_{i} = parseHeader(data)" for i in range(20))),
             OtherFile("b.py", "\n".join(f"total += price[{i}]" for i in range(20)))]  # fmt: skip
    assert {chunk.path for chunk in similar("parse_header(", files)} == {"a.py"}
    assert similar("(((", files) == similar("zzz", []) == []
    assert list(words("readFile read_file HTTP2")) == ["read", "file", "read", "file", "http", "2"]
