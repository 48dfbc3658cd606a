"""A command imports what it needs and no more: `pairveil kappa` must not wait for scikit-learn."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import pairveil

HEAVY = {
    "sklearn", "dask", "distributed", "dp_accounting", "matplotlib", "opendp", "onnx", "cryptography",
    "safetensors",
}  # fmt: skip
WITHOUT_NUMBERS = {*HEAVY, "numba", "scipy", "pyarrow", "pandas"}
RUN = """
import json, sys
from pairveil.cli.app import app
try:
    app(args=sys.argv[1:], standalone_mode=False)
except SystemExit:
    pass
print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})), file=sys.stderr)
"""


def imported_by(*words):
    """Top-level packages that a command has imported when it is done."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, *words], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.fixture(params=["123", "abc"])
def triangle(request, tmp_path):
    file = tmp_path / "pairs.csv"
    a, b, c = request.param
    file.write_text(f"left,right,label\n{a},{b},same\n{b},{c},different\n{a},{c},different\n")
    return file


@pytest.mark.parametrize("words", [["--help"], ["kappa", "--help"], ["fit", "--help"]])
def test_help_needs_no_library_of_numbers(words):
    assert not imported_by(*words) & WITHOUT_NUMBERS


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_kappa_imports_what_counting_needs(triangle, flags):
    imported = imported_by("kappa", str(triangle), *flags)
    assert "pyarrow" in imported
    assert not imported & {*HEAVY, "pandas"}
    if (
        flags
    ):  # a handful of pairs takes no compiled loop; the advice in words selects some, which does
        assert "numba" not in imported


def test_the_package_itself_imports_nothing_but_itself():
    code = "import sys, pairveil; print([m for m in sys.modules if m.split('.')[0] in {'numpy', 'scipy'}])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names_are_listed_and_found():
    import pairveil

    assert set(dir(pairveil)) == set(pairveil.__all__)
    for name in pairveil.__all__:
        assert getattr(pairveil, name) is not None
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = pairveil.nothing_of_the_kind


def test_python_m_pairveil_is_the_command():
    words = [sys.executable, "-m", "pairveil", "--version"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == f"pairveil {pairveil.__version__}\n"


def test_a_learner_that_is_gone_is_told_in_a_sentence() -> None:
    with pytest.raises(AttributeError, match=r"DPPMetricLearner\.fit_classes"):
        pairveil.DPPScatterLearner  # noqa: B018
