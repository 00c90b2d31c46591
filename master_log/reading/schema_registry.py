"""Fetches the schemas that records name from a schema registry, over Confluent's HTTP interface.

Apicurio, Karapace and Redpanda serve it as well. A schema is fetched once: the serving layer stores it.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, Protocol
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import OpenerDirector, Request

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from master_log.connections.https import LONGEST, opener
from master_log.connections.login import RegistryAddress
from view_algebra.errors import LaminaError
from view_algebra.formats.interface import Answers, Schema

ANSWER_SECONDS = 5.0
"""Seconds after which a request to an address of the registry fails."""

PAUSES = (0.5, 1.0, 2.0)
"""Seconds between repeated requests for missing schemas: one of several registries may lag behind the producers."""

_NOT_FOUND, _NO_SUCH = 404, (40401, 40402, 40403)
"""A registry's error codes for a missing subject, version or schema. A wrong path gets another code."""


class RegistryUnavailable(LaminaError):
    """The registry does not answer, or answers unlike a schema registry."""

    def __init__(self, evidence: str, way_out: str = "Start it, or correct LAMINA_SCHEMA_REGISTRY.") -> None:
        super().__init__(
            "the schema registry does not answer",
            evidence=evidence,
            way_out=f"{way_out} The source then continues.",
        )


def _opener(address: RegistryAddress) -> OpenerDirector:
    """Opens requests to an address. Every request reads the files, so certificates are renewed without a restart."""
    for file in filter(None, (address.ca_file, address.certificate, address.key)):
        Path(file).read_bytes()  # Python's own error does not say which file it is
    trusted = ssl.create_default_context(cafile=address.ca_file)
    if address.certificate:
        trusted.load_cert_chain(address.certificate, address.key)
    return opener(trusted)


@dataclass(frozen=True)
class Registry:
    """A schema registry with one or several addresses. The first one that answers counts."""

    addresses: Sequence[RegistryAddress]
    pauses: Sequence[float] = PAUSES

    def schemas(self, ids: Collection[str], *, patient: bool = True) -> dict[str, Schema | None]:
        """Fetches the schemas with these ids (or UUIDs). Raises `RegistryUnavailable`.

        patient: waits some seconds for missing schemas, and returns None for one that is still missing. Otherwise, a
            missing schema raises
        """
        schemas = {id: self._schema(id) for id in sorted(ids)}
        for pause in self.pauses if patient else ():
            if missing := [id for id, schema in schemas.items() if schema is None]:
                time.sleep(pause)
                schemas |= {id: self._schema(id) for id in missing}
        if not patient and (missing := [id for id, schema in schemas.items() if schema is None]):
            raise RegistryUnavailable(f"it has no schema {', '.join(missing[:5])} yet")
        if schemas and not any(schemas.values()) and self._is_empty():
            raise RegistryUnavailable(
                f"it has no schema {', '.join(sorted(schemas)[:5])}, and lists no subject",
                "Wait until it has loaded its schemas, allow its user to list the subjects, or correct"
                " LAMINA_SCHEMA_REGISTRY; if the record is at fault, `lamina skip` skips it.",
            )
        return schemas

    def _is_empty(self) -> bool:
        """True if an address lists no subjects and no other address lists any, so records cannot name its schemas."""
        listed = [_subjects(address) for address in self.addresses]
        return [] in listed and not any(listed)

    def _schema(self, id: str) -> Schema | None:
        answer = self._get(f"/schemas/{'guids' if '-' in id else 'ids'}/{id}")
        return None if answer is None else self._with_references(answer)

    def _with_references(self, answer: _Answer) -> Schema:
        return Schema(answer.kind, answer.text, tuple(self._references(answer)))

    def newest_schema(self, subject: str) -> tuple[int, Schema] | None:
        """The newest schema of a subject, with its id. None if the registry has no such subject."""
        answer = self._get(f"/subjects/{quote(subject, safe='')}/versions/latest")
        return None if answer is None else (answer.id, self._with_references(answer))

    def _references(
        self, answer: _Answer, around: tuple[str, ...] = (), seen: set[str] | None = None
    ) -> Iterator[tuple[str, str]]:
        """The texts of the schemas that an answer refers to, once each, after the schemas that they refer to."""
        seen = set() if seen is None else seen
        for reference in answer.references:
            path = f"/subjects/{quote(reference.subject, safe='')}/versions/{reference.version}"
            if path in around:
                raise RegistryUnavailable(f"{path} refers to itself")
            if path in seen:
                continue
            seen.add(path)
            named = self._get(path)
            if named is None:
                raise RegistryUnavailable(f"it has no {path}, to which another schema refers")
            yield from self._references(named, (*around, path), seen)
            yield reference.name, named.text

    def _get(self, path: str) -> _Answer | None:
        """The answer of the first address that has one. None if all of them answer that it does not exist."""
        failures = []
        for address in self.addresses:
            try:
                if (answer := _answer(address, path)) is not None:
                    return answer
            except (OSError, HTTPException, ValueError) as error:
                failures.append(f"{address.url}: {error}")
        if failures:
            raise RegistryUnavailable("; ".join(failures))
        return None


class KnownSchemas(Protocol):
    """The known schemas of each topic's records."""

    def of(self, topic: str) -> Answers:
        """The known schemas of a topic."""

    def learn(self, topic: str, ask_again: int, ids: Collection[str], *, patient: bool = True) -> Answers:
        """Fetches these ids and returns every known schema of the topic. Raises `RegistryUnavailable`."""


def _answer(address: RegistryAddress, path: str) -> _Answer | None:
    body = _body(address, path)
    if body is None:
        return None
    try:
        return _Answer.model_validate(_object(body))
    except ValidationError:
        _no_registry(body)


def _subjects(address: RegistryAddress) -> Any:
    """The subjects that an address lists, or None if the request fails."""
    with suppress(OSError, HTTPException, ValueError):
        return json.loads(_body(address, "/subjects") or b"null")
    return None


def _body(address: RegistryAddress, path: str) -> bytes | None:
    """The bytes of an address's answer, or None if it answers that the path does not exist."""
    request = Request(f"{address.url}{path}", headers=address.headers)  # noqa: S310 (settings allow http and https)
    try:
        with _opener(address).open(request, timeout=ANSWER_SECONDS) as answer:
            body: bytes = answer.read(LONGEST + 1)
            return body
    except HTTPError as error:
        with error:
            if error.code == _NOT_FOUND and _object(error.read(LONGEST)).get("error_code") in _NO_SUCH:
                return None
        raise


def _storable(text: str) -> str:
    """The text as Postgres keeps it: without U+0000, and without halves of a surrogate pair."""
    return text.replace("\0", "").encode(errors="replace").decode()


_Text = Annotated[str, AfterValidator(_storable)]


class _Reference(BaseModel):
    name: _Text
    subject: str
    version: int


class _Answer(BaseModel):
    """A registry's answer with a schema."""

    id: int = 0
    text: _Text = Field(alias="schema")
    kind: Literal["AVRO", "PROTOBUF", "JSON"] = Field("AVRO", alias="schemaType")
    references: list[_Reference] = Field(default_factory=list)


def _object(answer: bytes) -> dict[str, Any]:
    try:
        value = json.loads(answer)
    except ValueError:
        _no_registry(answer)
    return value if isinstance(value, dict) else {}


def _no_registry(answer: bytes) -> NoReturn:
    raise ValueError(f"it answers {answer[:40]!r}, so it is not a schema registry")
