"""Signatures: valid, absent, by another key, over something else; and as the DSSE standard has them."""

import base64
import hashlib
import json
import os
import shutil
import stat
import subprocess
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from pairveil import files
from pairveil.errors import InputError
from pairveil.release import signing
from pairveil.release.release import check_folder, load_release
from pairveil.release.signing import check_signature, is_signed, new_key, sign

STORED = Path(__file__).parents[1] / "stored" / "v1" / "gaussian"


@pytest.fixture
def folder(tmp_path):
    return Path(shutil.copytree(STORED, tmp_path / "release"))


@pytest.fixture
def key(tmp_path):
    return tmp_path / "sender.pem", new_key(tmp_path / "sender.pem")


def test_what_is_signed_is_accepted(folder, key):
    private, public = key
    assert not is_signed(folder)
    assert sign(folder, private) == folder / "signature.dsse.json"
    assert check_signature(folder, public).uncovered == ()
    sign(folder, private)  # again: the old signature is not signed
    assert check_signature(folder, public).uncovered == ()
    (folder / "report.html").write_text("made later")
    assert check_signature(folder, public).uncovered == ("report.html",)


def test_links_beside_a_signed_release_are_not_covered(folder, key, tmp_path):
    """A page that is a link is read like any other, and nobody signed what it leads to."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "page.html").write_text("<h1>Calm</h1>")
    links = {"report.html": "page.html", "more": "", "gone": "nothing"}
    for name, target in links.items():
        (folder / name).symlink_to(tmp_path / "elsewhere" / target)
    sign(folder, key[0])  # what a link leads to is not signed either
    assert check_signature(folder, key[1]).uncovered == tuple(sorted(links))


def test_a_signature_has_a_date_and_names_the_certificate(folder, key):
    """An old release that is shown as the current one has an old date."""
    before = datetime.now(UTC).replace(microsecond=0)
    sign(folder, key[0])
    signed_at = datetime.fromisoformat(check_signature(folder, key[1]).signed_at)
    assert before <= signed_at <= datetime.now(UTC)
    _sign_by_hand(folder, key[0], predicateType="urn:pairveil:release:1", predicate={})
    assert check_signature(folder, key[1]).signed_at is None  # as the first version signed
    for wrong in (
        {"predicate": {"signed_at": "2026-01-01", "certificate_sha256": "0" * 64}},
        {"predicate": {"certificate_sha256": _sha256(folder / "certificate.json")}},
        {"predicate": {}},
        {"predicateType": "https://slsa.dev/provenance/v1"},
        {"_type": "https://in-toto.io/Statement/v0.1"},
    ):
        _sign_by_hand(folder, key[0], **wrong)
        with pytest.raises(InputError, match="something else than a release"):
            check_signature(folder, key[1])


def test_drafts_of_ours_are_never_signed_and_stop_nothing(folder, key):
    """What a kill left while a signature or a page was written."""
    left = [
        ".signature.dsse.json.draft.json",
        ".report.html.draft.html",
        ".report.html.draft.7-9.html",
    ]
    for name in left:
        (folder / name).write_text("half of it")
    sign(folder, key[0])
    # The next signature was written over its own draft; a receiver still sees the others.
    assert check_signature(folder, key[1]).uncovered == tuple(sorted(left[1:]))
    check_folder(folder, overwrite=True)
    (folder / ".thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="other files"):
        check_folder(folder, overwrite=True)


def test_what_was_not_verified_is_not_signed(folder, key, monkeypatch):
    """A folder that another run replaces while it is being signed."""

    def replaced(source):
        found = load_release(source)
        (source / "README.md").write_text("of another run")
        return found

    monkeypatch.setattr(signing, "load_release", replaced)
    with pytest.raises(InputError, match="changed while it was being signed"):
        sign(folder, key[0])
    assert not is_signed(folder)


def test_the_private_key_is_for_its_owner_alone(key, tmp_path):
    private, public = key
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert "PRIVATE" in private.read_text()
    assert "PRIVATE" not in public.read_text()
    with pytest.raises(InputError, match="exists"):
        new_key(private)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["sender.pem", "sender.pem.pub"]


def test_a_key_that_a_kill_left_without_its_public_half_gets_it(folder, key):
    private, public = key
    before, secret = public.read_bytes(), private.read_bytes()
    public.unlink()
    assert new_key(private).read_bytes() == before
    assert private.read_bytes() == secret
    private.unlink()
    with pytest.raises(InputError, match="exists"):  # somebody's public key is not written over
        new_key(private)


def test_a_private_key_is_never_readable_by_others(tmp_path, monkeypatch):
    """Not as a draft either, whatever the umask; a draft that a kill left is taken over."""
    draft = tmp_path / ".k.pem.draft.pem"
    draft.write_text("left by a kill, readable")
    draft.chmod(0o644)
    seen, rename = [], files._rename
    monkeypatch.setattr(
        files,
        "_rename",
        lambda one, other, how: (
            seen.append((other.name, one.stat().st_mode)) or rename(one, other, how)
        ),
    )
    old = os.umask(0)
    try:
        new_key(tmp_path / "k.pem")
    finally:
        os.umask(old)
    assert stat.S_IMODE(dict(seen)["k.pem"]) == 0o600
    assert stat.S_IMODE((tmp_path / "k.pem").stat().st_mode) == 0o600
    assert sorted(p.name for p in tmp_path.iterdir()) == ["k.pem", "k.pem.pub"]


@pytest.mark.skipif(os.name != "posix", reason="has no modes")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
def test_a_key_that_others_can_read_or_write_signs_nothing(folder, key, mode):
    private, public = key
    private.chmod(mode)
    public.unlink()
    for use in (lambda: sign(folder, private), lambda: new_key(private)):
        with pytest.raises(InputError, match=rf"is open to others \(mode {mode:o}\).*chmod 600"):
            use()
    assert not (folder / "signature.json").exists()
    private.chmod(0o400)
    sign(folder, private)


def test_of_several_that_make_one_key_one_gets_through(tmp_path):
    made, refused = [], []

    def make():
        try:
            made.append(new_key(tmp_path / "k.pem"))
        except InputError as problem:
            refused.append(str(problem))

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), len(refused)) == (1, 5)
    private = load_pem_private_key((tmp_path / "k.pem").read_bytes(), None)
    public = load_pem_public_key((tmp_path / "k.pem.pub").read_bytes())
    assert private.public_key() == public


def test_an_unsigned_release_is_named_so(folder, key):
    with pytest.raises(InputError, match="is not signed"):
        check_signature(folder, key[1])


def test_another_key_is_named_so(folder, key, tmp_path):
    sign(folder, key[0])
    with pytest.raises(InputError, match=r"wrongly signed.*not by the holder"):
        check_signature(folder, new_key(tmp_path / "other.pem"))


def _change(folder, name):
    (folder / name).write_bytes((folder / name).read_bytes() + b" ")


@pytest.mark.parametrize("name", ["certificate.json", "metric.safetensors", "README.md"])
@pytest.mark.parametrize("how", [_change, lambda folder, name: (folder / name).unlink()])
def test_a_tampered_file_is_named_so(folder, key, name, how):
    sign(folder, key[0])
    how(folder, name)
    with pytest.raises(InputError, match=rf"tampered with: {name}"):
        check_signature(folder, key[1])


def test_a_file_of_the_release_that_was_added_is_tampering(folder, key):
    sign(folder, key[0])
    (folder / "summary.json").write_text("{}")
    with pytest.raises(InputError, match=r"tampered with: summary\.json"):
        check_signature(folder, key[1])


@pytest.mark.parametrize("inside", [True, False])
def test_a_link_in_place_of_a_file_of_the_release_is_tampering(folder, key, inside, tmp_path):
    """A metric without a promise, signed as such, must not get a certificate by a link."""
    (folder / "certificate.json").unlink()
    with pytest.raises(InputError, match="nothing to stand behind"):
        sign(folder, key[0])
    _sign_by_hand(folder, key[0], predicateType="urn:pairveil:release:1", predicate={})
    target = (folder if inside else tmp_path) / "notes.txt"
    target.write_text("{}")
    (folder / "certificate.json").symlink_to(target)
    with pytest.raises(InputError, match=r"tampered with: certificate\.json is not among"):
        check_signature(folder, key[1])


def _sha256(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _sign_by_hand(folder, private, **changes):
    """A valid signature over a statement with other content than `sign` writes."""
    names = sorted({file.name for file in folder.iterdir()} - {"signature.dsse.json"})
    subject = [{"name": name, "digest": {"sha256": _sha256(folder / name)}} for name in names]
    statement = {"_type": signing.STATEMENT, "subject": subject, "predicateType": signing.PREDICATE}
    payload = json.dumps({**statement, "predicate": {}, **changes}).encode()
    kind = signing.PAYLOAD_TYPE.encode()
    signed = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
    sig = load_pem_private_key(private.read_bytes(), None).sign(signed)
    envelope = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": signing.PAYLOAD_TYPE,
        "signatures": [{"sig": base64.b64encode(sig).decode()}],
    }
    (folder / "signature.dsse.json").write_text(json.dumps(envelope))


def _rewrite(folder, **changes):
    file = folder / "signature.dsse.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


@pytest.mark.parametrize(
    "changes",
    [
        {"payload": base64.b64encode(b"{}").decode()},
        {"payloadType": "text/plain"},
        {"signatures": []},
        {"signatures": [{"sig": base64.b64encode(bytes(64)).decode()}]},
    ],
    ids=str,
)
def test_an_envelope_that_was_changed_is_wrongly_signed(folder, key, changes):
    sign(folder, key[0])
    _rewrite(folder, **changes)
    with pytest.raises(InputError, match="wrongly signed"):
        check_signature(folder, key[1])


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", '{"payload": 3}', "[" * 100_000, '{"payload": "%%"}']
)
def test_what_is_no_envelope_is_refused(folder, key, text):
    (folder / "signature.dsse.json").write_text(text)
    with pytest.raises(InputError, match="no DSSE envelope"):
        check_signature(folder, key[1])


def test_others_can_check_it(folder, key):
    """By the letter of the DSSE and in-toto standards, without this package."""
    sign(folder, key[0])
    envelope = json.loads((folder / "signature.dsse.json").read_text())
    payload = base64.b64decode(envelope["payload"])
    kind = "application/vnd.in-toto+json"
    assert envelope["payloadType"] == kind
    signed = f"DSSEv1 {len(kind)} {kind} {len(payload)} ".encode() + payload
    public = load_pem_public_key(key[1].read_bytes())
    public.verify(base64.b64decode(envelope["signatures"][0]["sig"]), signed)
    statement = json.loads(payload)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    for one in statement["subject"]:
        found = subprocess.run(
            ["sha256sum", one["name"]], cwd=folder, capture_output=True, text=True, check=True
        )
        assert found.stdout.split()[0] == one["digest"]["sha256"]
    assert [one["name"] for one in statement["subject"]] == [
        "README.md",
        "certificate.json",
        "metric.safetensors",
    ]


def test_files_that_hold_no_key_are_refused(folder, key, tmp_path):
    private, public = key
    rubbish = tmp_path / "rubbish"
    rubbish.write_text("no key")
    with pytest.raises(InputError, match=r"there is no file .*absent"):
        sign(folder, tmp_path / "absent")
    for wrong in (rubbish, public, tmp_path / "absent", tmp_path):
        with pytest.raises(InputError):
            sign(folder, wrong)
    sign(folder, private)
    for wrong in (rubbish, private, tmp_path / "absent"):
        with pytest.raises(InputError):
            check_signature(folder, wrong)


def test_other_kinds_of_keys_are_refused(folder, tmp_path):
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    curve = tmp_path / "curve.pem"
    curve.write_bytes(
        generate_private_key(SECP256R1()).private_bytes(pem, pkcs8, serialization.NoEncryption())
    )
    with pytest.raises(InputError, match="another kind of key"):
        sign(folder, curve)
    locked = tmp_path / "locked.pem"
    protected = serialization.BestAvailableEncryption(b"secret")
    locked.write_bytes(Ed25519PrivateKey.generate().private_bytes(pem, pkcs8, protected))
    with pytest.raises(InputError, match="passphrase"):
        sign(folder, locked)
