"""`fit --parties`, `party` and `federate simulate` on files, over TLS on this machine."""

import hashlib
import io
import json
import socket
import sys
import threading
import time
from contextlib import ExitStack
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from joint import hospital
from pyarrow import csv

from pairveil import Certificate, PrivacyLedger, ReleasedMetric
from pairveil.cli.terminal import Terminal
from pairveil.errors import InputError, PartyError
from pairveil.jobs.fit import FitJob
from pairveil.jobs.job import Telling, about_of, options
from pairveil.jobs.parties import FederateJob, PartyJob
from pairveil.parties.transport import Invitation, join, listening
from pairveil.release.release import SIGNATURE_FILE
from pairveil.release.signing import check_signature, new_key, sign

SCHEMA = """
version = 1
decimal = "."
[columns.id]
type = "id"
[columns.a]
type = "number"
bounds = [-1, 1]
[columns.b]
type = "number"
bounds = [-1, 1]
"""


def write(folder, first, **about):
    """A hospital's two tables."""
    data = hospital(first, n_features=2, **about)
    people = pa.table({"id": data.ids, "a": data.features[:, 0], "b": data.features[:, 1]})
    ends = data.ids[data.pairs]
    pairs = pa.table({"left": ends[:, 0], "right": ends[:, 1], "label": data.labels})
    folder.mkdir()
    csv.write_csv(people, folder / "people.csv")
    csv.write_csv(pairs, folder / "pairs.csv")
    return {"features": str(folder / "people.csv"), "pairs": str(folder / "pairs.csv")}


class Hearing(Telling):
    """Keeps the invitation that a coordinator says, and what else it tells."""

    def __init__(self):
        super().__init__()
        self.heard, self.said, self.invitation = threading.Event(), [], None

    def address(self, sentence):
        if "--join" in sentence:
            self.invitation = sentence.split()[-1]
            self.heard.set()

    def say(self, *sentences):
        self.said += sentences


class Tables(Telling):
    """Keeps the tables that a job shows."""

    def __init__(self):
        super().__init__()
        self.tables = []

    def table(self, title, columns, rows, *more, **about):
        del columns, more, about
        self.tables.append((title, rows))


def contents(folder):
    return {one.name: one.read_bytes() for one in folder.iterdir()}


def run_jobs(coordinator, parties):
    """What the coordinator's job and those of the parties return or raise."""
    hearing, results = Hearing(), {}

    def run(name, work):
        try:
            results[name] = work()
        except Exception as problem:
            results[name] = problem
            hearing.heard.set()  # or nobody would know that there is nothing to wait for

    threads = [threading.Thread(target=run, args=("coordinator", lambda: coordinator.run(hearing)))]
    threads[0].start()
    hearing.heard.wait(20)
    for about in parties if hearing.invitation else ():
        tell = about.pop("tell", None) or Telling()
        job = PartyJob(join=hearing.invitation, wait=20.0, **about)
        work = partial(job.run, tell)
        threads.append(threading.Thread(target=run, args=(about["called"], work)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    return results, hearing


@pytest.fixture
def schema(tmp_path):
    file = tmp_path / "schema.toml"
    file.write_text(SCHEMA)
    return file


def test_three_parties_write_one_release_that_all_can_sign(tmp_path, schema):
    names, common = ["East", "North", "West"], {"schema": schema, "disjoint": True}
    parties = [
        {
            **write(tmp_path / name, 10_000 * i), **common, "called": name, "out": tmp_path / f"{name}-out",
            "ledger": tmp_path / f"{name}.json", "budget": 3.0,
        }
        for i, name in enumerate(names)
    ]  # fmt: skip
    coordinator = FitJob(
        parties=3, schema=schema, kappa_rule="disjoint", out=tmp_path / "joint", wait=20.0
    )
    results, hearing = run_jobs(coordinator, parties)
    assert not [one for one in results.values() if isinstance(one, Exception)], results
    made = results["coordinator"]
    assert made["parties"] == names
    assert Certificate.from_dict(made["certificate"]).verify().problems == ()
    assert made["verdict"]["usable"]
    metric = ReleasedMetric.load(tmp_path / "joint")
    assert metric.certificate.parties["colluders"] == 1
    assert metric.raw_names == ("a", "b")
    for name in names:
        assert results[name]["fingerprint"] == made["fingerprint"]
        assert results[name]["verdict"] == made["verdict"]
        ours, theirs = contents(tmp_path / "joint"), contents(tmp_path / f"{name}-out")
        assert ours == theirs
        ledger = PrivacyLedger.open(tmp_path / f"{name}.json")
        assert ledger.spent() == pytest.approx(made["certificate"]["epsilon"])
    assert any("East (300), North (300), West (300)" in one for one in hearing.said)
    # All sign one folder; whoever changes it has nobody's signature.
    keys = {name: new_key(tmp_path / f"{name}.pem") for name in names}
    for name in [*names, "East"]:
        sign(tmp_path / "joint", tmp_path / f"{name}.pem")
    assert all(check_signature(tmp_path / "joint", key).uncovered == () for key in keys.values())
    envelope = json.loads((tmp_path / "joint" / SIGNATURE_FILE).read_text())
    assert len(envelope["signatures"]) == 3
    (tmp_path / "joint" / "README.md").write_text("changed")
    sign(tmp_path / "joint", tmp_path / "West.pem")
    assert check_signature(tmp_path / "joint", keys["West"])
    for name in ("East", "North"):
        with pytest.raises(InputError, match="wrongly signed"):
            check_signature(tmp_path / "joint", keys[name])


class Telephone(Telling):
    """An operator who reads the fingerprint out, and types what another one reads."""

    def __init__(self, misread=""):
        super().__init__()
        self.seen, self.read, self.other, self.misread = threading.Event(), "", None, misread

    def address(self, sentence):
        self.read = sentence.rpartition(": ")[2]
        self.seen.set()

    def ask(self, question):
        assert "another party" in question
        assert self.other.seen.wait(20)
        return f" {self.other.read}{self.misread}\n"


@pytest.mark.parametrize("misread", ["", "0"])
def test_nobody_is_charged_before_the_fingerprints_are_compared(tmp_path, schema, misread):
    east, west = Telephone(), Telephone(misread)
    east.other, west.other = west, east
    parties = [
        {
            **write(tmp_path / name, 10_000 * i), "schema": schema, "called": name, "compare": True,
            "out": tmp_path / f"{name}-out", "ledger": tmp_path / f"{name}.json", "budget": 3.0, "tell": tell,
        }
        for i, (name, tell) in enumerate([("East", east), ("West", west)])
    ]  # fmt: skip
    results, _ = run_jobs(
        FitJob(parties=2, schema=schema, out=tmp_path / "joint", wait=20.0), parties
    )
    charged = [len(PrivacyLedger.open(tmp_path / f"{n}.json").entries) for n in ("East", "West")]
    if not misread:
        assert results["East"]["fingerprint"] == east.read == west.read
        assert charged == [1, 1]
        return
    assert "what was typed is another fingerprint" in str(results["West"])
    assert "what was typed is another fingerprint" in str(results["East"])
    assert charged == [0, 0]


def test_a_terminal_asks_and_gives_programs_where_to_join_on_the_other_stream(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("ab12 cd34\n"))
    terminal = Terminal(json=True)
    assert terminal.ask("Fingerprint?") == "ab12 cd34\n"
    terminal.address("Parties join with ...")
    said = capsys.readouterr()
    assert said.out == ""
    assert "Fingerprint?" in said.err
    assert "Parties join with" in said.err


def test_a_party_with_another_schema_is_refused_before_anything_is_charged(tmp_path, schema):
    other = tmp_path / "other.toml"
    other.write_text(SCHEMA.replace("[-1, 1]", "[-1, 2]"))
    parties = [
        {
            **write(tmp_path / name, 10_000 * i), "schema": file, "called": name,
            "out": tmp_path / f"{name}-out", "ledger": tmp_path / f"{name}.json", "budget": 3.0,
        }
        for i, (name, file) in enumerate([("East", schema), ("West", other)])
    ]  # fmt: skip
    results, _ = run_jobs(
        FitJob(parties=2, schema=schema, out=tmp_path / "joint", wait=20.0), parties
    )
    assert "it has another schema" in str(results["West"])
    assert "it has another schema" in str(results["coordinator"])
    assert "no ledger was charged" in str(results["East"])
    assert not any(
        PrivacyLedger.open(tmp_path / f"{name}.json").entries for name in ("East", "West")
    )
    assert not list(tmp_path.glob("*/certificate.json"))


def test_too_few_parties_end_the_wait_with_a_sentence(tmp_path, schema):
    results, _ = run_jobs(FitJob(parties=2, schema=schema, out=tmp_path / "joint", wait=1.0), [])
    assert "0 of 2 parties joined in 1 seconds: nothing was charged" in str(results["coordinator"])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"parties": 2, "no_scale": True, "features": "people.csv"}, "--features does not go"),
        ({"parties": 2, "no_scale": True, "seed": 1}, "--seed does not go"),
        ({"parties": 2, "no_scale": True, "checkpoint": "c"}, "--checkpoint does not go"),
        ({"parties": 2, "no_scale": True, "listen": "here"}, "--listen takes HOST:PORT"),
        ({"parties": 2, "no_scale": True, "listen": "127.0.0.1:99999"}, "--listen takes HOST:PORT"),
        ({"parties": 2, "no_scale": True, "mechanism": "laplace"}, "pure epsilon"),
        ({"parties": 2}, "nothing says how the columns are brought to scale"),
        ({"no_scale": True}, "FEATURES are missing"),
        (
            {"features": "people.csv", "no_scale": True, "colluders": 2},
            "--colluders goes with --parties",
        ),
    ],
)
def test_options_that_say_nothing_to_a_coordinator_are_refused(tmp_path, options, problem):
    with pytest.raises(InputError, match=problem):
        FitJob(out=tmp_path / "out", **options).run()


def test_the_longest_wait_is_one_that_sockets_take():
    for kind in (FitJob, PartyJob):
        (wait,) = [one for one in options(kind) if one.name == "wait"]
        with socket.socket() as one:
            one.settimeout(about_of(wait).limits["max"])


def test_strangers_are_sent_away_and_an_impostor_is_not_spoken_to():
    admitted = []
    with listening("127.0.0.1", 0) as listener:
        true = listener.invitation
        waiting = threading.Thread(
            target=lambda: admitted.extend(listener.admit(1, patience=5.0, wait=20.0))
        )
        waiting.start()
        with pytest.raises(PartyError, match="another key than the invitation names"):
            join(Invitation(true.host, true.port, bytes(32), true.token), 5.0)
        stranger = join(Invitation(true.host, true.port, true.pin, bytes(16)), 5.0)
        with pytest.raises((EOFError, OSError)):
            stranger.receive(100)
        guest = join(true, 5.0)
        waiting.join()
        assert len(admitted) == 1
        admitted[0].send(b"x" * 100_000)
        assert guest.receive(100_000) == b"x" * 100_000
        admitted[0].send(b"x" * 101)
        with pytest.raises(EOFError):  # longer than was said to be read
            guest.receive(100)
        begun = time.monotonic()
        slow, silent = join_again(listener, true)
        with pytest.raises(TimeoutError):
            slow.receive(10)
        assert time.monotonic() - begun < 5
        for channel in (stranger, guest, admitted[0], slow, silent):
            channel.close()
    with pytest.raises(PartyError, match="no coordinator answers"):
        join(true, 1.0)


def test_strangers_who_say_nothing_hold_nobody_up():
    with ExitStack() as open_, listening("127.0.0.1", 0) as listener:
        one, admitted = listener.invitation, []
        for _ in range(120):  # more than are heard at once
            silent = open_.enter_context(socket.socket())
            silent.setblocking(False)
            silent.connect_ex((one.host, one.port))
        waiting = threading.Thread(target=lambda: admitted.extend(listener.admit(2, 20.0, 20.0)))
        waiting.start()
        begun = time.monotonic()
        guests = [join(one, 20.0), join(one, 20.0)]
        waiting.join()
        assert time.monotonic() - begun < 10
        for channel in (*admitted, *guests):
            channel.close()


def test_a_coordinator_listens_at_an_address_of_version_6():
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            pass
    except OSError:
        pytest.skip("this machine has no such addresses")
    with listening("[::1]", 0) as listener:
        admitted = []
        waiting = threading.Thread(target=lambda: admitted.extend(listener.admit(1, 5.0, 20.0)))
        waiting.start()
        guest = join(Invitation.read(str(listener.invitation)), 5.0)
        waiting.join()
        guest.send(b"hello")
        assert admitted[0].receive(100) == b"hello"
        guest.close()
        admitted[0].close()


def join_again(listener, invitation):
    """A channel whose other end says nothing."""
    found = []
    waiting = threading.Thread(target=lambda: found.extend(listener.admit(1, 0.5, 20.0)))
    waiting.start()
    channel = join(invitation, 0.5)
    waiting.join()
    return channel, found[0]


def test_federate_simulate_divides_people_by_site(tmp_path):
    parts = [hospital(10_000 * i, n_features=2) for i in range(3)]
    people = pa.concat_tables(
        pa.table(
            {
                "id": part.ids,
                "a": part.features[:, 0],
                "b": part.features[:, 1],
                "site": np.repeat([f"s{i}"], part.n_people),
            }
        )
        for i, part in enumerate(parts)
    )
    ends = np.vstack([part.ids[part.pairs] for part in parts] + [[[0, 10_000]]])
    labels = np.concatenate([part.labels for part in parts] + [[1]])
    csv.write_csv(people, tmp_path / "people.csv")
    pairs = pa.table({"left": ends[:, 0], "right": ends[:, 1], "label": labels})
    csv.write_csv(pairs, tmp_path / "pairs.csv")
    asked = {
        "what": "simulate", "features": str(tmp_path / "people.csv"), "pairs": str(tmp_path / "pairs.csv"),
        "site": "site", "no_scale": True, "seed": 0,
    }  # fmt: skip
    for rule in ("sum", "union", "disjoint"):
        made = FederateJob(kappa_rule=rule, **asked).run()
        assert made["parties"] == ["s0", "s1", "s2"]
        assert made["n_pairs_across"] == 1
        certificate = Certificate.from_dict(json.loads(json.dumps(made["certificate"])))
        assert certificate.verify().problems == ()
        assert certificate.kappas["person"] == (3 if rule == "sum" else 1)
        assert not certificate.for_release
    ids = np.concatenate([part.ids for part in parts])
    sites = [f"s{i:02d}" for i in range(12)]
    cut = np.minimum(
        np.arange(len(ids)) // 2 * 2 // 60, 11
    )  # 30 pairs a site, and the rest in the last
    people = people.set_column(3, "site", pa.array([sites[place] for place in cut]))
    csv.write_csv(people, tmp_path / "people.csv")
    heard = Tables()
    FederateJob(kappa_rule="disjoint", **asked | {"epsilon": 5.0}).run(heard)
    (rows,) = [rows for title, rows in heard.tables if title == "Who took part"]
    assert [row[1] for row in rows] == ["30"] * 11 + ["570"]
    with pytest.raises(InputError, match="two sites at least"):
        FederateJob(**asked | {"site": "id", "columns": ["a", "b"]}).run()


def test_an_invitation_is_read_back_and_nothing_else_is():
    made = Invitation("[::1]", 8788, hashlib.sha256(b"x").digest(), bytes(16))
    assert Invitation.read(f" {made}\n") == made
    for wrong in ("", "host:1", f"{made}0", f"host/{made}", str(made).replace("8788", "99999")):
        with pytest.raises(InputError, match="the whole line"):
            Invitation.read(wrong)
