"""One word per concept (docs/glossary.md): the few names that are banned outright.

Only names we define are judged: modules, classes, functions, parameters, variables and attributes
that are assigned. Reading a vendor's attribute is free.
"""

import ast
import re
from pathlib import Path

import pytest

from tests.architecture.repository import COMPANIONS, PACKAGES, python_files, syntax_tree

BANNED_MODULES = frozenset({"utils", "util", "helpers", "helper", "common", "manager", "misc"})
BANNED_WORDS = frozenset({"kb", "docstore", "blob", "node", "snippet"})
BANNED_NAMES = frozenset({"score", "evict_sequence"})

# Names of somebody else's wire format that we must define to speak it: (file, name).
WIRE_NAMES: frozenset[tuple[str, str]] = frozenset()

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def words_of(name: str) -> list[str]:
    """`NodeList_of_kb` -> node, list, of, kb."""
    return [word.lower() for word in WORD.findall(name)]


def defined_names(tree: ast.Module) -> set[str]:
    """Every name that the module binds."""
    found: set[str] = set()
    for item in ast.walk(tree):
        match item:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.ClassDef(name=name):
                found.add(name)
            case ast.arg(arg=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.Attribute(attr=name, ctx=ast.Store()):
                found.add(name)
            case ast.alias(asname=str(name)):
                found.add(name)
    return found


def banned_names(tree: ast.Module) -> set[str]:
    return {
        name
        for name in defined_names(tree)
        if name.lower() in BANNED_NAMES or BANNED_WORDS & set(words_of(name))
    }


@pytest.mark.parametrize("path", python_files(*PACKAGES, *COMPANIONS), ids=str)
def test_no_banned_name(path: Path) -> None:
    for part in path.with_suffix("").parts:
        assert part not in BANNED_MODULES, f"{path}: a module is a noun of the glossary"
        assert not BANNED_WORDS & set(words_of(part)), f"{path}: see docs/glossary.md"
    wire = {name for file, name in WIRE_NAMES if file == str(path)}
    assert not banned_names(syntax_tree(path)) - wire, "see docs/glossary.md for the word to use"


def test_the_check_sees_each_kind_of_definition() -> None:
    code = """
import numpy as kb
class BlobStore: ...
def to_node(snippet): ...
score = lambda: 0
self.docstore_url = 1
with open() as my_kb: ...
for score in []: ...
node_free = hit.score + point.node
"""
    assert banned_names(ast.parse(code)) == {
        "kb", "BlobStore", "to_node", "snippet", "score", "docstore_url", "my_kb",
        "node_free",
    }  # fmt: skip
    assert not banned_names(ast.parse("dense_score = scores = annotated = 1"))
