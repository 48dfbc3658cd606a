"""Budgets, dry runs, and being stopped: nothing is spent unseen, nothing is left half-written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock
from running import PAIRVEIL, environment
from running import run_here as run

from pairveil.release.metric import ReleasedMetric


def fit(files: Path, *words: object, cwd: Path) -> list[str]:
    return [
        "fit",
        "--no-scale",
        str(files / "people.csv"),
        str(files / "pairs.csv"),
        *map(str, words),
    ]


def test_a_ledger_refuses_what_exceeds_it(files: Path, tmp_path: Path) -> None:
    words = fit(files, "--epsilon", 1, "--ledger", "budget.json", cwd=tmp_path)
    first = run(*words, "--budget", 1.2, "-o", "one", cwd=tmp_path)
    assert first.code == 0, first.err
    assert "0 is spent, 1 will be after this" in first.out
    charged = (tmp_path / "budget.json").read_bytes()
    assert len(json.loads(charged)["entries"]) == 1
    for more in (["-o", "two"], ["--dry-run"], ["-o", "two", "--json"]):
        refused = run(*words, *more, cwd=tmp_path)
        assert refused.code == 3
        assert "of a budget of 1.2" in refused.err
        assert len(refused.err.splitlines()) == 1
    assert (tmp_path / "budget.json").read_bytes() == charged
    assert not (tmp_path / "two").exists()


def test_why_a_ledger_grows_by_more_than_was_asked_is_told_before_it_is_charged(
    files: Path, tmp_path: Path
) -> None:
    words = fit(files, "--epsilon", 1, "--ledger", "budget.json", cwd=tmp_path)
    first = run(*words, "--budget", 9, "-o", "one", cwd=tmp_path)
    assert "counts as a person does" not in first.out
    same = run(*words, "--dry-run", cwd=tmp_path)
    assert "counts as a person does" not in same.out
    other = run(*words, "--dry-run", "--select", "all", cwd=tmp_path)
    assert "These pairs are not those of an earlier release" in other.out


def test_a_dry_run_touches_nothing(files: Path, tmp_path: Path) -> None:
    words = fit(files, "--dry-run", "--ledger", "budget.json", "--budget", 3, cwd=tmp_path)
    assert run(*words, cwd=tmp_path).code == 0
    said = run(*words, "--json", cwd=tmp_path).json
    assert said["out"] is None
    assert 0.99 < said["certificate"]["epsilon"] <= 1.0
    assert list(tmp_path.iterdir()) == []


def test_a_release_is_not_overwritten_unasked(files: Path, release: Path) -> None:
    before = (release / "certificate.json").read_bytes()
    done = run(*fit(files, "-o", release, cwd=files), cwd=files)
    assert done.code == 2
    assert "say --overwrite" in done.err
    assert (release / "certificate.json").read_bytes() == before


def test_the_same_command_is_charged_once_though_it_may_overwrite(
    files: Path, tmp_path: Path
) -> None:
    """It cannot tell a run that was killed at its end from a whole one; without its checkpoint it is new."""
    words = [
        *fit(files, "-o", "out", cwd=tmp_path),
        "--ledger",
        "b.json",
        "--budget",
        3,
        "--overwrite",
    ]
    words += ["--checkpoint", "kept"]
    made = [run(*words, "--json", cwd=tmp_path).json["certificate"] for _ in range(2)]
    assert made[0] == made[1]
    assert len(json.loads((tmp_path / "b.json").read_text())["entries"]) == 1
    # It is of what was said of the files too, and what they hold may be other: that is said under -q.
    other = run(*words, "--zero-means", "similar", cwd=tmp_path)
    assert other.code == 2
    assert "is of another fit" in other.err
    assert "going on from kept" in run(*words, "-q", cwd=tmp_path).err
    (tmp_path / "kept").unlink()
    assert "epsilon 1 is spent again" in run(*words, cwd=tmp_path).out
    assert len(json.loads((tmp_path / "b.json").read_text())["entries"]) == 2


def test_what_is_spent_and_what_may_not_be_used_is_said(files: Path, tmp_path: Path) -> None:
    words = fit(files, "-o", "new", cwd=tmp_path)
    first = run(*words, cwd=tmp_path)
    assert sum(line.startswith("No ledger: ") for line in first.out.splitlines()) == 1
    assert "Overwriting" not in first.out
    assert first.out.splitlines()[-1].endswith("about one person. A coin gets 50.")
    again = run(*words, "--overwrite", "--ledger", "b.json", "--budget", 3, cwd=tmp_path)
    assert (
        "Overwriting new: what its release spent stays spent, and epsilon 1 is spent" in again.out
    )
    assert "No ledger" not in again.out
    seeded = run(*words, "--overwrite", "--seed", 1, "--report", cwd=tmp_path)
    assert seeded.code == 0, seeded.err
    last = seeded.out.splitlines()[-1]
    assert "Do not use, not for release: it was made with a seed" in last
    assert "at most" not in last.lower()
    said = run(*words, "--overwrite", "--seed", 1, "--json", cwd=tmp_path).json
    assert (said["verdict"]["usable"], said["verdict"]["in_100"]) == (False, {})


def test_the_third_release_headlines_the_total(files: Path, tmp_path: Path) -> None:
    words = fit(files, "--ledger", "b.json", cwd=tmp_path)
    for i, more in enumerate((["--budget", 3], [], ["--report"])):
        planned = (
            run(*words, *more[:2], "--dry-run", "--json", cwd=tmp_path).json if i < 2 else None
        )
        assert planned is None or planned["releases"]["count"] == i + 1  # before it is charged
        done = run(*words, *more, "-o", f"r{i}", cwd=tmp_path)
        assert done.code == 0, done.err
    assert "All 3 releases together: at most 68" in done.out.splitlines()[-1]
    page = (tmp_path / "r2" / "report.html").read_text(encoding="utf-8")
    first = page[: page.index("What was released")]
    assert "All 3 releases together: at most 68" in first
    assert "at most 61" not in first
    shown = run("certificate", "r2", cwd=tmp_path)
    assert "All 3 releases together: at most 68" in shown.out
    said = run("certificate", "r2", "--json", cwd=tmp_path).json["verdict"]
    assert (said["in_100"], said["releases"]) == ({"relationship": 68, "person": 83}, 3)
    # The receiver has the folder alone: the total is the sender's statement, in a file that can be signed.
    summary = json.loads((tmp_path / "r2" / "summary.json").read_text())
    assert 0.67 < summary["budget"]["best_guess"]["relationship"] < 0.68
    del summary["budget"]["best_guess"]
    (tmp_path / "r2" / "summary.json").write_text(json.dumps(summary))
    assert "no promise in common" in run("certificate", "r2", cwd=tmp_path).out


@pytest.mark.parametrize("command", ["link", "threshold"])
def test_models_and_curves_say_the_same_as_fits(tmp_path: Path, command: str) -> None:
    """A seed, a second release from one ledger, and what is spent again."""
    rows = range(4000)
    ends = [f"p{2 * i},p{2 * i + 1},{'same' if i % 2 else 'different'}" for i in rows]
    levels = [f"p{2 * i},p{2 * i + 1},{i % 2},{(i // 2) % 2}" for i in rows]
    scored = [f"{end},{i % 2 * 0.6 + 0.2}" for i, end in zip(rows, ends, strict=True)]
    tables = {
        "pairs.csv": ["left,right,label", *ends],
        "levels.csv": ["left,right,name,dob", *levels],
        "scores.csv": ["left,right,label,score", *scored],
    }
    for name, lines in tables.items():
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
    words = {
        "link": ["link", "levels.csv", "pairs.csv", "--n-levels", "2,2", "--epsilon", 1],
        "threshold": [
            "threshold",
            "scores.csv",
            "--score-range",
            "0,1",
            "--epsilon",
            1,
            "--fmr",
            0.1,
        ],
    }[command]
    seeded = run(*words, "--seed", 1, "-o", "seeded", cwd=tmp_path)
    assert "Written in seeded" in seeded.out
    assert "Do not use, not for release: it was made with a seed" in seeded.out
    for more in (["--budget", 5], ["--overwrite"]):
        done = run(*words, "--ledger", "b.json", *more, "-o", "out", cwd=tmp_path)
        assert done.code == 0, done.err
    assert "Overwriting out: what its release spent stays spent" in done.out
    assert "Released in out" in done.out
    for said in (done, run("certificate", "out", cwd=tmp_path)):
        assert "All 2 releases together: at most" in said.out
    told = run(*words, "--ledger", "b.json", "--json", "-o", "third", cwd=tmp_path).json["verdict"]
    checked = run("certificate", "third", "--json", cwd=tmp_path).json["verdict"]
    # `certificate` recomputes, which a command that has just made it does not.
    assert told | {"checked": ""} == checked | {"checked": ""}
    assert told["releases"] == 3
    assert told["headline"].startswith("All 3 releases together: at most")


STOP_WHILE_LEARNING = """
import os, signal
from pairveil.engine.engine import Engine
answer, calls = Engine.answer, []
def stop(self, *a, **k):
    calls.append(1)
    if len(calls) == 40:
        os.kill(os.getpid(), signal.SIGINT)
    return answer(self, *a, **k)
Engine.answer = stop
"""
STOP_WHILE_WRITING = """
import os, signal
from pairveil.release.release import Release
readme = Release.readme
def stop(self):
    os.kill(os.getpid(), signal.SIGINT)
    return readme(self)
Release.readme = stop
"""
STOP_WHILE_ATTACKING = """
import os, signal
import pairveil.audit.targets as targets
targets.audit_target = lambda *a, **k: os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.parametrize("when", [STOP_WHILE_LEARNING, STOP_WHILE_WRITING], ids=["learn", "write"])
def test_ctrl_c_leaves_no_half_written_release(when: str, files: Path, tmp_path: Path) -> None:
    words = fit(files, "--ledger", "budget.json", "--budget", 3, "-o", "new", cwd=tmp_path)
    code = f"import sys; sys.argv = {['pairveil', *words]!r}\n{when}\n"
    code += "from pairveil.cli.app import main; main()"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment(),
                          capture_output=True, encoding="utf-8", check=False)  # fmt: skip
    assert done.returncode == 130, done.stderr
    assert "nothing half-written was left behind" in done.stderr
    assert "Traceback" not in done.stderr
    left = {entry.name for entry in tmp_path.iterdir()}
    assert left - {"budget.json.lock"} == {"budget.json"}
    # Charged before the first noise was drawn, and it stays so.
    assert len(json.loads((tmp_path / "budget.json").read_text())["entries"]) == 1
    assert "what the ledger was charged stays charged" in done.stderr
    assert "release is complete" not in done.stderr


def test_ctrl_c_during_the_attack_says_what_stays(files: Path, tmp_path: Path) -> None:
    words = fit(files, "--ledger", "budget.json", "--budget", 3, "-o", "new", "--report", "--audit",
                cwd=tmp_path)  # fmt: skip
    code = f"import sys; sys.argv = {['pairveil', *words]!r}\n{STOP_WHILE_ATTACKING}\n"
    code += "from pairveil.cli.app import main; main()"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment(),
                          capture_output=True, encoding="utf-8", check=False)  # fmt: skip
    assert done.returncode == 130, done.stderr
    assert "what the ledger was charged stays charged" in done.stderr
    assert len(json.loads((tmp_path / "budget.json").read_text())["entries"]) == 1
    assert ("the release is complete in new" in done.stderr) == (tmp_path / "new").exists()


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("when", [STOP_WHILE_LEARNING, STOP_WHILE_WRITING], ids=["learn", "write"])
def test_a_killed_fit_goes_on_and_the_ledger_is_charged_once(
    when: str, files: Path, tmp_path: Path
) -> None:
    # The same command again, as a job queue would give it. A second charge of 1 would exceed 1.2.
    words = fit(files, "--ledger", "budget.json", "--budget", 1.2, "--checkpoint", "fit.checkpoint",
                "-o", "new", cwd=tmp_path)  # fmt: skip
    code = f"import sys; sys.argv = {['pairveil', *words]!r}\n{when.replace('SIGINT', 'SIGKILL')}\n"
    code += "from pairveil.cli.app import main; main()"
    died = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment(),
                          capture_output=True, encoding="utf-8", check=False)  # fmt: skip
    assert died.returncode == -signal.SIGKILL, died.stderr
    charged = (tmp_path / "budget.json").read_bytes()
    assert len(json.loads(charged)["entries"]) == 1
    assert not (tmp_path / "new").exists()
    kept = (tmp_path / "fit.checkpoint").read_bytes()
    again = run(*words, cwd=tmp_path)
    assert again.code == 0, again.err
    assert "nothing more is spent" in again.out
    entries = [
        json.loads(text)["entries"] for text in (charged, (tmp_path / "budget.json").read_text())
    ]
    marks = [entry.pop("checkpoint") for (entry,) in entries]
    assert entries[0] == entries[1]  # nothing was spent; the ledger knows how far the fit has come
    assert marks[0][0] == marks[1][0]
    assert (marks[0] == marks[1]) == (when is STOP_WHILE_WRITING)
    assert run("certificate", "new", "--json", cwd=tmp_path).json["valid"]
    assert not (tmp_path / "fit.checkpoint").exists()  # released: there is nothing to resume
    if when is STOP_WHILE_WRITING:  # every sum had been drawn: none is drawn anew
        (tmp_path / "fit.checkpoint").write_bytes(kept)
        assert run(*words[:-1], "same", cwd=tmp_path).code == 0
        new, same = (ReleasedMetric.load(tmp_path / name) for name in ("new", "same"))
        assert (new.components == same.components).all()
        return
    # The checkpoint as it was when the fit was killed: whoever went on from it would draw anew.
    (tmp_path / "fit.checkpoint").write_bytes(kept)
    for more in (["-o", "copy"], ["--dry-run"]):
        older = run(*words[:-2], *more, cwd=tmp_path)
        assert older.code == 2
        assert "older copy" in older.err
    assert not (tmp_path / "copy").exists()
    (tmp_path / "fit.checkpoint").unlink()
    # Without its checkpoint it is a new fit: the budget does not allow one.
    refused = run(*words[:-1], "third", cwd=tmp_path)
    assert refused.code == 3
    assert "of a budget of 1.2" in refused.err
    assert not (tmp_path / "fit.checkpoint").exists()


def test_a_checkpoint_is_for_releases(files: Path, tmp_path: Path) -> None:
    words = fit(files, "--checkpoint", "here", "--seed", 1, "-o", "new", cwd=tmp_path)
    done = run(*words, cwd=tmp_path)
    assert done.code == 2
    assert "leave --seed out" in done.err
    (tmp_path / "here").write_text("something else")
    foreign = run(*fit(files, "--checkpoint", "here", "-o", "new", cwd=tmp_path), cwd=tmp_path)
    assert foreign.code == 2
    assert "not a checkpoint" in foreign.err
    assert (tmp_path / "here").read_text() == "something else"


SECOND_RUN_WHILE_WRITING = """
import sys
from pairveil.release.release import Release
sys.path.insert(0, {folder!r})
from running import run
readme = Release.readme
def meanwhile(self):
    done = run(*{words!r}, "-o", "second", cwd=".")
    print("second run:", done.code, done.err, file=sys.stderr)
    return readme(self)
Release.readme = meanwhile
"""


def test_a_checkpoint_is_held_until_its_release_is_written(files: Path, tmp_path: Path) -> None:
    words = fit(files, "--ledger", "budget.json", "--checkpoint", "fit.ckpt", cwd=tmp_path)
    first = [*words, "--budget", "3", "-o", "first"]
    code = f"import sys; sys.argv = {['pairveil', *first]!r}\n"
    code += SECOND_RUN_WHILE_WRITING.format(folder=str(Path(__file__).parent), words=words)
    code += "from pairveil.cli.app import main; main()"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment(),
                          capture_output=True, encoding="utf-8", check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stderr.split())
    assert "second run: 2" in said
    assert "another fit is using this checkpoint" in said
    assert {entry.name for entry in tmp_path.iterdir()} - {"budget.json.lock", "fit.ckpt.lock"} == {
        "budget.json",
        "first",
    }


def test_a_dry_run_refuses_another_fits_checkpoint(files: Path, tmp_path: Path) -> None:
    words = fit(files, "--ledger", "budget.json", "--checkpoint", "fit.ckpt", cwd=tmp_path)
    code = f"import sys; sys.argv = {['pairveil', *words, '--budget', '3', '-o', 'new']!r}\n"
    code += STOP_WHILE_LEARNING + "from pairveil.cli.app import main; main()"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment(),
                   capture_output=True, check=False)  # fmt: skip
    before = (tmp_path / "fit.ckpt").read_bytes()
    assert "nothing more is spent" in run(*words, "--dry-run", cwd=tmp_path).out
    for more in (["--dry-run"], ["-o", "other"]):
        refused = run(*words, "--epsilon", 0.5, *more, cwd=tmp_path)
        assert refused.code == 2
        assert "of another fit" in refused.err
        assert "nothing more is spent" not in refused.out
    assert (tmp_path / "fit.ckpt").read_bytes() == before


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_before_the_charge_spends_nothing(files: Path, tmp_path: Path) -> None:
    words = fit(files, "--ledger", "budget.json", "-o", "new", cwd=tmp_path)
    made = run(*words[:-2], "--budget", 3, "-o", "first", cwd=tmp_path)
    assert made.code == 0, made.err
    before = (tmp_path / "budget.json").read_bytes()
    with FileLock(tmp_path / "budget.json.lock"):  # the fit must wait for the ledger
        waiting = subprocess.Popen([*PAIRVEIL, *words], cwd=tmp_path, env=environment(),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
        assert waiting.stdout is not None
        while "Expected effect" not in (line := waiting.stdout.readline()):
            assert line, "the fit ended before it had said its plan"
        waiting.send_signal(signal.SIGINT)
        _, said = waiting.communicate(timeout=300)
    assert waiting.returncode == 130
    assert "stopped" in said
    assert (tmp_path / "budget.json").read_bytes() == before
    assert not (tmp_path / "new").exists()


def test_a_dry_runs_json_does_not_depend_on_contents(tmp_path: Path) -> None:
    """What is printed before anything is spent may tell who is paired, never what the pairs hold."""
    (tmp_path / "pairs.csv").write_text(
        "left,right,label\n" + "".join(f"{i},{i + 1},same\n" for i in range(40))
    )
    printed = []
    for value, label in (("0.1", "same"), ("9.0", "different")):
        rows = [f"{i},{value if i == 7 else '0.1'},{i / 100}\n" for i in range(41)]
        (tmp_path / "people.csv").write_text("id,a,b\n" + "".join(rows))
        text = (tmp_path / "pairs.csv").read_text().splitlines()
        text[5] = text[5].rsplit(",", 1)[0] + f",{label}"
        (tmp_path / "pairs.csv").write_text("\n".join(text) + "\n")
        done = run(
            "fit", "--no-scale", "people.csv", "pairs.csv", "--dry-run", "--json", cwd=tmp_path
        )
        assert done.code == 0, done.err
        printed.append(done.out)
    assert printed[0] == printed[1]
    assert "clipped" in done.err  # the operator is told, off the record
