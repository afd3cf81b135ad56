"""Who may ask the review page, and what every answer of it forbids."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from stepdown.builder.pages.gate import LARGEST_BODY
from tests.audit.web_review import Review, fields, reviewed, sampled
from tests.conftest import Shop


@pytest.fixture(scope="module")
def review(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Review]:
    run = sampled(Shop(tmp_path_factory.mktemp("gate")), [[0, 1, 5]])
    with reviewed(run, "ann", "bo b", "ünal") as served:
        yield served


PAGES = (
    "/",
    "/review/ann/",
    "/review/ann/step?id=gallery/job-0/1",
    "/review/ann/queue",
    "/review/ann/end",
    "/static/review.js",
    "/static/review.css",
    "/static/pages/pages.js",
    "/static/pages/pages.css",
    "/nowhere",
    "/docs",
    "/openapi.json",
)


STRANGE_COOKIES = ('theme={"dark": 1}', "a=b c", "=", "expires=1", 'q="a', "a[0]=1", "caf\xe9=\xe9", "path")


@pytest.mark.parametrize("strange", STRANGE_COOKIES)
def test_cookies_of_other_programs_on_the_host_lock_nobody_out(review: Review, strange: str) -> None:
    own = review.accesses["ann"]
    for cookies in (f"{strange}; {own.cookie}={own.token}", f"{own.cookie}={own.token};{strange}"):
        answer = httpx.get(f"{review.origin}/review/ann/queue", headers={b"cookie": cookies.encode("latin-1")})
        assert answer.status_code == 200


@pytest.mark.parametrize("page", PAGES)
def test_without_a_token_nothing_is_shown(review: Review, page: str) -> None:
    with review.client(None) as stranger:
        answer = stranger.get(page)
    assert answer.status_code == 401
    assert "gallery" not in answer.text


def test_a_wrong_token_or_anothers_name_is_refused(review: Review) -> None:
    token = parse_qs(urlsplit(review.link()).query)["token"][0]
    with review.client(None) as stranger:
        for query in (
            f"token={token}x",
            "token=",
            f"reviewer=bo%20b&token={token}",
            f"token={token[:-1]}",
            "token=%ff",
        ):
            assert stranger.get(f"/?{query}").status_code in {401, 403}
        assert not stranger.cookies


def test_a_link_is_exchanged_for_a_cookie_that_no_script_and_no_other_site_gets(review: Review) -> None:
    answer = httpx.get(review.link("bo b"))
    assert (answer.status_code, answer.headers["location"]) == (303, "/review/bo%20b/")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    with review.client("bo b") as client:
        assert "token" not in str(client.get("/").url)
        assert client.get("/").status_code == 200


def test_a_reviewers_cookie_opens_no_other_desk(review: Review) -> None:
    with review.client("ann") as ann:
        for page in ("/review/bo%20b/", "/review/bo%20b/queue", "/review/%C3%BCnal/end", "/review/nobody/"):
            assert ann.get(page).status_code == 403
        ann.get(review.link("ünal"))  # one browser may review under two names
        assert ann.get("/review/%C3%BCnal/queue").status_code == 200
        assert ann.get("/review/ann/queue").status_code == 200
        both = ann.get("/").text
        assert '<a href="/review/ann/">ann</a>, <a href="/review/%C3%BCnal/">ünal</a>' in both
        assert "bo" not in both.partition("<h1>")[2]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example", "", "[::1]"])
def test_another_host_name_is_refused(review: Review, host: str) -> None:
    with review.client() as client:
        assert client.get("/review/ann/queue", headers={"host": host}).status_code == 403
        assert client.get("/review/ann/queue", headers={"host": f"localhost:{review.server.port}"}).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", "https://127.0.0.1", "http://127.0.0.1:1"])
def test_a_form_of_another_page_changes_nothing(review: Review, origin: str) -> None:
    with review.client() as client:
        form = fields(client.get("/review/ann/step?id=gallery/job-0/1").text)
        answer = client.post("/review/ann/verdict", data={**form, "verdict": "tight"}, headers={"origin": origin})
        assert answer.status_code == 403
        del client.headers["origin"]
        assert client.post("/review/ann/verdict", data={**form, "verdict": "tight"}).status_code == 403
    assert review.verdicts() == {}


def test_a_request_with_two_hosts_is_refused(review: Review) -> None:
    with socket.create_connection(("127.0.0.1", review.server.port)) as raw:
        own = f"Host: 127.0.0.1:{review.server.port}\r\n"
        raw.sendall(f"GET / HTTP/1.1\r\n{own}Host: evil.example\r\nConnection: close\r\n\r\n".encode())
        assert raw.recv(100).split()[1] in {b"400", b"403"}


def test_large_bodies_and_addresses_are_refused_and_other_methods_too(review: Review) -> None:
    with review.client() as client:
        huge = "x" * (LARGEST_BODY + 1)
        assert client.post("/review/ann/verdict", content=huge).status_code == 413
        assert (
            client.post("/review/ann/verdict", content=iter([huge.encode()])).status_code == 413
        )  # no length declared
        assert client.get("/review/ann/step", params={"id": "x" * 9000}).status_code == 414
        assert client.get("/review/ann/step", params={"id": "x" * 2000}).status_code == 422
        for method in ("PUT", "DELETE", "OPTIONS", "TRACE"):
            assert client.request(method, "/review/ann/").status_code == 405
    connection = http.client.HTTPConnection("127.0.0.1", review.server.port)
    connection.request("CONNECT", "evil.example:80")
    assert connection.getresponse().status in {400, 403, 405}
    connection.close()


def test_every_answer_forbids_scripts_frames_stores_and_other_origins(review: Review) -> None:
    with review.client() as client:
        answers = [client.get(page) for page in PAGES] + [client.post("/review/ann/verdict")]
    with review.client(None) as stranger:
        answers += [stranger.get("/"), stranger.get("/review/ann/", headers={"host": "evil.example"})]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "*" not in policy
        assert "frame-ancestors 'none'" in policy
        assert "base-uri 'none'" in policy
        assert "form-action 'self'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert "server" not in answer.headers
        assert "access-control-allow-origin" not in answer.headers
        assert not any(
            part in answer.text for part in ("<style", " style=", " onclick", "http://", "https://", "//cdn")
        )


def test_the_page_has_no_way_out_of_its_folders(review: Review) -> None:
    with review.client() as client:
        for path in (
            "/static/../app.py",
            "/static/%2e%2e/app.py",
            "/static/..%2fapp.py",
            "/static//etc/passwd",
            "/static/",
        ):
            answer = client.get(path)
            assert answer.status_code in {401, 403, 404}
            assert "import" not in answer.text


def test_the_server_listens_on_loopback_only(review: Review) -> None:
    bound = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = {fields[1] for fields in bound if fields[3] == "0A"}
    assert {address for address in listening if address.endswith(f":{review.server.port:04X}")} == {
        f"0100007F:{review.server.port:04X}"
    }
