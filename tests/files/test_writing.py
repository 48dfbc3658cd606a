"""Files and folders are written whole or not at all, durably, and nothing else is touched."""

import errno
import os
import stat
import threading

import pytest

from pairveil import files
from pairveil.errors import InputError
from pairveil.files import FolderDraft, check_file, file_draft, recover, write_file


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def committed(folder, text):
    with FolderDraft(folder) as draft:
        draft.write("a.txt", text)
        draft.commit()


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    file = write_file(tmp_path / "a", b"old")

    def broken(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(InputError, match="a cannot be written: there is not enough room"):
        write_file(file, b"new")
    assert file.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_an_interrupted_block_leaves_the_old_file(tmp_path):
    file = write_file(tmp_path / "a", "old")

    def interrupted():
        with file_draft(file) as draft:
            draft.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert file.read_text() == "old"
    assert names(tmp_path) == ["a"]


def test_links_stay_and_permissions_are_kept(tmp_path):
    real = write_file(tmp_path / "real", "old")
    real.chmod(0o600)
    (tmp_path / "link").symlink_to(real)
    write_file(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert real.read_text() == "new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o600


def test_a_new_file_takes_no_name_that_is_taken(tmp_path):
    write_file(tmp_path / "a", "first", mode=0o600, new=True)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
    with pytest.raises(InputError, match="a cannot be written: File exists"):
        write_file(tmp_path / "a", "second", new=True)

    def late():  # somebody else takes the name while the draft is written
        with file_draft(tmp_path / "b", new=True) as draft:
            draft.write_text("ours")
            (tmp_path / "b").write_text("theirs")

    with pytest.raises(InputError, match="File exists"):
        late()
    assert names(tmp_path) == ["a", "b"]
    assert ((tmp_path / "a").read_text(), (tmp_path / "b").read_text()) == ("first", "theirs")


def test_what_is_no_file_is_never_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="no ordinary file"):
        write_file(tmp_path / "pipe", "text")
    with pytest.raises(InputError, match="is a folder"):
        write_file(tmp_path, "text")
    with pytest.raises(InputError, match="does not exist"):
        write_file(tmp_path / "nowhere" / "a", "text")


def test_a_draft_that_a_kill_left_is_written_over(tmp_path):
    (tmp_path / ".a.txt.draft.txt").write_text("left by a kill, and longer than what comes")
    (tmp_path / ".release.draft").mkdir()
    (tmp_path / ".release.draft" / "half").write_text("left by a kill")
    write_file(tmp_path / "a.txt", "whole")
    committed(tmp_path / "release", "whole")
    assert names(tmp_path) == ["a.txt", "release"]
    assert (tmp_path / "a.txt").read_text() == "whole"
    assert names(tmp_path / "release") == ["a.txt"]


def test_writers_of_one_file_take_turns(tmp_path):
    """Each content is whole: two writers never share a draft."""
    texts = {str(i) * 50_000 for i in range(4)}

    def write_often(text):
        for _ in range(25):
            write_file(tmp_path / "a", text)

    threads = [threading.Thread(target=write_often, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if (tmp_path / "a").exists():
            assert (tmp_path / "a").read_text() in texts
    for thread in threads:
        thread.join()
    assert names(tmp_path) == ["a"]


def test_two_runs_do_not_write_one_folder(tmp_path):
    with FolderDraft(tmp_path / "release") as first:
        first.write("a.txt", "first")
        with pytest.raises(InputError, match="another run is writing to"):
            FolderDraft(tmp_path / "release")
        first.commit()
    assert names(tmp_path) == ["release"]
    committed(tmp_path / "release", "second")
    assert (tmp_path / "release" / "a.txt").read_text() == "second"


def test_a_folder_that_is_not_committed_leaves_nothing(tmp_path):
    with FolderDraft(tmp_path / "above" / "release", room=10_000) as draft:
        assert (tmp_path / "above" / ".release.draft" / ".room").stat().st_size == 10_000
        draft.write("a.txt", "half")
    assert names(tmp_path) == []


def test_contents_are_durable_before_they_get_their_name(tmp_path, monkeypatch):
    """Otherwise a power cut after the checkpoint was removed could leave an empty release."""
    committed(tmp_path / "release", "old")
    done = []
    sync, exchange = os.fsync, files._exchange

    def seen_sync(descriptor):
        done.append(os.readlink(f"/proc/self/fd/{descriptor}").removeprefix(str(tmp_path)))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", seen_sync)
    monkeypatch.setattr(files, "_exchange", lambda *a: done.append("exchange") or exchange(*a))
    committed(tmp_path / "release", "new")
    at = done.index("exchange")
    assert set(done[:at]) == {"/.release.draft/a.txt", "/.release.draft"}
    assert "" in done[at:]  # the folder that holds the names


def test_recover_touches_nothing_while_somebody_writes(tmp_path):
    (tmp_path / ".release.old").mkdir()
    with FolderDraft(tmp_path / "release") as draft:
        draft.write("a.txt", "new")
        recover(tmp_path / "release")
        assert names(tmp_path) == [".release.draft", ".release.old"]


def test_an_old_folder_comes_back_where_no_draft_is_left(tmp_path):
    committed(tmp_path / "release", "old")
    (tmp_path / "release").rename(tmp_path / ".release.old")
    recover(tmp_path / "release")
    assert (tmp_path / "release" / "a.txt").read_text() == "old"
    assert names(tmp_path) == ["release"]


def test_without_locks_drafts_have_names_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "fcntl", None)
    write_file(tmp_path / "a.npz", "whole")
    committed(tmp_path / "release", "old")
    with FolderDraft(tmp_path / "release") as draft:
        assert names(tmp_path)[0].startswith(f".release.{os.getpid()}-")
        draft.write("a.txt", "new")
        draft.commit()
    assert names(tmp_path) == ["a.npz", "release"]
    assert (tmp_path / "release" / "a.txt").read_text() == "new"


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="needs /proc")
def test_what_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    for target in ("/proc/x", tmp_path / "file" / "x"):
        with pytest.raises(InputError, match=r"cannot be written: .*; name another place"):
            FolderDraft(target)
    with pytest.raises(InputError, match="is where a disk is mounted"):
        FolderDraft("/proc")
    with pytest.raises(InputError, match="cannot be written"):
        check_file("/proc/x")
    check_file(tmp_path / "new", room=1000)
    assert names(tmp_path) == ["file"]
