"""A file server that supports ranges, and that can be set to fail in different ways."""

import os
import re
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

__all__ = ["ALWAYS", "FAULTS", "Answer", "Web", "in_memory", "serving"]

# More failures than any call causes: each redirect, retry and concurrent request counts as one.
ALWAYS = 1 << 30


class Web:
    """A server's folder, settings and log of requests.

    While `fault` is not None, it replaces the server's response. `times` counts it down.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.fault: Callable[[Answer], None] | None = None
        self.times = 0
        self.after = 0  # requests that are answered before the fault
        self.only = ""  # text in the paths that fail
        self.asked: list[tuple[str, str | None]] = []
        self.headers: list[dict[str, str]] = []
        self.pending = self.most = 0
        self.pause = 0.0
        self.marks = True  # True if responses name the version of the file
        self.stopped = threading.Event()
        self.lock = threading.Lock()
        self.address = ""

    def url(self, path: Any) -> str:
        """Return the URL of a file in the folder. The name of an array may follow."""
        return f"http://{self.address}/{Path(path).relative_to(self.folder)}"

    def fail(
        self, fault: Callable[["Answer"], None] | str, times: int = 1, after: int = 0,
        only: str = "",
    ) -> None:  # fmt: skip
        """Fail the next requests, after `after` successful ones and only for paths with `only`."""
        self.fault = FAULTS[fault] if isinstance(fault, str) else fault
        self.times, self.after, self.only = times, after, only
        self.asked.clear()

    def next_fault(self, path: str) -> Callable[["Answer"], None] | None:
        with self.lock:
            if self.only not in path:
                return None
            if self.after:
                self.after -= 1
            elif self.times:
                self.times -= 1
                return self.fault
        return None

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """Return the requested ranges, with exclusive ends."""
        matches = [re.fullmatch(r"bytes=(\d+)-(\d+)", part or "") for _, part in self.asked]
        return [(int(match[1]), int(match[2]) + 1) for match in matches if match]


class Answer(BaseHTTPRequestHandler):
    """The response to one request."""

    protocol_version = "HTTP/1.1"
    server: Any
    content: bytes | None
    start = stop = 0

    @property
    def web(self) -> Web:
        return self.server.web

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        with self.web.lock:
            self.web.asked.append((path, self.headers.get("Range")))
            self.web.headers.append(dict(self.headers))
            self.web.pending += 1
            self.web.most = max(self.web.most, self.web.pending)
        try:
            file = self.web.folder / path.lstrip("/")
            self.content = file.read_bytes() if file.is_file() else None
            match = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            size = len(self.content or b"")
            self.start, self.stop = (int(match[1]), int(match[2]) + 1) if match else (0, size)
            self.stop = min(self.stop, size)
            time.sleep(self.web.pause)
            (self.web.next_fault(path) or Answer.plain)(self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            with self.web.lock:
                self.web.pending -= 1

    do_HEAD = do_GET

    def plain(self) -> None:
        """Respond as a correct server."""
        if self.content is None:
            self.give(404, b"")
        elif "Range" not in self.headers:
            self.give(200, self.content)
        elif self.start >= len(self.content):
            self.give(416, b"", {"Content-Range": f"bytes */{len(self.content)}"})
        else:
            self.give(206, self.content[self.start : self.stop], self.range())

    def range(self, shift: int = 0, size: str = "") -> dict[str, str]:
        size = size or str(len(self.content or b""))
        return {"Content-Range": f"bytes {self.start + shift}-{self.stop - 1 + shift}/{size}"}

    def give(
        self, status: int, body: bytes, headers: dict[str, str] | None = None,
        length: int | None = None,
    ) -> None:  # fmt: skip
        """Send a response, whose declared length may be wrong."""
        headers = dict(headers or {})
        if self.web.marks and self.content is not None:
            headers.setdefault("ETag", f'"{zlib.crc32(self.content)}"')
        headers["Content-Length"] = str(len(body) if length is None else length)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else body)
        if length is not None and length > len(body):
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Suppress the log."""


def _part(answer: Answer) -> bytes:
    return (answer.content or b"")[answer.start : answer.stop]


def _cut_off(answer: Answer) -> None:
    body = _part(answer)
    status, headers = (206, answer.range()) if "Range" in answer.headers else (200, {})
    answer.give(status, body[: len(body) // 2], headers, len(body))


def _drop(answer: Answer) -> None:
    answer.close_connection = True
    answer.connection.close()


def _hang(answer: Answer) -> None:
    answer.web.stopped.wait(20)
    answer.close_connection = True


def _trickle(answer: Answer) -> None:
    answer.give(206, b"", answer.range(), answer.stop - answer.start)
    for byte in _part(answer):
        answer.wfile.write(bytes([byte]))
        if answer.web.stopped.wait(0.02):
            return


def _endless(answer: Answer) -> None:
    answer.send_response(200 if "Range" not in answer.headers else 206)
    if "Range" in answer.headers:
        answer.send_header(*next(iter(answer.range().items())))
    answer.send_header("Transfer-Encoding", "chunked")
    answer.end_headers()
    answer.close_connection = True
    while not answer.web.stopped.is_set():
        answer.wfile.write(b"10000\r\n" + bytes(1 << 16) + b"\r\n")


def _redirect(where: str) -> Callable[[Answer], None]:
    def redirect(answer: Answer) -> None:
        place = where.format(path=answer.path, host=answer.headers["Host"])
        answer.give(302, b"", {"Location": place})

    return redirect


FAULTS: dict[str, Callable[[Answer], None]] = {
    "500": lambda answer: answer.give(500, b"no"),
    "503": lambda answer: answer.give(503, b"", {"Retry-After": "0"}),
    "429": lambda answer: answer.give(429, b""),
    "403": lambda answer: answer.give(403, b""),
    "404": lambda answer: answer.give(404, b""),
    "400": lambda answer: answer.give(400, b""),
    "416": lambda answer: answer.give(416, b""),
    "cut off": _cut_off,
    "dropped": _drop,
    "hanging": _hang,
    "trickling": _trickle,
    "endless": _endless,
    "short": lambda answer: answer.give(206, _part(answer)[:-1], answer.range()),
    "long": lambda answer: answer.give(206, _part(answer) + b"x", answer.range()),
    "shifted": lambda answer: answer.give(206, _part(answer), answer.range(shift=1)),
    "whole": lambda answer: answer.give(200, answer.content or b""),
    "unsized": lambda answer: answer.give(206, _part(answer), answer.range(size="*")),
    "unranged": lambda answer: answer.give(206, _part(answer)),
    "compressed": lambda answer: answer.give(
        206, _part(answer), {**answer.range(), "Content-Encoding": "gzip"}
    ),
    "no HTTP": lambda answer: (answer.wfile.write(b"hello\r\n\r\n"), _drop(answer))[1],
    "redirected": _redirect("http://{host}{path}?moved"),
    "redirected away": _redirect("ftp://{host}{path}"),
    "redirected nowhere": _redirect("http://[{path}"),
}  # fmt: skip


@contextmanager
def serving(folder: Path) -> Iterator[Web]:
    """Serve a folder on this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    server.daemon_threads = True
    server.web = web = Web(folder)  # type: ignore[attr-defined]
    web.address = f"127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield web
    finally:
        web.stopped.set()
        server.shutdown()
        thread.join()
        server.server_close()


def in_memory(path: str, folder: Path) -> str:
    """Copy a file or a folder to fsspec's memory, and return its URL."""
    import fsspec

    system = fsspec.filesystem("memory")
    file = path.partition(":")[0]
    system.put(file, f"/{folder.name}/{os.path.basename(file)}", recursive=os.path.isdir(file))
    return f"memory://{folder.name}/{os.path.basename(path)}"
