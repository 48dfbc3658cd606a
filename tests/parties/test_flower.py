"""Parties that Flower connects: its SuperLink and SuperNodes carry TLS, and stand-ins for them where they are
not installed."""

import importlib.util
import os
import random
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from joint import hospitals
from test_party_commands import SCHEMA, contents, run_jobs, write

from pairveil import DPPMetricLearner
from pairveil.errors import InputError, MissingExtraError, PartyError
from pairveil.jobs.fit import FitJob
from pairveil.parties import Consent, Party, coordinate, flower, simulate, take_part, terms_for
from pairveil.parties.agreement import own_records
from pairveil.parties.transport import Invitation, join, listening

ROOT = Path(__file__).parents[2]
LEARNER = DPPMetricLearner(n_steps=2, learning_rate=0.1, max_grad_norm=1.0, random_state=0)
NAMES = ["party 1", "party 2", "party 3"]
PARTS = hospitals(3, n_pairs=50)


class Said(SimpleNamespace):
    """A message of the stand-in."""

    def __init__(self, content, node=None, kind="query", reply_to=None):
        super().__init__(content=content, node=node, kind=kind, reply_to=reply_to)

    def has_error(self):
        return self.content is None


class App:
    """An app of the stand-in: its functions stay what they are."""

    def query(self):
        return lambda function: function

    main = query


@pytest.fixture
def relay(monkeypatch):
    """The app that Flower runs, on a stand-in for Flower, in no hurry to look."""
    offered = {
        "app": {"ConfigRecord": dict, "RecordDict": dict, "Context": object, "Message": Said},
        "clientapp": {"ClientApp": App},
        "serverapp": {"ServerApp": App, "Grid": object},
    }
    for name, has in offered.items():
        module = ModuleType(f"flwr.{name}")
        vars(module).update(has)
        monkeypatch.setitem(sys.modules, f"flwr.{name}", module)
    monkeypatch.setitem(sys.modules, "flwr", ModuleType("flwr"))
    spec = importlib.util.spec_from_file_location(
        "relay", Path(flower.__file__).with_name("flower_app.py")
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module._SOON = module._LATER = 0.02
    return module


class Nodes:
    """SuperLink and SuperNodes of the stand-in: every message is an app's own thread."""

    def __init__(self, relay, places, change=lambda said: said):
        self.relay, self.places, self.change = relay, places, change
        self.answers, self.carried, self.n = {}, [], 0

    def get_node_ids(self):
        return list(range(len(self.places)))

    def push_messages(self, messages):
        numbers = []
        for message in messages:
            self.n += 1
            numbers.append(self.n)
            threading.Thread(target=self.work, args=(self.n, message), daemon=True).start()
        return numbers

    def work(self, number, message):
        node = {"pairveil": str(self.places[message.node])}
        context = SimpleNamespace(node_config=node, run_config={"wait": 20.0})
        answer = self.relay.ask_the_party(message, context)
        self.carried += [self.relay._said(message), self.relay._said(answer)]
        answer.content["pairveil"]["bytes"] = self.change(self.relay._said(answer))
        self.answers[number] = answer

    def pull_messages(self, numbers):
        return [self.answers.pop(n) for n in numbers if n in self.answers]


def config(invitation, parties=3, wait=20.0):
    """What `flower.submit` tells the app."""
    return {
        "coordinator": f"{invitation.host}:{invitation.port}", "key": invitation.pin.hex(),
        "parties": parties, "wait": wait,
    }  # fmt: skip


def joint(places, submit, *, party=None, patience=20.0):
    """What coordinator and parties return or raise; ``submit`` starts a tunnel for an invitation.

    ``party``: from a number and a channel to what another one than `take_part` does there.
    """
    terms = terms_for(LEARNER, 3, kappa_rule="disjoint", noise="coordinator", rehearsal=True)
    consent = Consent(1.0, rules=("disjoint",), rehearsal=True, trusts_coordinator=True)
    results = {}

    def run(i, invitation):
        try:
            channel = join(invitation, patience, flower.through(places[i]))
            if party is not None and (other := party(i)) is not None:
                results[i] = other(channel)
                return
            made = Party(NAMES[i], partial(own_records, pairs=PARTS[i]), consent)
            results[i] = take_part(channel, made)
        except Exception as problem:
            results[i] = problem

    with listening("127.0.0.1", 0) as listener:
        threads = [
            threading.Thread(target=run, args=(i, listener.invitation)) for i in range(len(places))
        ]
        for thread in threads:
            thread.start()
        try:
            submit(listener.invitation)
            channels = listener.admit(3, patience, patience)
            results["coordinator"] = coordinate(terms, channels)
        except Exception as problem:
            results["coordinator"] = problem
    for thread in threads:
        thread.join()
    return results


def tunnel(relay, nodes, **about):
    """Starts the app on stand-ins."""

    def submit(invitation):
        context = SimpleNamespace(run_config=config(invitation, **about))
        threading.Thread(target=relay.carry, args=(nodes, context), daemon=True).start()

    return submit


@pytest.fixture
def places(tmp_path):
    return [tmp_path / f"{i}.sock" for i in range(3)]


@pytest.fixture(scope="module")
def alone():
    """The same fit in one process."""
    return simulate(LEARNER, PARTS, kappa_rule="disjoint", noise="coordinator")


def same(results, alone):
    assert not [one for one in results.values() if isinstance(one, Exception)], results
    for one in results.values():
        assert one.finished.components == alone.finished.components
        assert one.certificate.epsilon == alone.certificate.epsilon
    assert len({one.fingerprint for one in results.values()}) == 1
    return True


def test_a_tunnel_carries_the_same_fit_and_sees_nothing_of_it(relay, places, alone):
    nodes = Nodes(relay, places)
    assert same(joint(places, tunnel(relay, nodes)), alone)
    assert not any(place.exists() for place in places)
    seen = b"".join(nodes.carried)
    assert len(seen) > 5000
    for secret in (b"kind", b"terms", b"joining", b"party 1", b"words", b"numbers"):
        assert secret not in seen


def test_who_is_at_the_tunnel_and_changes_a_byte_ends_the_fit(relay, places):
    told = []

    def change(said):  # a byte of what is said first once all have shaken hands and shown the token
        told.extend([said] if len(said) > 1 else [])
        return said[:-1] + bytes([said[-1] ^ 1]) if len(told) == 7 else said

    results = joint(places, tunnel(relay, Nodes(relay, places, change)))
    assert "went away" in str(results["coordinator"])
    assert all("no ledger was charged" in str(results[i]) for i in range(3))


def test_a_party_does_not_speak_to_a_tunnel_with_another_coordinator_behind_it(relay, places):
    with listening("127.0.0.1", 0) as impostor:

        def submit(invitation):  # the invited key is asked for, and another one answers
            asked = config(invitation) | {"coordinator": f"127.0.0.1:{impostor.invitation.port}"}
            context = SimpleNamespace(run_config=asked)
            nodes = Nodes(relay, places)
            threading.Thread(target=relay.carry, args=(nodes, context), daemon=True).start()
            assert impostor.admit(1, 1.0, 1.0) == []

        results = joint(places, submit, patience=3.0)
    assert "joined in 1 seconds" in str(results["coordinator"])
    assert "another key than the invitation names" in str(results[0])


def test_a_party_that_leaves_and_one_that_says_something_else_end_the_fit(relay, places):
    def leaves(channel):
        channel.receive(1 << 20)
        channel.close()

    def raves(channel):
        channel.receive(1 << 20)
        channel.send(b"\xc1 no message")
        with pytest.raises(EOFError):
            channel.receive(1 << 20) and channel.receive(1 << 20)
        channel.close()

    for other, said in [(leaves, "went away"), (raves, "sent what is no message of this protocol")]:
        party = lambda i, other=other: other if i == 1 else None  # noqa: E731
        results = joint(places, tunnel(relay, Nodes(relay, places)), party=party)
        assert said in str(results["coordinator"])
        assert said in str(results[0])
        assert said in str(results[2])


def test_another_fit_and_whoever_else_finds_the_socket_change_nothing(relay, places, alone):
    def submit(invitation):
        elsewhere = Invitation("127.0.0.1", 1, bytes(32), bytes(16))
        tunnel(relay, nodes, wait=1.0)(elsewhere)  # a fit of others, at the same SuperNodes
        stale = SimpleNamespace(run_config=config(invitation) | {"coordinator": "127.0.0.1:1"})
        lost = relay._Tunnel(nodes, stale.run_config)  # an earlier try at the same fit
        while not places[0].exists():
            time.sleep(0.01)
        assert relay._Tunnel._ask(lost, 0, relay.BEGINS, b"")[:1] == relay.GOES_ON
        for said in (b"", b"x", bytes(33)):
            with socket.socket(socket.AF_UNIX) as stranger:
                stranger.connect(str(places[0]))
                stranger.sendall(said)
                stranger.shutdown(socket.SHUT_WR)
                assert stranger.recv(10) in (b"", b"\0")
        with pytest.raises(InputError, match="another party waits there"):
            flower.through(places[0])(invitation, None, 1.0)
        assert stat.S_IMODE(places[0].stat().st_mode) == 0o660
        tunnel(relay, nodes)(invitation)

    nodes = Nodes(relay, places)
    assert same(joint(places, submit), alone)


def test_the_commands_take_this_way(relay, places, tmp_path, monkeypatch):
    (tmp_path / "schema.toml").write_text(SCHEMA)
    common = {"schema": tmp_path / "schema.toml", "disjoint": True}
    parties = [
        {
            **write(tmp_path / name, 10_000 * i), **common, "called": name, "out": tmp_path / f"{name}-out",
            "flower": places[i], "ledger": tmp_path / f"{name}.json", "budget": 3.0,
        }
        for i, name in enumerate(("East", "West"))
    ]  # fmt: skip
    started = []

    def submit(superlink, invitation, n_parties, wait):
        started.append((superlink, n_parties))
        tunnel(relay, Nodes(relay, places[:2]), parties=n_parties, wait=wait)(invitation)

    monkeypatch.setattr(flower, "submit", submit)
    coordinator = FitJob(
        parties=2, schema=common["schema"], kappa_rule="disjoint", out=tmp_path / "joint", wait=20.0,
        flower="hospitals",
    )  # fmt: skip
    results, _ = run_jobs(coordinator, parties)
    assert started == [("hospitals", 2)]
    assert len({results[name]["fingerprint"] for name in ("coordinator", "East", "West")}) == 1
    assert contents(tmp_path / "joint") == contents(tmp_path / "West-out")


def test_a_socket_that_was_left_is_replaced_and_one_that_cannot_be_made_is_named(tmp_path):
    one = Invitation("127.0.0.1", 1, bytes(32), bytes(16))
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "a.sock"))
    with pytest.raises(PartyError, match="no coordinator answers"):
        join(one, 0.1, flower.through(tmp_path / "a.sock"))
    for place in (tmp_path / "none" / "a.sock", tmp_path / ("a" * 200)):
        with pytest.raises(InputError, match="no socket can be made there"):
            join(one, 0.1, flower.through(place))


def test_a_file_that_is_no_socket_is_left_alone(tmp_path):
    ledger = tmp_path / "budget.json"
    ledger.write_text("a budget that is nearly spent")
    with pytest.raises(InputError, match="no socket can be made there"):
        flower.through(ledger)(Invitation("127.0.0.1", 1, bytes(32), bytes(16)), None, 1.0)
    assert ledger.read_text() == "a budget that is nearly spent"


def test_who_speaks_slowly_at_the_socket_holds_no_party_longer_than_it_waits(tmp_path):
    place, took = tmp_path / "a.sock", []

    def wait():
        begun = time.monotonic()
        with pytest.raises(PartyError, match="no coordinator answers"):
            join(Invitation("127.0.0.1", 1, bytes(32), bytes(16)), 0.5, flower.through(place))
        took.append(time.monotonic() - begun)

    party = threading.Thread(target=wait)
    party.start()
    while not place.exists():
        time.sleep(0.01)
    with suppress(OSError), socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(str(place))
        for _ in range(60):
            stranger.sendall(b"x")
            time.sleep(0.05)
    party.join()
    assert took[0] < 2


def test_a_tunnel_ends_where_the_coordinator_has_gone_without_a_word(relay, places):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        invitation = Invitation(*silent.getsockname(), bytes(32), bytes(16))
        context = SimpleNamespace(run_config=config(invitation, parties=1, wait=0.5))
        ends = threading.Thread(
            target=relay.carry, args=(Nodes(relay, places[:1]), context), daemon=True
        )
        ends.start()
        with pytest.raises(PartyError, match="no coordinator answers"):
            join(invitation, 10.0, flower.through(places[0]))
        ends.join(5)
        assert not ends.is_alive()


def test_a_supernode_that_answers_and_stalls_takes_nobody_s_place(relay, places, alone):
    class OneStalls(Nodes):  # the first that is there has something to say, and then nothing more
        gone_on = frozenset()

        def get_node_ids(self):
            return [3, *(i for i in range(3) if self.gone_on >= {3, 0, 1, 2} - {*range(i, 3)})]

        def work(self, number, message):
            begins = relay._said(message)[:1] == relay.BEGINS
            self.gone_on |= set() if begins else {message.node}
            if message.node != 3:
                super().work(number, message)
            elif begins:
                self.answers[number] = Said(relay._record(relay.GOES_ON + b"hello"))

    assert same(joint(places, tunnel(relay, OneStalls(relay, [*places, None]))), alone)


def test_a_supernode_is_not_held_by_a_party_that_was_stopped(relay, places):
    with socket.socket(socket.AF_UNIX) as stopped:
        stopped.bind(str(places[0]))
        stopped.listen()
        context = SimpleNamespace(
            node_config={"pairveil": str(places[0])}, run_config={"wait": 0.1}
        )
        asked = threading.Thread(
            target=relay.ask_the_party, args=(Said(relay._record(b"hello")), context), daemon=True
        )
        asked.start()
        asked.join(5)
        assert not asked.is_alive()


def test_what_is_started_sends_no_telemetry_and_a_failure_is_a_sentence(tmp_path, monkeypatch):
    command = tmp_path / "flwr"
    command.write_text(
        f"#!/bin/sh\nenv > {tmp_path}/env\ncp $3/* {tmp_path}\necho $1 $2 $4 > {tmp_path}/arguments\n"
        "echo '│ no such SuperLink │' >&2\nexit $CODE\n"
    )
    command.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("CODE", "0")
    invitation = Invitation("[::1]", 8788, bytes(range(32)), b"t" * 16)
    flower.submit("hospitals", invitation, 3, 60)
    said = (tmp_path / "env").read_text().splitlines()
    assert {"FLWR_TELEMETRY_ENABLED=0", "FLWR_DISABLE_UPDATE_CHECK=1"} <= set(said)
    assert (tmp_path / "arguments").read_text() == "run -- hospitals\n"
    app = (tmp_path / "pyproject.toml").read_text()
    assert 'coordinator = "[::1]:8788"' in app
    assert invitation.pin.hex() in app
    assert invitation.token.hex() not in app + "".join(
        said
    )  # whoever runs the SuperLink is not invited
    assert (tmp_path / "relay.py").read_text() == Path(flower.__file__).with_name(
        "flower_app.py"
    ).read_text()
    monkeypatch.setenv("CODE", "3")
    with pytest.raises(PartyError, match="Flower did not start: no such SuperLink; nothing was"):
        flower.submit("hospitals", invitation, 3, 60)
    command.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingExtraError, match=r"pairveil\[flower\]"):
        FitJob(out=tmp_path / "out", parties=2, no_scale=True, flower="hospitals").run()


def own_certificates(folder):
    """An authority of one's own, and a certificate of it for this machine."""
    keys = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("authority", "superlink")}
    begins = datetime.now(UTC) - timedelta(days=1)
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
    for name, key in keys.items():
        own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        made = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begins)
            .not_valid_after(begins + timedelta(days=3))
            .add_extension(x509.BasicConstraints(name == "authority", None), True)
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), False
            )
            .add_extension(own, False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(keys["authority"].public_key()),
                False,
            )
            .add_extension(
                x509.KeyUsage(True, *4 * [False], name == "authority", *3 * [False]), True
            )
            .sign(keys["authority"], hashes.SHA256())
        )
        (folder / f"{name}.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
        (folder / f"{name}.key").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )


def free_port():
    """A port below those that connections take by themselves until a process listens there."""
    while True:
        with socket.socket() as server, suppress(OSError):
            server.bind(("127.0.0.1", random.randrange(20_000, 32_000)))
            return server.getsockname()[1]


def kill_those_of(home):
    """End what SuperExecs have started: it outlives SuperLink and SuperNodes and asks for them on and on."""
    for one in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if f"FLWR_HOME={home}\0".encode() in one.read_bytes():
                os.kill(int(one.parent.name), signal.SIGKILL)


def wait_for(log, said, times):
    until = time.monotonic() + 120
    while log.read_text().count(said) < times:
        assert time.monotonic() < until, log.read_text()[-5000:]
        time.sleep(0.2)


@pytest.fixture
def hospitals_of_flower(tmp_path):
    """Sockets of three SuperNodes, which speak TLS with a SuperLink; its connection is called 'hospitals'."""
    of_ours = ROOT / ".venv" / "flower" / "bin"
    commands = f"{of_ours}{os.pathsep}{os.environ['PATH']}"
    if shutil.which("flower-superlink", path=commands) is None:
        pytest.skip("Flower is not installed: make .venv/.flower")
    folder = tmp_path
    own_certificates(folder)
    link, authority = f"127.0.0.1:{free_port()}", str(folder / "authority.pem")
    (folder / "config.toml").write_text(
        f'[superlink]\ndefault = "hospitals"\n[superlink.hospitals]\naddress = "{link}"\n'
        f'root-certificates = "{authority}"\n'
    )
    places = [folder / f"{i}.sock" for i in range(3)]
    processes = [
        ["flower-superlink", "--port", link.split(":")[1], "--ssl-ca-certfile", authority,
         "--ssl-certfile", folder / "superlink.pem", "--ssl-keyfile", folder / "superlink.key",
         "--disable-runtime-dependency-installation"],
        *(["flower-supernode", "--superlink", link, "--root-certificates", authority,
           "--port", str(free_port()), "--node-config", f'pairveil="{place}"'] for place in places),
    ]  # fmt: skip
    with ExitStack() as ended, ExitStack() as stack:  # all are told to end before one is waited for
        ended.callback(kill_those_of, folder)
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("PATH", commands)
        patch.setenv("FLWR_HOME", str(folder))
        patch.setenv("FLWR_TELEMETRY_ENABLED", "0")
        patch.setenv("FLWR_DISABLE_UPDATE_CHECK", "1")
        patch.setenv("FLWR_SUPEREXEC_TASK_POLL_INTERVAL", "0.05")
        for i, command in enumerate(processes):
            log = stack.enter_context((folder / f"{i}.log").open("w"))
            one = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
            ended.callback(one.wait, 60)
            stack.callback(one.terminate)
        wait_for(folder / "0.log", "Activated node_id", 3)
        yield places


def test_flower_carries_the_same_fit_over_tls_and_ends_one_that_a_party_leaves(
    hospitals_of_flower, alone
):
    submit = partial(flower.submit, "hospitals", n_parties=3, wait=300)
    log = hospitals_of_flower[0].parent / "0.log"
    assert same(joint(hospitals_of_flower, submit, patience=300.0), alone)
    wait_for(log, "Finished task", 1)  # the tunnel ends with the fit

    def leaves(channel):
        channel.receive(1 << 20)
        channel.close()

    party = lambda i: leaves if i == 1 else None  # noqa: E731
    results = joint(hospitals_of_flower, submit, party=party, patience=300.0)
    for who in ("coordinator", 0, 2):
        assert "went away" in str(results[who])
    wait_for(log, "Finished task", 2)


def test_a_file_that_is_no_socket_is_not_removed(tmp_path):
    table = tmp_path / "people.csv"
    table.write_text("id,age\n")
    invitation = Invitation("127.0.0.1", 1, bytes(32), bytes(16))
    with pytest.raises(InputError, match="no socket can be made there"):
        flower.through(table)(invitation, None, 1.0)
    assert table.read_text() == "id,age\n"
