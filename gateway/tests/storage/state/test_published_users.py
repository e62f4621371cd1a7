"""Users as processes that serve readers find them: who was added at once, who was removed within a second, whatever happens to files."""

from __future__ import annotations

import hashlib
import logging
import threading
from pathlib import Path

import pytest

from skerry.service.users import User, Users
from skerry.storage.state import StorageError
from skerry.storage.state.published_users import REREAD_S, PublishedUsers, UsersPublisher


def digest(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


def put(users: Users, *names: str) -> None:
    for name in names:
        users.put(User(name, digest(name), 0.0))


def publish(publisher: UsersPublisher, users: Users, *, everything: bool = False) -> None:
    publisher.publish(users.unpublished, users.published, everything=everything)
    users.unpublished.clear()


def later(found: PublishedUsers) -> PublishedUsers:
    """As it will be in a second."""
    for seen in found._files:
        seen.looked -= REREAD_S
    return found


def test_who_comes_and_goes_is_found_so_and_files_are_their_owners_alone(tmp_path: Path) -> None:
    users, publisher, found = Users(), UsersPublisher(tmp_path), PublishedUsers(tmp_path)
    assert found.of(digest("ada")) is None
    put(users, "ada", "grace")
    publish(publisher, users, everything=True)
    assert [found.of(digest(name)) for name in ("ada", "grace", "eve")] == ["ada", "grace", None]
    files = list((tmp_path / "published").iterdir())
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    users.put(User("ada", digest("new"), 0.0))
    users.drop("grace")
    publish(publisher, users)
    assert found.of(digest("new")) == "ada", "at once"
    later(found)
    assert [found.of(digest(name)) for name in ("ada", "grace", "new")] == [None, None, "ada"]
    # One that begins anew leaves nothing of another.
    others = Users()
    put(others, "eve")
    publish(UsersPublisher(tmp_path), others, everything=True)
    later(found)
    assert [found.of(digest(name)) for name in ("new", "eve")] == [None, "eve"]
    assert len(list((tmp_path / "published").iterdir())) == 1


def test_of_a_hundred_thousand_one_more_writes_one_small_file(tmp_path: Path) -> None:
    users, publisher, found = Users(), UsersPublisher(tmp_path), PublishedUsers(tmp_path)
    put(users, *(f"user{number}" for number in range(100_000)))
    publish(publisher, users, everything=True)
    before = {file.name: file.stat().st_ino for file in (tmp_path / "published").iterdir()}
    put(users, "ada")
    publish(publisher, users)
    after = {file.name: file.stat().st_ino for file in (tmp_path / "published").iterdir()}
    [changed] = {name for name in after if after[name] != before[name]}
    assert changed == f"users-{digest('ada').hex()[:2]}.json"
    assert (tmp_path / "published" / changed).stat().st_size < 60_000
    assert found.of(digest("ada")) == "ada"
    assert all(found.of(digest(f"user{number}")) == f"user{number}" for number in range(0, 100_000, 37))


def test_a_file_that_cannot_be_read_is_told_once_and_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    users, publisher, found = Users(), UsersPublisher(tmp_path), PublishedUsers(tmp_path)
    put(users, "ada")
    publish(publisher, users, everything=True)
    assert found.of(digest("ada")) == "ada"
    [file] = (tmp_path / "published").iterdir()
    file.write_text("{")
    caplog.set_level(logging.ERROR)
    for _ in range(3):
        assert later(found).of(digest("ada")) == "ada"
    assert len(caplog.messages) == 1
    assert str(file) in caplog.messages[0]
    users.drop("ada")
    publish(publisher, users)
    assert later(found).of(digest("ada")) is None


def test_what_could_not_be_written_is_written_with_the_next_change(tmp_path: Path) -> None:
    users, publisher, found = Users(), UsersPublisher(tmp_path), PublishedUsers(tmp_path)
    (tmp_path / "published").write_text("")
    put(users, "ada")
    with pytest.raises(StorageError, match="published: File exists"):
        publish(publisher, users)
    (tmp_path / "published").unlink()
    users.unpublished.clear()
    put(users, "grace")
    publish(publisher, users)
    assert [found.of(digest(name)) for name in ("ada", "grace")] == ["ada", "grace"]


def test_who_reads_meanwhile_finds_each_user(tmp_path: Path) -> None:
    """While others of the same file come and go."""
    users, publisher, found = Users(), UsersPublisher(tmp_path), PublishedUsers(tmp_path)
    put(users, "ada")
    publish(publisher, users, everything=True)
    beside = [name for name in map(str, range(5000)) if digest(name)[0] == digest("ada")[0]]

    def write() -> None:
        for name in beside * 20:
            if users.of(digest(name)) is None:
                put(users, name)
            else:
                users.drop(name)
            publish(publisher, users)

    thread = threading.Thread(target=write)
    thread.start()
    looked = 0
    while thread.is_alive():
        assert later(found).of(digest("ada")) == "ada"
        looked += 1
    thread.join()
    assert looked
