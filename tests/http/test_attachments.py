"""Files of intents: RFC-0005, and RFC-0015 section 6.2."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
import threading
from email.message import Message
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorywall.coordination import attachments
from memorywall.coordination.attachments import CHUNK_BYTES
from memorywall.records.entry import VALUE_LIMIT
from tests.http.checks import MEMORY, assert_problem, value_of_size
from tests.http.files import attach, make_intent, pieces_in_database, stored
from tests.support.service import RunningService, draft, open_service
from tests.support.stored import places_holding

pytestmark = pytest.mark.anyio

LARGE = 16 * 1024 * 1024


async def test_a_file_is_attached_uploaded_downloaded_and_deleted(service: RunningService) -> None:
    ana = await service.agent("ana")
    files = await make_intent(ana)
    content = b"%PDF-1.7 " + secrets.token_bytes(1_000)
    digest = hashlib.sha256(content)
    made = await attach(ana, files, metadata={"pages": 2})
    path = f"{files}/{made['id']}"
    assert made == {
        "id": made["id"],
        "intent_id": files.split("/")[4],
        "filename": "scan.pdf",
        "mime_type": "application/pdf",
        "size": 0,
        "storage_url": f"{path}/content",
        "stored": False,
        "digest": None,
        "metadata": {"pages": 2},
        "uploaded_by": "ana",
        "created_at": "2026-02-02T02:40:00.000Z",
        "createdAt": "2026-02-02T02:40:00.000Z",
    }
    assert made["id"].startswith("att_")
    assert_problem(await ana.get(f"{path}/content"), 404, "NOT_FOUND")

    put = await ana.put(f"{path}/content", content=content)
    assert put.status_code == 200, put.text
    view = {**made, "size": 1_009, "stored": True, "digest": f"sha256:{digest.hexdigest()}"}
    assert put.json() == view
    assert (await ana.get(path)).json() == view
    second = await attach(ana, files)
    assert (await ana.get(files)).json() == {"attachments": [view, second]}

    got = await ana.get(f"{path}/content")
    assert (got.status_code, got.content) == (200, content)
    assert got.headers["content-type"] == "application/pdf"
    assert got.headers["content-length"] == "1009"
    assert got.headers["etag"] == f'"sha256-{digest.hexdigest()}"'
    encoded = base64.b64encode(digest.digest()).decode()
    assert got.headers["repr-digest"] == f"sha-256=:{encoded}:"

    assert (await ana.delete(path)).status_code == 204
    for response in (
        await ana.get(path),
        await ana.get(f"{path}/content"),
        await ana.put(f"{path}/content", content=content),
        await ana.delete(path),
    ):
        assert_problem(response, 404, "NOT_FOUND")
    assert (await ana.get(files)).json() == {"attachments": [second]}
    assert pieces_in_database(service) == []


async def test_the_log_of_the_intent_tells_of_a_file_and_not_what_is_in_it(
    service: RunningService,
) -> None:
    ana = await service.agent("ana")
    files = await make_intent(ana)
    made = await attach(ana, files, size=9, metadata={"secret": "in-the-metadata"})
    await ana.put(f"{files}/{made['id']}/content", content=b"the-bytes")
    log = await ana.get(files.replace("/attachments", "/events"))
    added = [one for one in log.json()["events"] if one["type"] == "attachment_added"]
    assert [one["data"] for one in added] == [{"id": made["id"], "filename": "scan.pdf", "size": 9}]
    assert added[0]["actor"] == "ana"
    assert "the-bytes" not in log.text
    assert "in-the-metadata" not in log.text


@pytest.mark.parametrize(
    "size",
    [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES + 7, LARGE],
    ids=lambda size: f"{size}",
)
async def test_content_of_every_size_comes_back_as_it_was(
    service: RunningService, size: int
) -> None:
    ana = await service.agent("ana")
    files = await make_intent(ana)
    content = secrets.token_bytes(size)
    path = await stored(ana, files, content, size=size)
    view = (await ana.get(path.removesuffix("/content"))).json()
    assert view["size"] == size
    assert view["digest"] == "sha256:" + hashlib.sha256(content).hexdigest()
    got = await ana.get(path)
    assert got.status_code == 200
    assert got.content == content
    sizes = [length for _, _, length in pieces_in_database(service)]
    # A piece is its nonce, what was sealed, and the proof that it is whole.
    assert sum(sizes) == size + len(sizes) * 28
    assert len(sizes) == max(1, -(-size // CHUNK_BYTES))
    assert max(sizes) <= CHUNK_BYTES + 28


async def test_content_is_never_in_the_clear_in_a_file(
    service: RunningService, tmp_path: Path
) -> None:
    ana = await service.agent("ana")
    mark = b"in-the-clear-" + secrets.token_hex(8).encode()
    path = await stored(ana, await make_intent(ana), mark * 40_000, filename="seen-name.pdf")
    assert places_holding(tmp_path, mark) == []
    assert places_holding(tmp_path, b"seen-name.pdf"), "the search finds what is in the clear"
    assert (await ana.get(path)).content == mark * 40_000


async def test_a_declared_size_is_kept_to(service: RunningService) -> None:
    ana = await service.agent("ana")
    files = await make_intent(ana)
    made = await attach(ana, files, size=5)
    assert made["size"] == 5
    path = f"{files}/{made['id']}"
    for content in (b"", b"four", b"sixsix"):
        problem = assert_problem(await ana.put(f"{path}/content", content=content), 422)
        assert "`size`" in problem["detail"]
    assert (await ana.get(path)).json() == made
    assert pieces_in_database(service) == []
    assert (await ana.put(f"{path}/content", content=b"fives")).status_code == 200


async def test_stored_content_may_come_again_and_is_never_replaced(service: RunningService) -> None:
    ana = await service.agent("ana")
    files = await make_intent(ana)
    path = await stored(ana, files, b"first")
    before = pieces_in_database(service)
    view = (await ana.get(path.removesuffix("/content"))).json()
    again = await ana.put(path, content=b"first")
    assert (again.status_code, again.json()) == (200, view)
    for other in (b"other", b"", b"first and more"):
        assert_problem(await ana.put(path, content=other), 409, "VERSION_MISMATCH")
    assert (await ana.get(path)).content == b"first"
    assert (await ana.get(path.removesuffix("/content"))).json() == view
    assert pieces_in_database(service) == before


async def test_of_uploads_at_once_one_is_stored(service: RunningService) -> None:
    ana = await service.agent("ana")
    files = await make_intent(ana)
    path = f"{files}/{(await attach(ana, files))['id']}/content"
    contents = [secrets.token_bytes(2 * CHUNK_BYTES + 1 + number) for number in range(6)]
    replies = await asyncio.gather(*(ana.put(path, content=one) for one in contents * 2))
    won = {index % 6 for index, one in enumerate(replies) if one.status_code == 200}
    assert len(won) == 1
    assert [one.status_code for one in replies].count(409) == 10
    assert (await ana.get(path)).content == contents[won.pop()]
    assert len(pieces_in_database(service)) == 3


async def test_large_content_is_digested_sealed_and_written_off_the_event_loop(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[int] = set()
    sha256, seal, submit = (
        hashlib.sha256,
        service.services.cipher.seal_bytes,
        service.services.store.write,
    )
    long: list[bool] = []

    def digest(content: bytes) -> Any:
        # Keys are digested as well, but they are short.
        if len(content) > CHUNK_BYTES:
            threads.add(threading.get_ident())
        return sha256(content)

    def seal_bytes(
        tenant: str, content: bytes, binding: str, key_id: str | None = None
    ) -> tuple[str, bytes]:
        threads.add(threading.get_ident())
        return seal(tenant, content, binding, key_id)

    async def write(tenant: str, script: Any, **options: bool) -> Any:
        long.append(options.get("long", False))
        return await submit(tenant, script, **options)

    ana = await service.agent("ana")
    files = await make_intent(ana)
    path = f"{files}/{(await attach(ana, files))['id']}/content"
    monkeypatch.setattr(hashlib, "sha256", digest)
    monkeypatch.setattr(service.services.cipher, "seal_bytes", seal_bytes)
    monkeypatch.setattr(service.services.store, "write", write)
    assert (await ana.put(path, content=b"x" * (CHUNK_BYTES + 1))).status_code == 200
    assert threads
    assert threading.get_ident() not in threads
    assert long[-1]


async def test_others_are_answered_while_a_large_file_is_read(service: RunningService) -> None:
    ana = await service.agent("ana")
    files = await make_intent(ana)
    content = secrets.token_bytes(LARGE)
    large = asyncio.ensure_future(ana.get(await stored(ana, files, content)))
    answered = 0
    while not large.done():
        # One turn of the loop, in which the download goes on as far as it does without a pause.
        await asyncio.sleep(0)
        assert (await ana.get(files)).status_code == 200
        answered += 1
    assert (await large).content == content
    # At least one for each piece, or, where a piece is one statement and an answer several, fewer.
    pieces = LARGE // CHUNK_BYTES
    assert answered > (pieces if service.services.settings.database_url is None else pieces // 8)


async def test_a_limit_of_bytes_holds_for_what_is_declared_and_for_what_comes(
    tmp_path: Path,
) -> None:
    async with open_service(tmp_path, attachment_limit=1_000) as service:
        ana = await service.agent("ana")
        files = await make_intent(ana)
        body = {"filename": "a.bin", "mime_type": "application/octet-stream", "size": 1_001}
        assert_problem(await ana.post(files, json=body), 413, "VALUE_TOO_LARGE")
        assert (await ana.get(files)).json() == {"attachments": []}
        # What is kept elsewhere may be of any size.
        await attach(ana, files, size=10**12, storage_url="https://files.example/dump")
        path = f"{files}/{(await attach(ana, files))['id']}/content"
        assert_problem(await ana.put(path, content=b"x" * 1_001), 413, "VALUE_TOO_LARGE")
        assert (await ana.put(path, content=b"x" * 1_000)).status_code == 200


async def test_intent_has_a_limit_of_files(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert attachments.MOST_ATTACHMENTS == 1_000
    monkeypatch.setattr(attachments, "MOST_ATTACHMENTS", 3)
    ana = await service.agent("ana")
    files, others = await make_intent(ana), await make_intent(ana)
    made = [await attach(ana, files) for _ in range(3)]
    body = {"filename": "a.bin", "mime_type": "application/octet-stream"}
    problem = assert_problem(await ana.post(files, json=body), 429, "CAPACITY_EXCEEDED")
    assert (problem["current_count"], problem["max_capacity"]) == (3, 3)
    await attach(ana, others)
    assert (await ana.delete(f"{files}/{made[0]['id']}")).status_code == 204
    await attach(ana, files)


async def test_external_url_is_returned_and_never_fetched(service: RunningService) -> None:
    visits: list[object] = []
    server = await asyncio.start_server(
        lambda reader, writer: visits.append(writer), "127.0.0.1", 0
    )
    host, port = server.sockets[0].getsockname()
    url = f"http://{host}:{port}/scan.pdf?signature=a%2Fb"
    ana = await service.agent("ana")
    files = await make_intent(ana)
    made = await attach(ana, files, size=7, storage_url=url)
    assert (made["storage_url"], made["size"], made["stored"]) == (url, 7, False)
    path = f"{files}/{made['id']}"
    assert (await ana.get(path)).json() == made
    assert (await ana.get(files)).json() == {"attachments": [made]}
    assert_problem(await ana.get(f"{path}/content"), 404, "NOT_FOUND")
    problem = assert_problem(await ana.put(f"{path}/content", content=b"seven b"), 409)
    assert "`storage_url`" in problem["detail"]
    assert (await ana.delete(path)).status_code == 204
    assert visits == []
    server.close()
    await server.wait_closed()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("filename", name) for name in (
            "", ".", "..", "...", "a/b", "/etc/passwd", "..\\b", "C:x", " a", "a ", "a\nb", "a\0b",
            "gpj\u202eexe", "a\r\nx-header: 1", "x" * 256, 7, None,
        )),
        *(("mime_type", kind) for kind in (
            "", "text", "text/", "/plain", "text/plain; charset=utf-8", "text/pl ain",
            "text/plain\r\nx: 1", "tex\u00e9/plain", "a/b/c", "*/*", "-a/b", "x" * 128 + "/a",
        )),
        *(("storage_url", url) for url in (
            "", "x", "/api/v1/x", "//files.example/a", "ftp://files.example/a", "file:///etc/passwd",
            "javascript:alert(1)", "data:text/html,x", "http://", "https:///a", "https://:443/a",
            "https://ana:secret@files.example/a", "https://files.example/a b",
            "https://files.example/\nx", "https://files.example:99999/", "https://[::1/",
            "https://files.ex\u00e4mple/", 'https://files.example/"><script>',
            "https://files.example/" + "a" * 4_096,
        )),
        *(("size", size) for size in (-1, 1.5, "7", 2**60, True)),
        *(("metadata", metadata) for metadata in ("x", 7, None)),
        ("colour", "red"),
    ],
)  # fmt: skip
async def test_what_is_said_of_a_file_is_checked(
    service: RunningService, field: str, value: Any
) -> None:
    ana = await service.agent("ana")
    files = await make_intent(ana)
    body = {"filename": "scan.pdf", "mime_type": "application/pdf", field: value}
    problem = assert_problem(await ana.post(files, json=body), 422, "VALIDATION_ERROR")
    assert f"`{field}`" in problem["detail"] or f"`$.{field}`" in problem["detail"]
    assert (await ana.get(files)).json() == {"attachments": []}


async def test_the_other_words_of_the_published_client_mean_the_same(
    service: RunningService,
) -> None:
    ana = await service.agent("ana")
    files = await make_intent(ana)
    url = "https://files.example/scan.pdf"
    body = {"filename": "scan.pdf", "content_type": "image/png", "size_bytes": 9, "url": url}
    made = (await ana.post(files, json=body)).json()
    assert (made["mime_type"], made["size"], made["storage_url"]) == ("image/png", 9, url)
    for bad in ({"content_type": "png"}, {"size_bytes": -1}, {"url": "file:///etc/passwd"}):
        assert_problem(await ana.post(files, json={**body, **bad}), 422, "VALIDATION_ERROR")


async def test_metadata_is_bounded(service: RunningService) -> None:
    ana = await service.agent("ana")
    files = await make_intent(ana)
    body = {"filename": "a", "metadata": value_of_size(VALUE_LIMIT + 1)}
    assert_problem(await ana.post(files, json=body), 413, "VALUE_TOO_LARGE")
    await attach(ana, files, metadata=value_of_size(VALUE_LIMIT))


@pytest.mark.parametrize(
    "filename",
    ["scan.pdf", "a b.txt", 'say "hi".txt', "100%.txt", "Rechnung März.pdf", "請求書.pdf", "😀",
     "a;b=c.txt", "'quoted'.txt", ".hidden", "name*=utf-8''x.exe", "x" * 255],
)  # fmt: skip
async def test_the_name_of_a_file_survives_the_way_to_a_browser(
    service: RunningService, filename: str
) -> None:
    ana = await service.agent("ana")
    path = await stored(ana, await make_intent(ana), b"x", filename=filename)
    disposition = (await ana.get(path)).headers["content-disposition"]
    assert disposition.isascii()
    header = Message()
    header["content-disposition"] = disposition
    assert header.get_content_disposition() == "attachment"
    plain, _, exact = disposition.removeprefix("attachment; ").partition("; filename*=UTF-8''")
    assert httpx.URL(f"http://x/?{exact}").query.decode() == exact, "nothing is left to encode"
    header.replace_header("content-disposition", f"attachment; filename*=UTF-8''{exact}")
    assert header.get_filename() == filename
    header.replace_header("content-disposition", f"attachment; {plain}")
    fallback = header.get_filename()
    assert fallback is not None
    assert len(fallback) == len(filename)
    assert all(shown in (meant, "_") for shown, meant in zip(fallback, filename, strict=True)), (
        fallback
    )


@pytest.mark.parametrize("kind", ["text/html", "image/svg+xml", "application/xhtml+xml"])
async def test_a_file_is_never_shown_as_a_page(service: RunningService, kind: str) -> None:
    ana = await service.agent("ana")
    page = b"<script>alert(1)</script>"
    path = await stored(ana, await make_intent(ana), page, mime_type=kind, filename="a.html")
    headers = (await ana.get(path)).headers
    assert headers["content-type"] == kind
    assert headers["content-disposition"].startswith("attachment;")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert headers["cache-control"] == "no-store"


async def test_refusal_of_a_too_large_value_names_attachments_which_accept_it(
    service: RunningService,
) -> None:
    ana = await service.agent("ana")
    files = await make_intent(ana)
    refused = await ana.post(MEMORY, json=draft(value=value_of_size(VALUE_LIMIT + 1)))
    detail = assert_problem(refused, 413, "VALUE_TOO_LARGE")["detail"]
    assert "POST /api/v1/intents/{intent_id}/attachments" in detail
    assert "`attachment_id`" in detail
    path = await stored(ana, files, b"x" * (VALUE_LIMIT + 1))
    value = {"attachment_id": path.split("/")[6]}
    made = await ana.post(MEMORY, json=draft(value=value))
    assert made.status_code == 201
    assert made.json()["value"] == value
