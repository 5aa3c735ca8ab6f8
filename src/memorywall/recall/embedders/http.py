"""Vectors from an endpoint with OpenAI's interface: `POST {model, input: [...]}`.

The endpoint gets the texts of entries, so a plain `http:` URL must be on this machine; a remote one
is written `http+insecure:`. No error repeats a text, a key or a response.
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from random import uniform

import httpx
import msgspec
import numpy as np

from memorywall.configuration.values import is_loopback
from memorywall.recall.embedders.conversion import Rows, prepare_texts, unit_rows
from memorywall.recall.stored_vectors import FORM
from memorywall.records.errors import ConfigurationError, UnavailableError

_LONGEST = 8_000
_SHORTEST_TO_HALVE = 500
_TEXTS_AT_ONCE = 64
_CHARACTERS_AT_ONCE = 128_000
_TIMEOUT = httpx.Timeout(30, connect=5)
_ATTEMPTS = 4
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_TOO_MUCH = frozenset({400, 413, 422})
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True)
class EmbeddingEndpoint:
    """The URL and the model of an endpoint, and the dimensions of its vectors if declared."""

    url: httpx.URL
    model: str
    dimensions: int | None
    local: bool


def parse_endpoint(spec: str) -> EmbeddingEndpoint:
    """Parses `http://host/v1/embeddings#model` or `...#model@dimensions`. Raises
    ConfigurationError."""
    address, _, fragment = spec.partition("#")
    scheme, _, rest = address.partition(":")
    insecure = scheme == "http+insecure"
    try:
        url = httpx.URL(f"http:{rest}" if insecure else address)
        host = url.host
    except (httpx.InvalidURL, ValueError):
        host = ""
    if not host:
        raise ConfigurationError("The address of the embedding endpoint cannot be read")
    if url.userinfo:
        raise ConfigurationError(
            "The address of the embedding endpoint must hold no password; give the key apart"
        )
    local = is_loopback(host)
    if url.scheme == "http" and not insecure and not local:
        raise ConfigurationError(
            f"Texts would go to {host} in the clear: use https, or write http+insecure:"
        )
    named = re.fullmatch(r"(?P<model>.+?)(?:@(?P<dimensions>[1-9]\d{0,4}))?", fragment)
    if not named:
        raise ConfigurationError(
            "The address of the embedding endpoint must end in # and the name of a model"
        )
    dimensions = named["dimensions"]
    return EmbeddingEndpoint(url, named["model"], int(dimensions) if dimensions else None, local)


class _Vector(msgspec.Struct):
    embedding: list[float]
    index: int | None = None


class _Reply(msgspec.Struct):
    data: list[_Vector]


class _TooMuchError(UnavailableError):
    """The endpoint refuses these texts; fewer or shorter texts may succeed."""


class HttpEmbedder:
    """An embedding endpoint, with batches and retries.

    The number of dimensions is part of the model id, so it must be known from the start: the URL
    declares it, or one request at the opening determines it. With a declared number the server
    starts, and searches by words, while the endpoint is down.
    """

    is_local = False

    def __init__(
        self, spec: str, *, key: str | None = None, first_pause: float = _FIRST_PAUSE
    ) -> None:
        self._endpoint = parse_endpoint(spec)
        self._first_pause = first_pause
        self._closed = threading.Event()
        self._client = httpx.Client(
            timeout=_TIMEOUT,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            # Local requests must not use a proxy.
            trust_env=not self._endpoint.local,
        )
        try:
            self.dimensions = self._endpoint.dimensions or self._ask(["a"]).shape[1]
        except BaseException:
            self.close()
            raise
        # The URL is the only known identity of the weights.
        place = hashlib.sha256(str(self._endpoint.url).encode()).hexdigest()[:8]
        self.model = f"http-{self._endpoint.model}:{place}:{self.dimensions}:{FORM}"

    def embed(self, texts: Sequence[str]) -> Rows:
        """The vectors of the endpoint, scaled to length one. Raises UnavailableError."""
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        ready = prepare_texts(texts, _LONGEST)
        for places in _batches(ready):
            vectors = self._embed_some([ready[place] for place in places])
            if vectors.shape[1] != self.dimensions:
                raise UnavailableError(
                    f"The embedding endpoint gives vectors of {vectors.shape[1]} numbers "
                    f"and not of {self.dimensions}"
                )
            rows[places] = unit_rows(vectors)
        return rows

    def close(self) -> None:
        """Closes the connections and ends pauses; running requests fail."""
        self._closed.set()
        self._client.close()

    def _embed_some(self, texts: list[str]) -> Rows:
        """Embeds texts. If they are too many, embeds halves; if a single text is too long, half of
        it.

        Endpoints have different limits, and one long text must not prevent the embedding of others.
        """
        try:
            return self._ask(texts)
        except _TooMuchError:
            half = len(texts) // 2
            if half:
                first, last = self._embed_some(texts[:half]), self._embed_some(texts[half:])
                if first.shape[1] != last.shape[1]:
                    raise UnavailableError(
                        "The embedding endpoint gives vectors of different lengths"
                    ) from None
                return np.concatenate([first, last])
            if len(texts[0]) < _SHORTEST_TO_HALVE:
                raise
            return self._embed_some([texts[0][: len(texts[0]) // 2]])

    def _ask(self, texts: list[str]) -> Rows:
        """One request, with a few retries while the endpoint is busy or unreachable."""
        body = msgspec.json.encode({"model": self._endpoint.model, "input": texts})
        for attempt in range(_ATTEMPTS):
            pause = self._first_pause * 2**attempt * uniform(0.75, 1.25)  # noqa: S311
            try:
                reply = self._client.post(
                    self._endpoint.url, content=body, headers={"Content-Type": "application/json"}
                )
            except (httpx.HTTPError, RuntimeError) as failure:
                # A client that is closed meanwhile raises RuntimeError.
                problem = f"cannot be reached: {type(failure).__name__}"
            else:
                if reply.status_code == 200:
                    return _vectors(reply.content, len(texts))
                problem = f"replied {reply.status_code}"
                if reply.status_code in _TOO_MUCH:
                    raise _TooMuchError(f"The embedding endpoint {problem}")
                if reply.status_code not in _PASSING:
                    break
                pause = max(pause, _asked_pause(reply.headers.get("Retry-After")))
            if pause > _LONGEST_PAUSE or attempt + 1 == _ATTEMPTS or self._closed.wait(pause):
                break
        if self._closed.is_set():
            problem = "is closed"
        raise UnavailableError(f"The embedding endpoint {problem}")


def _batches(texts: list[str]) -> Iterator[list[int]]:
    """The indexes of non-empty texts, in batches for one request each."""
    places: list[int] = []
    characters = 0
    for place, text in enumerate(texts):
        if not text:
            continue
        full = len(places) == _TEXTS_AT_ONCE or characters + len(text) > _CHARACTERS_AT_ONCE
        if places and full:
            yield places
            places, characters = [], 0
        places.append(place)
        characters += len(text)
    if places:
        yield places


def _vectors(body: bytes, count: int) -> Rows:
    """The vectors of a response in the order of the texts."""
    try:
        found = msgspec.json.decode(body, type=_Reply).data
        indexes = [place if one.index is None else one.index for place, one in enumerate(found)]
        if sorted(indexes) != list(range(count)):
            raise ValueError("not one vector a text")
        ordered = sorted(zip(indexes, found, strict=True), key=lambda pair: pair[0])
        rows = np.array([one.embedding for _, one in ordered], np.float64)
        if rows.ndim != 2 or not rows.shape[1] or np.abs(rows).max() > _LARGEST:
            raise ValueError("not vectors")
    except (msgspec.MsgspecError, ValueError, OverflowError):
        raise UnavailableError(
            "The reply of the embedding endpoint is not one vector for each text"
        ) from None
    return rows.astype(np.float32)


def _asked_pause(header: str | None) -> float:
    """The seconds of a Retry-After header, which contains seconds or a date."""
    if not header:
        return 0.0
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", header):
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, OverflowError):
        return 0.0
