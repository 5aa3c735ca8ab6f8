"""The embedder that asks an endpoint, against a small one in a thread."""

from __future__ import annotations

import json
import math
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from memorywall.assembly import open_index
from memorywall.recall.embedders import http, open_embedder
from memorywall.recall.embedders.http import HttpEmbedder, parse_endpoint
from memorywall.records.errors import ConfigurationError, UnavailableError
from tests.support.service import open_service, settings_of

_KEY = "key-never-to-be-told"
_SECRET = "text-never-to-be-told"

Reply = tuple[int, dict[str, str], bytes]
Answer = Callable[[list[str]], Reply]


def vector_of(text: str) -> list[float]:
    """A vector that tells texts apart, and is not of length one."""
    return [float(len(text)), float(sum(text.encode()) % 97), 3.0]


def unit_of(text: str) -> list[float]:
    """The same, of length one."""
    vector = vector_of(text)
    return [one / math.hypot(*vector) for one in vector]


def good(texts: list[str]) -> Reply:
    """What an endpoint should reply, in another order than it was asked."""
    data = [{"index": at, "embedding": vector_of(text)} for at, text in enumerate(texts)]
    return 200, {}, json.dumps({"object": "list", "data": data[::-1]}).encode()


class Server(ThreadingHTTPServer):
    """An endpoint whose answers are set by a test; it keeps what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[Answer] = []
        self.usual: Answer = good
        self.asked: list[tuple[dict[str, str], dict[str, Any]]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1/embeddings"

    def handle_error(self, request: object, client_address: object) -> None:
        """Says nothing: a test may end a connection before its reply is written."""

    def texts(self) -> list[list[str]]:
        return [body["input"] for _, body in self.asked]


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append((headers | {"path": self.path}, body))
        answer = self.server.answers.pop(0) if self.server.answers else self.server.usual
        status, fields, content = answer(body["input"])
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Says nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def embedder(server: Server) -> Iterator[HttpEmbedder]:
    embedder = HttpEmbedder(f"{server.address}#small@3", key=_KEY, first_pause=0.001)
    yield embedder
    embedder.close()


def status(code: int, **headers: str) -> Answer:
    """A failure whose text repeats what it was asked, as some do."""
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda texts: (code, fields, json.dumps({"error": texts}).encode())


def raw(content: bytes) -> Answer:
    return lambda _: (200, {}, content)


def test_vectors_come_in_the_order_of_the_texts(server: Server, embedder: HttpEmbedder) -> None:
    texts = [f"text {'x' * (number % 7)} {number}" for number in range(150)]
    rows = embedder.embed(texts)
    assert rows.dtype == np.float32
    assert np.allclose(rows, [unit_of(text) for text in texts], atol=1e-6)
    assert [len(batch) for batch in server.texts()] == [64, 64, 22]


def test_the_request_has_the_model_and_the_key(server: Server, embedder: HttpEmbedder) -> None:
    embedder.embed(["hello"])
    headers, body = server.asked[0]
    assert body == {"model": "small", "input": ["hello"]}
    assert headers["authorization"] == f"Bearer {_KEY}"
    assert headers["content-type"] == "application/json"
    assert headers["path"] == "/v1/embeddings"


@pytest.mark.anyio
async def test_the_settings_put_prefixes_before_questions_and_documents(
    server: Server, tmp_path: Path
) -> None:
    settings = settings_of(
        tmp_path,
        embedder=f"{server.address}#small@3",
        embedder_query_prefix="query: ",
        embedder_document_prefix="passage: ",
    )
    async with open_service(tmp_path) as service, open_index(settings, service.services) as index:
        await index.embed(["who pays?"])
        await index.embed(["Ann pays."], documents=True)
    # The centre of the model is measured first, with texts of its own.
    asked = [text for batch in server.texts() for text in batch]
    assert "query: who pays?" in asked
    assert "passage: Ann pays." in asked


def test_without_a_key_no_authorization_is_sent(server: Server) -> None:
    embedder = open_embedder(f"{server.address}?version=1#small@3")
    assert embedder is not None
    embedder.embed(["hello"])
    embedder.close()
    assert "authorization" not in server.asked[0][0]
    assert server.asked[0][0]["path"] == "/v1/embeddings?version=1"


def test_texts_with_nothing_in_them_are_not_sent(server: Server, embedder: HttpEmbedder) -> None:
    rows = embedder.embed(["", "one", "  ", "two"])
    assert server.texts() == [["one", "two"]]
    assert not rows[[0, 2]].any()
    assert np.allclose(rows[[1, 3]], [unit_of("one"), unit_of("two")], atol=1e-6)
    assert embedder.embed([]).shape == (0, 3)
    assert len(server.asked) == 1


def test_odd_texts_are_sent_as_text(server: Server, embedder: HttpEmbedder) -> None:
    embedder.embed(["a\0b", "\ud800x", "\ud83d\ude80", "é" * 20_000])
    assert server.texts() == [["a\0b", "\ufffdx", "🚀", "é" * 8_000]]


def test_a_request_holds_so_many_characters(server: Server, embedder: HttpEmbedder) -> None:
    embedder.embed(["x" * 8_000] * 20)
    assert [len(batch) for batch in server.texts()] == [16, 4]


def test_the_length_is_learned_when_the_address_does_not_tell(server: Server) -> None:
    embedder = HttpEmbedder(f"{server.address}#org/small@v2")
    assert embedder.dimensions == 3
    assert embedder.model.startswith("http-org/small@v2:")
    assert embedder.model.endswith(":3:p1:i8")
    embedder.close()
    told = HttpEmbedder(f"{server.address}#org/small@v2@3")
    assert told.model == embedder.model
    told.close()
    assert len(server.asked) == 1
    elsewhere = HttpEmbedder("http://127.0.0.1:9/v1/embeddings#org/small@v2@3")
    elsewhere.close()
    assert elsewhere.model != told.model


@pytest.mark.parametrize("code", [408, 429, 500, 502, 503, 504])
def test_request_to_busy_endpoint_is_repeated(
    server: Server, embedder: HttpEmbedder, code: int
) -> None:
    server.answers = [status(code), status(code)]
    assert np.allclose(embedder.embed(["one"]), [unit_of("one")], atol=1e-6)
    assert server.texts() == [["one"]] * 3


def test_it_gives_up_in_the_end(server: Server, embedder: HttpEmbedder) -> None:
    server.usual = status(503)
    with pytest.raises(UnavailableError, match="replied 503"):
        embedder.embed(["one"])
    assert len(server.asked) == 4


def test_it_waits_as_long_as_it_is_asked_to(server: Server, embedder: HttpEmbedder) -> None:
    server.answers = [status(429, Retry_After="0.3")]
    start = time.monotonic()
    embedder.embed(["one"])
    assert time.monotonic() - start >= 0.3


def test_it_does_not_wait_for_ever(server: Server, embedder: HttpEmbedder) -> None:
    server.answers = [status(429, Retry_After="3600")]
    with pytest.raises(UnavailableError, match="replied 429"):
        embedder.embed(["one"])
    assert len(server.asked) == 1


def test_a_date_to_wait_for_is_read() -> None:
    soon = datetime.now(UTC) + timedelta(seconds=20)
    assert 15 < http._asked_pause(format_datetime(soon, usegmt=True)) <= 20
    assert http._asked_pause(format_datetime(soon - timedelta(hours=1), usegmt=True)) == 0
    assert http._asked_pause("7") == 7
    assert http._asked_pause("soon") == 0
    assert http._asked_pause("-5") == 0
    assert http._asked_pause(None) == 0


@pytest.mark.parametrize("code", [301, 401, 403, 404, 501])
def test_refusal_is_reported_at_once(server: Server, embedder: HttpEmbedder, code: int) -> None:
    server.usual = status(code, Location="http://127.0.0.1:9/elsewhere")
    with pytest.raises(UnavailableError, match=f"replied {code}"):
        embedder.embed(["one", "two"])
    assert len(server.asked) == 1


def _at_most(texts: int, characters: int) -> Answer:
    """An endpoint that takes so many texts, of so many characters each."""

    def answer(asked: list[str]) -> Reply:
        if len(asked) > texts or max(map(len, asked)) > characters:
            return status(413)(asked)
        return good(asked)

    return answer


def test_fewer_and_shorter_texts_are_tried(server: Server, embedder: HttpEmbedder) -> None:
    server.usual = _at_most(3, 1_000)
    texts = ["one", "two", "x" * 3_000, "four", "five"]
    rows = embedder.embed(texts)
    expected = [unit_of(text if len(text) < 10 else "x" * 750) for text in texts]
    assert np.allclose(rows, expected, atol=1e-6)


def test_embedding_fails_soon_when_every_text_is_too_long(
    server: Server, embedder: HttpEmbedder
) -> None:
    server.usual = status(400)
    with pytest.raises(UnavailableError, match="replied 400"):
        embedder.embed(["word"] * 64)
    assert len(server.asked) == 7


def _data(*vectors: object, **others: object) -> bytes:
    return json.dumps({"data": list(vectors), **others}).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not json",
        b"\xff\xfe",
        b"[]",
        b"{}",
        _data(),
        _data({"index": 0, "embedding": [1, 2, 3]}),
        _data({"index": 0, "embedding": [1, 2, 3]}, {"index": 0, "embedding": [1, 2, 3]}),
        _data({"index": 0, "embedding": [1, 2, 3]}, {"index": 7, "embedding": [1, 2, 3]}),
        _data({"index": 0, "embedding": [1, 2, 3]}, {"index": 1, "embedding": [1, 2]}),
        _data({"index": 0, "embedding": []}, {"index": 1, "embedding": []}),
        _data({"index": 0, "embedding": "AAAA"}, {"index": 1, "embedding": "AAAA"}),
        _data({"index": 0, "embedding": [1, None, 3]}, {"index": 1, "embedding": [1, 2, 3]}),
        _data({"index": 0, "embedding": [1e300, 2, 3]}, {"index": 1, "embedding": [1, 2, 3]}),
    ],
)
def test_a_reply_that_is_not_vectors_is_refused(
    server: Server, embedder: HttpEmbedder, content: bytes
) -> None:
    server.usual = raw(content)
    with pytest.raises(UnavailableError, match="not one vector for each text"):
        embedder.embed(["one", "two"])


def test_vectors_of_another_length_are_refused(server: Server, embedder: HttpEmbedder) -> None:
    server.usual = raw(_data({"embedding": [1, 2, 3, 4]}))
    with pytest.raises(UnavailableError, match="4 numbers and not of 3"):
        embedder.embed(["one"])


def test_vectors_without_an_index_come_in_order(server: Server, embedder: HttpEmbedder) -> None:
    server.usual = raw(_data({"embedding": [0, 2, 0]}, {"embedding": [5, 0, 0]}))
    assert embedder.embed(["one", "two"]).tolist() == [[0, 1, 0], [1, 0, 0]]


def _told(failure: BaseException) -> str:
    """Everything a log of this failure may show."""
    return "".join(traceback.format_exception(failure)) + repr(failure)


@pytest.mark.parametrize(
    "answer", [status(401), status(400), status(500), raw(_SECRET.encode()), raw(b"{}")]
)
def test_failures_repeat_neither_text_nor_key(
    server: Server, embedder: HttpEmbedder, answer: Answer
) -> None:
    server.usual = answer
    text = _SECRET
    with pytest.raises(UnavailableError) as caught:
        embedder.embed([text])
    told = _told(caught.value) + repr(embedder)
    assert _SECRET not in told
    assert _KEY not in told


def test_an_endpoint_that_is_down_is_unavailable() -> None:
    with Server() as server:
        address = server.address
    embedder = HttpEmbedder(f"{address}#small@3", key=_KEY, first_pause=0.001)
    with pytest.raises(UnavailableError, match="cannot be reached") as caught:
        embedder.embed([_SECRET])
    embedder.close()
    assert _SECRET not in _told(caught.value)
    with pytest.raises(UnavailableError, match="cannot be reached"):
        HttpEmbedder(f"{address}#small", first_pause=0.001)


def test_closing_ends_a_pause(server: Server) -> None:
    embedder = HttpEmbedder(f"{server.address}#small@3", first_pause=20)
    asked = threading.Event()

    def busy(texts: list[str]) -> Reply:
        asked.set()
        return status(503)(texts)

    server.usual = busy
    failures: list[UnavailableError] = []

    def embed() -> None:
        try:
            embedder.embed(["one"])
        except UnavailableError as failure:
            failures.append(failure)

    thread = threading.Thread(target=embed)
    thread.start()
    assert asked.wait(10)
    embedder.close()
    thread.join(10)
    assert not thread.is_alive()
    assert [str(one) for one in failures] == ["The embedding endpoint is closed"]
    with pytest.raises(UnavailableError, match="is closed"):
        embedder.embed(["two"])


def test_several_threads_may_ask_at_once(server: Server, embedder: HttpEmbedder) -> None:
    results: dict[int, np.ndarray[Any, Any]] = {}

    def embed(number: int) -> None:
        results[number] = embedder.embed([f"{number} " + "y" * number] * 3)

    threads = [threading.Thread(target=embed, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(8):
        expected = unit_of((f"{number} " + "y" * number).strip())
        assert np.allclose(results[number], [expected] * 3, atol=1e-6)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("http://127.0.0.1/v1/embeddings", "name of a model"),
        ("http://127.0.0.1/v1/embeddings#", "name of a model"),
        ("http://embeddings.example/v1#m", "in the clear"),
        ("http://10.0.0.7/v1#m", "in the clear"),
        ("http://127.0.0.1.example/v1#m", "in the clear"),
        ("https:///v1#m", "cannot be read"),
        ("https:v1#m", "cannot be read"),
        ("http://127.0.0.1:port/v1#m", "cannot be read"),
        ("https://user:word@example.org/v1#m", "no password"),
    ],
)
def test_an_address_that_will_not_do_is_refused(spec: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as caught:
        open_embedder(spec, key=_KEY)
    assert "word@" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "local"),
    [
        ("http://localhost:8080/v1#m@3", True),
        ("http://127.8.0.1/v1#m@3", True),
        ("http://[::1]:9/v1#m@3", True),
        ("https://embeddings.example/v1#m@3", False),
        ("http+insecure://10.0.0.7:8080/v1#m@3", False),
    ],
)
def test_an_address_is_read(spec: str, local: bool) -> None:
    endpoint = parse_endpoint(spec)
    assert endpoint.local == local
    assert (endpoint.model, endpoint.dimensions) == ("m", 3)
    assert endpoint.url == httpx.URL(spec.replace("+insecure", "").partition("#")[0])


def test_a_proxy_is_not_told_what_stays_here(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    embedder = HttpEmbedder(f"{server.address}#small@3", first_pause=0.001)
    assert embedder.embed(["one"]).any()
    embedder.close()
