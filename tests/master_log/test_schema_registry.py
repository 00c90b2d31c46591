"""Requests to a schema registry, and answers that no registry would give."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from lamina.configuration.settings import Settings
from master_log.connections.login import RegistryAddress
from master_log.reading.schema_registry import Registry, RegistryUnavailable
from view_algebra.errors import LaminaError
from view_algebra.formats.interface import Schema

ORDER = {"schema": '{"type": "record", "name": "order", "fields": [{"name": "at", "type": "geo.place"}]}'}
ORDER_WITH_PLACE: dict[str, Any] = ORDER | {"references": [{"name": "geo.place", "subject": "geo/place", "version": 3}]}
PLACE = {"schema": '{"type": "record", "name": "place", "namespace": "geo", "fields": []}'}
UNKNOWN = {"error_code": 40403, "message": "Schema not found"}

ANSWERS: dict[str, tuple[int, str | dict[str, Any]]] = {
    "/v7/schemas/ids/1": (200, ORDER_WITH_PLACE),
    "/v7/subjects": (200, '["geo/place", "orders-value"]'),
    "/v7/subjects/geo%2Fplace/versions/3": (200, PLACE),
    "/v7/schemas/ids/2": (404, UNKNOWN),
    "/v7/schemas/ids/3": (200, "<html>Log in, please</html>"),
    "/v7/schemas/ids/4": (404, {"error_code": 404, "message": "HTTP 404 Not Found"}),
    "/v7/schemas/ids/5": (302, "elsewhere"),
    "/v7/schemas/ids/6": (200, {"no": "schema"}),
    "/v7/schemas/ids/7": (200, ORDER | {"references": [{"name": "x", "subject": "loop", "version": 1}]}),
    "/v7/subjects/loop/versions/1": (200, ORDER | {"references": [{"name": "x", "subject": "loop", "version": 1}]}),
    "/v7/schemas/guids/00000000-0000-0000-0000-000000000007": (200, PLACE | {"schemaType": "AVRO"}),
    "/v7/subjects/orders-value/versions/latest": (200, PLACE | {"id": 9}),
    "/v7/subjects/none-value/versions/latest": (404, {"error_code": 40401, "message": "Subject not found"}),
}


class Asked:
    """A server with fixed answers that remembers its requests."""

    def __init__(self) -> None:
        self.logins: list[str | None] = []
        self.paths: list[str] = []

    def serve(self) -> ThreadingHTTPServer:
        asked = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.logins.append(self.headers["Authorization"])
                asked.paths.append(self.path)
                code, answer = ANSWERS.get(self.path, (500, "broken"))
                body = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
                self.send_response(code)
                if code == 302:
                    self.send_header("Location", "/v7/schemas/ids/1")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        return ThreadingHTTPServer(("127.0.0.1", 0), Handler)


@pytest.fixture(scope="module")
def asked() -> Iterator[tuple[Asked, str]]:
    asked = Asked()
    server = asked.serve()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield asked, f"127.0.0.1:{server.server_port}/v7"
    server.shutdown()
    thread.join()
    server.server_close()


def of_url(url: str) -> Registry:
    environment = {"LAMINA_SCHEMA_REGISTRY": url, "LAMINA_POSTGRES": "postgresql://a@b/c", "LAMINA_KAFKA": "a:1"}
    return Registry(Settings.read(environment=environment).schema_registry, pauses=(0.0, 0.0))


def test_schemas_come_with_the_schemas_they_refer_to(asked: tuple[Asked, str]) -> None:
    registry = of_url(f"http://{asked[1]}/")
    guid = "00000000-0000-0000-0000-000000000007"
    assert registry.schemas({"1", guid}) == {
        "1": Schema("AVRO", ORDER["schema"], (("geo.place", PLACE["schema"]),)),
        guid: Schema("AVRO", PLACE["schema"]),
    }
    assert registry.newest_schema("orders-value") == (9, Schema("AVRO", PLACE["schema"]))
    assert registry.newest_schema("none-value") is None


def test_a_missing_schema_is_requested_again_before_it_counts_as_missing(asked: tuple[Asked, str]) -> None:
    asked[0].paths.clear()
    assert of_url(f"http://{asked[1]}").schemas({"2"}) == {"2": None}
    assert asked[0].paths == [*["/v7/schemas/ids/2"] * 3, "/v7/subjects"]


def test_a_registry_without_subjects_counts_as_unavailable(
    asked: tuple[Asked, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ANSWERS, "/v7/subjects", (200, "[]"))
    with pytest.raises(RegistryUnavailable) as raised:
        of_url(f"http://{asked[1]}").schemas({"2"})
    assert "it has no schema 2, and lists no subject" in raised.value.evidence
    assert "lamina skip" in raised.value.way_out
    schemas = of_url(f"http://{asked[1]}").schemas({"2", "00000000-0000-0000-0000-000000000007"})
    assert schemas["2"] is None, "it has other schemas, whatever it lists"


@pytest.mark.parametrize("answer", [(200, '["orders-value"]'), (200, "{}"), (200, "<html>"), (500, "broken")])
def test_a_registry_that_hides_its_subjects_may_still_report_a_schema_as_missing(
    asked: tuple[Asked, str], monkeypatch: pytest.MonkeyPatch, answer: tuple[int, str]
) -> None:
    monkeypatch.setitem(ANSWERS, "/v7/subjects", answer)
    monkeypatch.setitem(ANSWERS, "/v8/subjects", (200, "[]" if answer[1].startswith("[") else "{}"))
    monkeypatch.setitem(ANSWERS, "/v8/schemas/ids/2", (404, UNKNOWN))
    other = asked[1].replace("/v7", "/v8")
    assert of_url(f"http://{other},http://{asked[1]}").schemas({"2"}) == {"2": None}


@pytest.mark.parametrize(
    ("id", "evidence"),
    [
        ("3", "it answers b'<html>Log in, please</html>', so it is not a schema registry"),
        ("4", "HTTP Error 404"),
        ("5", "HTTP Error 302"),
        ("6", "so it is not a schema registry"),
        ("7", "/subjects/loop/versions/1 refers to itself"),
        ("8", "HTTP Error 500"),
    ],
)
def test_a_server_that_is_not_a_schema_registry_counts_as_unavailable(
    asked: tuple[Asked, str], id: str, evidence: str
) -> None:
    with pytest.raises(RegistryUnavailable) as raised:
        of_url(f"http://user:secret@{asked[1]}").schemas({id})
    assert evidence in raised.value.evidence
    assert "secret" not in str(raised.value)


def test_the_first_address_that_answers_counts(asked: tuple[Asked, str]) -> None:
    assert of_url(f"http://127.0.0.1:1, http://{asked[1]}").newest_schema("orders-value") is not None
    with pytest.raises(RegistryUnavailable, match="does not answer"):
        of_url("http://127.0.0.1:1").newest_schema("orders-value")


def test_requests_carry_the_login_of_the_registry_s_url(asked: tuple[Asked, str]) -> None:
    asked[0].logins.clear()
    for url in (f"http://{asked[1]}", f"http://us%40er:pa%3Ass@{asked[1]}", f"http://{asked[1]}?token=abc.def"):
        of_url(url).newest_schema("orders-value")
    basic = base64.b64encode(b"us@er:pa:ss").decode()
    assert asked[0].logins == [None, f"Basic {basic}", "Bearer abc.def"]


def test_a_missing_file_is_named() -> None:
    with pytest.raises(RegistryUnavailable) as raised:
        of_url("https://127.0.0.1:1?ca_file=/nowhere/ca.pem").newest_schema("x")
    assert "/nowhere/ca.pem" in raised.value.evidence
    assert RegistryAddress("https://a", password="secret", token="secret").__repr__().count("secret") == 0


@pytest.mark.parametrize("url", ["registry:8081", "ftp://a:1", "http://", "http://a:1?unknown=1", "http://a:b", ","])
def test_an_invalid_registry_url_is_refused(url: str) -> None:
    with pytest.raises(LaminaError, match="LAMINA_SCHEMA_REGISTRY is not a list of URLs"):
        of_url(url)
