"""Files stay small enough to read: the hard caps of docs/architecture.md."""

import ast
from pathlib import Path

import pytest

from tests.architecture.repository import COMPANIONS, PACKAGES, python_files, source, syntax_tree

MAX_MODULE_LINES = 500
MAX_FUNCTION_LINES = 80
MAX_INIT_DOCSTRING_LINES = 8


def long_functions(tree: ast.Module, limit: int) -> list[str]:
    """`name (lines)` of each function of `limit` lines or more, decorators not counted."""
    return [
        f"{definition.name} ({length})"
        for definition in ast.walk(tree)
        if isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (definition.end_lineno or 0) - definition.lineno + 1) >= limit
    ]


def misplaced_code(tree: ast.Module) -> list[str]:
    """Statements that do not belong in an `__init__.py`: all but docstring, imports, names, and the
    module's `__getattr__`, which re-exports what is heavy when it is asked for."""
    allowed = (ast.Import, ast.ImportFrom)
    found = []
    for position, statement in enumerate(tree.body):
        is_docstring = (
            position == 0
            and isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Constant)
        )
        is_constant = isinstance(statement, ast.Assign) and all(
            isinstance(target, ast.Name) and target.id.startswith("__")
            for target in statement.targets
        )
        is_lazy = isinstance(statement, ast.FunctionDef) and statement.name == "__getattr__"
        is_typing = isinstance(statement, ast.If) and not misplaced_code(
            ast.Module(statement.body, [])
        )
        if not (
            is_docstring or is_constant or is_lazy or is_typing or isinstance(statement, allowed)
        ):
            found.append(f"line {statement.lineno}: {type(statement).__name__}")
    return found


@pytest.mark.parametrize("path", python_files(*PACKAGES, *COMPANIONS), ids=str)
def test_modules_and_functions_stay_under_the_caps(path: Path) -> None:
    num_lines = len(source(path).splitlines())
    assert num_lines <= MAX_MODULE_LINES, f"{num_lines} lines: split by what it serves"
    if "versions" not in path.parts:  # a migration is a frozen list of tables
        assert not long_functions(syntax_tree(path), MAX_FUNCTION_LINES)


@pytest.mark.parametrize(
    "path", [path for path in python_files(*PACKAGES) if path.name == "__init__.py"], ids=str
)
def test_package_init_has_a_docstring_and_only_re_exports(path: Path) -> None:
    docstring = ast.get_docstring(syntax_tree(path))
    assert docstring, f"{path}: say in three lines what the package does and does not know"
    assert len(docstring.splitlines()) <= MAX_INIT_DOCSTRING_LINES
    assert not misplaced_code(syntax_tree(path))


def test_the_checks_see_what_they_look_for() -> None:
    body = "\n".join("    pass" for _ in range(MAX_FUNCTION_LINES - 1))
    assert long_functions(ast.parse(f"async def f():\n{body}\n"), MAX_FUNCTION_LINES) == ["f (80)"]
    shorter = body.removesuffix("\n    pass")
    assert not long_functions(ast.parse(f"def f():\n{shorter}\n"), MAX_FUNCTION_LINES)
    init = '"""Text."""\nfrom a import b\n__all__ = ["b"]\nx = 1\ndef f(): ...\n'
    assert misplaced_code(ast.parse(init)) == ["line 4: Assign", "line 5: FunctionDef"]
    lazy = "if TYPE_CHECKING:\n    from a import b\ndef __getattr__(name): ...\n"
    assert not misplaced_code(ast.parse(lazy))
    assert misplaced_code(ast.parse("if TYPE_CHECKING:\n    x = 1\n")) == ["line 1: If"]
