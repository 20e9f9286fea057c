"""What is installed and what is declared agree: pins, names, licences, the typed packages."""

import re
import tomllib
from importlib.metadata import Distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.architecture import third_party
from tests.architecture.repository import COMPANIONS, PACKAGES, ROOT, committed_files

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8")
EXACT_PIN = re.compile(r"[a-z0-9][a-z0-9-]*==[0-9][0-9a-z.]*(\.post[0-9]+)?")


def declared() -> dict[str, str]:
    """Canonical name -> specifier of every direct dependency, extras and build tool included."""
    lines = [
        *PROJECT["dependencies"],
        *(line for extra in PROJECT["optional-dependencies"].values() for line in extra),
        *PYPROJECT["build-system"]["requires"],
    ]
    parsed = [Requirement(line) for line in lines]
    return {third_party.canonical(one.name): str(one.specifier) for one in parsed}


def pins() -> dict[str, str]:
    lines = [line for line in CONSTRAINTS.splitlines() if line and not line.startswith("#")]
    return {name: f"=={version}" for name, _, version in (line.partition("==") for line in lines)}


def test_constraints_are_exact_sorted_and_name_no_place() -> None:
    lines = [line for line in CONSTRAINTS.splitlines() if not line.startswith("#")]
    assert [line for line in lines if not EXACT_PIN.fullmatch(line)] == []
    assert lines == sorted(lines), "LC_ALL=C sort"
    assert len(lines) == len(pins())


def test_direct_dependencies_are_pinned_as_in_the_constraints() -> None:
    for name, specifier in declared().items():
        assert pins().get(name) == specifier, f"{name}: pyproject.toml and constraints.txt differ"


def test_constraints_cover_everything_that_is_installed_for_us() -> None:
    """The walk is not limited to the constraints here, so a missing indirect pin shows."""
    everything = third_party.closure("pincite", allowed=_AnyName())
    # PyTorch's default Linux build pins its own CUDA libraries exactly.
    cuda = {name for name in everything if name.startswith(("nvidia-", "cuda-", "triton"))}
    assert sorted(set(everything) - cuda - set(pins())) == []


class _AnyName(set[str]):
    def __contains__(self, item: object) -> bool:
        return True


def test_no_other_distribution_provides_our_top_level_names() -> None:
    providers = packages_distributions()
    for name in (*PACKAGES, *COMPANIONS):
        assert set(providers.get(name, [])) <= {"pincite"}, f"{name} comes from {providers[name]}"


def test_each_package_is_built_and_typed() -> None:
    built = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert set(built) == set(PACKAGES)
    names = {str(path) for path in committed_files()}
    assert [name for name in PACKAGES if f"{name}/py.typed" not in names] == []


def test_the_licence_is_the_whole_text_and_matches_the_metadata() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert PROJECT["license"] == "AGPL-3.0-or-later"
    assert text.lstrip().startswith("GNU AFFERO GENERAL PUBLIC LICENSE")
    assert "13. Remote Network Interaction; Use with the GNU General Public License." in text
    assert len(text.split()) > 5_000


def test_third_party_file_is_current() -> None:
    text = third_party.render(third_party.dependencies())
    assert third_party.TARGET.read_text(encoding="utf-8") == text, "run `make third-party`"


def test_third_party_refuses_a_licence_it_cannot_read() -> None:
    with pytest.raises(third_party.LicenceUnknownError, match="mystery"):
        third_party.licence_of(_distribution("mystery", "License: see the website"))
    classified = _distribution("plain", "Classifier: License :: OSI Approved :: MIT License")
    assert third_party.licence_of(classified) == "MIT"


def _distribution(name: str, line: str) -> Distribution:
    class InMemory(Distribution):
        def read_text(self, filename: str) -> str | None:
            return f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n{line}\n"

        def locate_file(self, path: object) -> Path:
            raise FileNotFoundError(path)

    return InMemory()
