"""Who receives a release installs few packages: all that learning needs is kept from being imported here."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from pairveil import DPPMetricLearner, ReleasedMetric, Schema, error_curve
from pairveil.linkage import ReleasedLinkage
from pairveil.release.signing import new_key, sign
from pairveil.schema.columns import NumberColumn

LEARNING = (
    "scipy", "sklearn", "numba", "llvmlite", "pyarrow", "narwhals", "dp_accounting", "jinja2", "pandas",
    "attr", "absl",
)  # fmt: skip
TABLES = ("pyarrow", "narwhals")
START = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""
COMMAND = "from pairveil.cli.app import main; sys.argv[0] = 'pairveil'; main()"


def receive(code, *words, absent=LEARNING):
    return subprocess.run(
        [sys.executable, "-c", START.format(absent=absent) + code, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def handed_over(tmp_path_factory):
    place = tmp_path_factory.mktemp("handed")
    rng = np.random.default_rng(0)
    people, pairs = rng.uniform(-1, 1, (60, 3)) / 2, np.arange(60).reshape(-1, 2)
    learner = DPPMetricLearner(epsilon=2.0, preprocessor=people)
    learner.fit(pairs, rng.choice([-1, 1], 30)).release(place / "release")
    new_key(place / "key.pem")
    sign(place / "release", place / "key.pem")
    return place


def test_a_release_is_loaded_checked_and_applied(handed_over):
    code = """
from pairveil import ReleasedMetric
from pairveil.release.signing import check_signature
check_signature(sys.argv[1], sys.argv[2])
metric = ReleasedMetric.load(sys.argv[1])
print(metric.transform([[0.1, 0.2, 0.3]]).shape, metric.distance([[0.1, 0, 0]], [[0.1, 0, 0]])[0])
print(round(metric.certificate.epsilon, 2), "pairveil[verify]" in metric._repr_html_())
"""
    done = receive(code, handed_over / "release", handed_over / "key.pem.pub")
    assert done.stdout.splitlines() == ["(1, 3) 0.0", "2.0 True"], done.stderr


def test_a_linkage_model_is_applied(tmp_path):
    ReleasedLinkage((np.array([0.2, 0.8]),), (np.array([0.9, 0.1]),), 0.5).save(tmp_path / "link")
    code = """
from pairveil.linkage import ReleasedLinkage
print(ReleasedLinkage.load(sys.argv[1]).match_weights([[1]]).round(1))
"""
    assert receive(code, tmp_path / "link").stdout == "[3.]\n"


def test_an_error_curve_is_checked_as_a_metric_is(tmp_path):
    y, people = np.repeat([1, -1], 200), np.arange(800).reshape(-1, 2)
    curve = error_curve(np.where(y > 0, 0.9, 0.1), y, people, 2.0, 1e-5, (0, 1))
    curve.save(tmp_path / "curve")
    done = receive(COMMAND, "certificate", tmp_path / "curve")
    said = " ".join(done.stderr.split())
    assert (
        "the file is the certified one, not signed. Recomputing epsilon needs the package" in said
    )
    assert 'pip install "pairveil[verify]"' in said


def test_raw_rows_need_tables_and_say_so(tmp_path):
    schema = Schema((NumberColumn("age", bounds=(0.0, 100.0), fill=50.0),))
    metric = ReleasedMetric(np.eye(len(schema.feature_names)), schema=schema)
    metric.save(tmp_path / "raw")
    code = """
from pairveil import ReleasedMetric
metric = ReleasedMetric.load(sys.argv[1])
try:
    metric.transform({"age": [20]})
except ImportError as problem:
    print(problem)
"""
    assert 'pip install "pairveil[tables]"' in receive(code, tmp_path / "raw").stdout


def test_tables_are_enough_to_transform_one(handed_over, tmp_path):
    table, out = tmp_path / "people.csv", tmp_path / "projected.csv"
    table.write_text("id,a,b,c\nann,0.1,0.2,0.3\nbob,0.2,0.2,0.1\n")
    asked = ("transform", handed_over / "release", table, "-o", out)
    assert 'pip install "pairveil[tables]"' in " ".join(receive(COMMAND, *asked).stderr.split())
    brought = tuple(one for one in LEARNING if one not in TABLES)
    done = receive(COMMAND, *asked, absent=brought)
    assert (done.returncode, "2 people in 3 dimensions" in done.stdout) == (0, True), done.stderr
    assert out.read_text().startswith('"id","component_1"')


def test_a_name_that_needs_more_says_which_extra():
    done = receive("from pairveil import DPPMetricLearner")
    assert done.stderr.splitlines()[-1].endswith('install it with: pip install "pairveil[learn]"')
    asked = (
        "try:\n from pairveil.linkage import PrivateLinkageModel\nexcept ImportError as e: print(e)"
    )
    assert receive(asked).stdout.startswith("PrivateLinkageModel needs the package s")


def test_commands_say_which_extra_they_need(handed_over, tmp_path):
    code = COMMAND
    folder, key = handed_over / "release", handed_over / "key.pem.pub"
    done = receive(code, "certificate", folder, "--signer", key)
    assert (done.returncode, done.stdout) == (2, "")
    assert "signed by the holder of the key" in done.stderr  # what was checked is said
    advice = 'Recomputing epsilon needs the package scipy; install it with: pip install "pairveil[verify]"'
    assert advice in " ".join(done.stderr.split())
    changed = folder.with_name("changed")
    changed.mkdir()
    for file in folder.iterdir():
        (changed / file.name).write_bytes(file.read_bytes())
    (changed / "README.md").write_text("another")
    assert "was tampered with" in receive(code, "certificate", changed, "--signer", key).stderr
    done = receive(code, "demo", "--out", tmp_path / "demo")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "pairveil[learn]" in done.stderr
    assert receive(code, "--help").returncode == 0
