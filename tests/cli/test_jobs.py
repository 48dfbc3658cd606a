"""One job, three faces: its fields are the options, its words the command, and Python runs it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from running import run_here as run

from pairveil.cli.app import JOBS, app
from pairveil.errors import InputError
from pairveil.jobs.fit import FitJob
from pairveil.jobs.job import Telling, about_of, options, spelling
from pairveil.jobs.pairs import KappaJob, SelectJob

COMMANDS = typer.main.get_command(app).commands


def test_python_gets_what_json_prints(files: Path) -> None:
    job = KappaJob(pairs=files / "pairs.csv")
    assert job.run() == run("kappa", "pairs.csv", "--json", cwd=files).json
    with pytest.raises(InputError, match="no column"):
        replace(job, left="nobody").run()


def test_a_fit_from_python_says_nothing_and_returns_its_verdict(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people, pairs = str(files / "people.csv"), str(files / "pairs.csv")
    out = str(tmp_path / "made")  # a name will do where a path is meant
    job = FitJob(features=people, pairs=pairs, no_scale=True, seed=0, out=out)
    made = job.run()
    assert (made["out"], made["verdict"]["usable"]) == (str(tmp_path / "made"), False)
    assert capsys.readouterr() == ("", "")
    with pytest.raises(InputError, match="--select must be one of paths, "):
        FitJob(features=people, pairs=pairs, select="stars")
    with pytest.raises(InputError, match="--select goes with PAIRS"):
        FitJob(features=people, classes="c", no_scale=True, select="forest").run()


@pytest.mark.parametrize(
    "words",
    [
        ["kappa", "pairs.csv", "--left", "a b", "--layout", "splink", "--quiet"],
        ["select", "pairs.csv", "--how", "forest", "--max-degree", "3"],
        ["fit", "p.csv", "q.csv", "--exclude", "a", "--exclude", "b,c", "--epsilon", "0.3", "--report"],
        ["fit", "p.csv", "--classes", "c", "--title=--audit", "--no-scale"],
    ],
)  # fmt: skip
def test_the_words_of_a_job_make_the_same_job(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    monkeypatch.setattr("pairveil.jobs.job.Job.run", lambda job, tell: made.append(job))
    app(args=words, standalone_mode=False)
    app(args=made[0].words(), standalone_mode=False)
    assert replace(made[0], given=None) == replace(made[1], given=None)
    assert sorted(made[0].words()) == sorted(words)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_every_option_has_help_and_stands_in_the_long_help(job: type, tmp_path: Path) -> None:
    assert all(about_of(one).help for one in options(job))
    named = [spelling(one) for one in options(job) if not about_of(one).metavar]
    command = COMMANDS[job.name]
    assert set(named) <= {word for one in command.params for word in one.opts}
    if job.shown:
        assert set(job.shown) <= {one.name for one in options(job)}
        short = run(job.name, "--help", cwd=tmp_path).out
        long = run(job.name, "--help-all", cwd=tmp_path).out
        assert all(word in long for word in named if word != "--classes")
        shown = set(re.findall(r"^│ (--[a-z-]+)", short, re.M))
        assert len(shown) <= 17
        if job.name == "fit":  # what every reader of two tables needs
            assert shown >= {"--schema", "--left", "--right", "--label", "--id", "--leave-out"}
        assert len(set(re.findall(r"^│ (--[a-z-]+)", long, re.M))) > len(shown)


def test_commands_stand_by_what_they_are_for(tmp_path: Path) -> None:
    page = run("--help", cwd=tmp_path).out
    panels = dict(re.findall(r"─ (\w+) ─+╮\n(.*?)╰", page, re.S))
    wanted = {
        "Release": "demo studio schema plan fit party federate link threshold evaluate",
        "Receive": "certificate report transform export sign",
        "Pairs": "kappa select design account",
        "Check": "attack audit",
    }
    for panel, names in wanted.items():
        assert re.findall(r"^│ ([a-z]+)", panels[panel], re.M) == names.split()


def test_a_fit_opens_with_what_it_spends_and_prepares_once(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pairveil.graph.kappa as graph
    import pairveil.learners.preparing as preparing

    counted: dict[str, int] = {"prepare": 0, "kappa": 0}

    def counting(name: str, do):
        def called(*args, **more):
            counted[name] += 1
            return do(*args, **more)

        return called

    from pairveil.engine.backends import local

    monkeypatch.setattr(local, "kappa", counting("kappa", graph.kappa))
    monkeypatch.setattr("pairveil.learners.base.plan_fit", counting("prepare", preparing.plan_fit))
    words = ["fit", "--no-scale", "people.csv", "pairs.csv", "-o", tmp_path / "new"]
    quiet = run(*words, "-q", cwd=files)
    assert quiet.code == 0, quiet.err
    assert counted == {"prepare": 1, "kappa": 2}  # of all pairs, and of those used
    shown = run(*words, "--overwrite", cwd=files).out.splitlines()
    assert shown[0] == "Spends epsilon 1 at delta 1e-05 to protect one relationship."
    assert shown[-1].endswith("A coin gets 50.")
    assert counted == {"prepare": 2, "kappa": 6}  # and of the two other selections, for the advice


def test_nobody_listens_unless_somebody_does(tmp_path: Path, files: Path) -> None:
    said: list[str] = []

    class Listening(Telling):
        talks = True

        def say(self, *sentences: str) -> None:
            said.extend(sentences)

    job = SelectJob(pairs=files / "pairs.csv", out=tmp_path / "kept.csv")
    assert job.run(Listening())["n_pairs"] < 180
    assert said[0].startswith("Kept ")


def test_the_class_that_a_schema_marks_is_that_of_the_public_table_too(
    files: Path, tmp_path: Path
) -> None:
    columns = [f'[columns.x{i}]\ntype = "number"\nbounds = [-1, 1]' for i in range(4)]
    facts = ['[columns.id]\ntype = "id"', *columns, '[columns.class]\ntype = "class"']
    (tmp_path / "schema.toml").write_text(
        "\n".join(["version = 1", *facts, 'values = ["well", "ill"]'])
    )
    lines = (files / "classes.csv").read_text(encoding="utf-8").splitlines()
    public = [lines[0], *(f"q{line}" for line in lines[1:])]
    (tmp_path / "public.csv").write_text("\n".join(public), encoding="utf-8")
    words = ["fit", files / "classes.csv", "--schema", "schema.toml", "--report", "--epsilon", 8]
    done = run(*words, "--public-test", "public.csv", "-o", "made", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "public.csv" in (tmp_path / "made" / "report.html").read_text(encoding="utf-8")
