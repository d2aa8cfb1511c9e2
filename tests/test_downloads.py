"""Downloads from mirrors that are dead, slow, wrong or good, served on this machine: a whole file or none."""

import hashlib
import logging
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import pictures
from jumpboard.artefacts import downloads
from jumpboard.artefacts.downloads import fetch, local_copy
from jumpboard.data.draw import draw_rows
from jumpboard.errors import InputError
from pictures import as_set, planted, spec

CONTENT = np.random.default_rng(0).integers(0, 256, 300_000, dtype=np.uint8).tobytes()
FILE = {"name": "set.bin", "sha256": hashlib.sha256(CONTENT).hexdigest()}
INVENTORY = yaml.safe_load((Path(__file__).parents[1] / "config" / "datasets.yaml").read_text())


class Mirrors:
    """A host whose folders behave: good/, corrupt/, missing/ (404), short/ (half of what it promises), hanging/ (says
    nothing), stalling/ (half, then nothing), trickling/ (a byte now and then)."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.asked: list[str] = []
        self.closing = threading.Event()
        mirrors = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                mirrors.asked.append(self.path.lstrip("/"))
                folder, name = self.path.lstrip("/").split("/")
                content = files[name]
                if folder == "missing":
                    self.send_error(404)
                    return
                if folder == "hanging":
                    mirrors.closing.wait(20)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if folder == "trickling":
                    for byte in content:
                        self.wfile.write(bytes([byte]))
                        if mirrors.closing.wait(0.05):
                            return
                half = folder in ("short", "stalling")
                self.wfile.write(content[::-1] if folder == "corrupt" else content[: len(content) // (1 + half)])
                if folder == "stalling":
                    mirrors.closing.wait(20)

            def log_message(self, *_: Any) -> None:
                """Nothing on standard error."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()

    def at(self, *folders: str) -> list[str]:
        return [f"http://127.0.0.1:{self.server.server_port}/{folder}/" for folder in folders]

    def close(self) -> None:
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[dict[str, bytes]], Mirrors]]:
    """serve({name: content}): a host for the length of a test; stalls and limits are short."""
    monkeypatch.setattr(downloads, "STALL", 0.3)
    monkeypatch.setattr(downloads, "LIMIT", 0.6)
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    started: list[Mirrors] = []

    def start(files: dict[str, bytes]) -> Mirrors:
        started.append(Mirrors(files))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def mirrors(serve: Callable[[dict[str, bytes]], Mirrors]) -> Mirrors:
    return serve({"set.bin": CONTENT})


def test_the_first_good_mirror_gives_the_file(tmp_path: Path, mirrors: Mirrors) -> None:
    """The usual hosts are often down or slow: every way to fail passes on to the next mirror, a good one ends it."""
    bad = ["missing", "corrupt", "short", "hanging", "stalling", "trickling"]
    target = tmp_path / "new" / "set.bin"
    urls = ["http://127.0.0.1:1/", *mirrors.at(*bad, "good", "missing")]
    fetch(target, FILE, urls, "remedy")
    assert target.read_bytes() == CONTENT
    assert [path.name for path in target.parent.iterdir()] == ["set.bin"]
    assert mirrors.asked == [f"{folder}/set.bin" for folder in [*bad, "good"]]


@pytest.mark.parametrize("algorithm", ["sha256", "md5"])
def test_a_good_file_is_kept_and_a_wrong_one_named(
    tmp_path: Path, mirrors: Mirrors, caplog: pytest.LogCaptureFixture, algorithm: str
) -> None:
    """Nothing is fetched twice; a file cut short by a kill or a full disk is not used either."""
    file = {"name": "set.bin", algorithm: hashlib.new(algorithm, CONTENT).hexdigest()}
    target = tmp_path / "set.bin"
    for _ in range(2):
        fetch(target, file, mirrors.at("good"), "remedy")
    assert mirrors.asked == ["good/set.bin"]
    target.write_bytes(CONTENT[:1000])
    with caplog.at_level(logging.INFO):
        fetch(target, file, mirrors.at("good"), "remedy")
    assert f"{target}: there, but with a wrong {algorithm}; fetched again" in caplog.text
    assert target.read_bytes() == CONTENT
    assert len(mirrors.asked) == 2


def test_without_a_good_mirror_one_line_says_all(tmp_path: Path, mirrors: Mirrors) -> None:
    """File, each mirror with its reason, remedy; no half of a file, and what was there before stays. A host that hangs
    (here for 20 s, elsewhere for ever) is given up at whatever point of its answer."""
    bad = ["missing", "corrupt", "short", "hanging", "stalling", "trickling"]
    target = tmp_path / "folder" / "set.bin"
    with pytest.raises(InputError) as caught:
        fetch(target, FILE, ["http://127.0.0.1:1/", *mirrors.at(*bad)], "do this")
    text, host = str(caught.value), f"127.0.0.1:{mirrors.server.server_port}"
    reasons = [
        "127.0.0.1:1: Connection refused",
        f"{host}: HTTP 404",
        f"{host}: wrong sha256 of 300000 bytes",
        f"{host}: wrong sha256 of 150000 bytes",
        f"{host}: nothing for 0.3 s",
        f"{host}: nothing for 0.3 s",
        f"{host}: not done in 0.6 s",
    ]
    assert text == f"{target}: no mirror gives it ({'; '.join(reasons)}); do this"
    assert list(target.parent.iterdir()) == []
    target.write_bytes(b"of another day")
    with pytest.raises(InputError):
        fetch(target, FILE, mirrors.at("missing"), "do this")
    assert target.read_bytes() == b"of another day"


def test_a_full_disk_is_not_blamed_on_a_mirror(
    tmp_path: Path, mirrors: Mirrors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trying the next mirror would not help; the user must hear of the disk."""

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("jumpboard.artefacts.files.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        fetch(tmp_path / "set.bin", FILE, mirrors.at("good", "good"), "remedy")
    assert mirrors.asked == ["good/set.bin"]
    assert list(tmp_path.iterdir()) == []


def archive_of(tmp_path: Path) -> tuple[pictures.Parts, bytes]:
    parts = planted()
    pictures.binary_archive(tmp_path / "made" / "cifar-10-binary.tar.gz", parts)
    return parts, (tmp_path / "made" / "cifar-10-binary.tar.gz").read_bytes()


def test_a_set_is_prepared_from_its_third_mirror(tmp_path: Path, serve: Callable[[dict[str, bytes]], Mirrors]) -> None:
    """NVFlare PR #4864, torchvision #774: first host dead, second corrupt, third good: the rows are there."""
    parts, content = archive_of(tmp_path)
    host = serve({"cifar-10-binary.tar.gz": content})
    files = [{"name": "cifar-10-binary.tar.gz", "sha256": hashlib.sha256(content).hexdigest()}]
    source = {"folder": str(tmp_path / "downloads/cifar10"), "files": files}
    place = local_copy("cifar10", source | {"mirrors": ["http://127.0.0.1:1/", *host.at("corrupt", "good")]})
    drawn = draw_rows(spec(parts), place)
    assert {name: as_set(part) for name, part in drawn.items()} == {n: as_set(part) for n, part in parts.items()}
    assert local_copy("cifar10", source | {"mirrors": host.at("missing")}) == place
    (tmp_path / "downloads/cifar10/cifar-10-binary.tar.gz").unlink()
    with pytest.raises(InputError, match=r"downloads/cifar10/cifar-10-binary.tar.gz: no mirror.*HTTP 404.*; put it th"):
        local_copy("cifar10", source | {"mirrors": host.at("missing")})


def test_a_path_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative to the working directory, or to the home folder; one that is not there is named with the remedy."""
    (tmp_path / "c10").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert local_copy("cifar10", {"path": "c10"}) == Path("c10")
    assert local_copy("cifar10", {"path": "~/c10"}) == tmp_path / "c10"
    assert local_copy("digits", {}) is None
    with pytest.raises(InputError, match=r"^nowhere: no such folder; accepted: a copy of cifar10, named by `paths`"):
        local_copy("cifar10", {"path": "nowhere"})


def test_inventory_downloads_are_well_formed() -> None:
    """Every downloaded set has a checksum for every file and more than one mirror; the MNIST family has four files of
    other content each."""
    fetched = {name: entry for name, entry in INVENTORY.items() if "files" in entry}
    assert {"mnist", "fashion_mnist", "cifar10", "cifar100"} <= set(fetched)
    sums = [file["sha256"] for entry in fetched.values() for file in entry["files"]]
    assert len(set(sums)) == len(sums) == 10
    assert all(len(set(entry["mirrors"])) == len(entry["mirrors"]) >= 2 for entry in fetched.values())
    assert not any(entry["offline"] for entry in fetched.values())
