"""Signatures: an Ed25519 key vouches for a release. It binds the plan, the noisy sums, the card and the ledger's entry.

A hash catches accidents; a signature catches everybody who does not hold the key. What it cannot show is that the key's
owner was honest. Needs the package `cryptography` (`pip install 'dpmerf[sign]'`).
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from dpmerf.errors import ArtefactError, DpmerfError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

FORMAT = 1
FILE = "SIGNATURE.json"
_FIELDS = {"format", "kind", "files", "plan_hash", "ledger", "public_key", "signature"}
_MOST = 10_000  # bytes of a key file


@final
@dataclass(frozen=True)
class Key:
    """A private key that was read and can sign."""

    private: Ed25519PrivateKey

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Key:
        """From a PEM file, as `dpmerf keys new` or `openssl genpkey -algorithm ed25519` writes it."""
        ed25519, serialization = _cryptography()
        try:
            private = serialization.load_pem_private_key(_read(path, "private"), password=None)
        except (ValueError, TypeError):
            private = None
        if not isinstance(private, ed25519.Ed25519PrivateKey):
            raise _no_key(path, "a private", "It must be Ed25519, in PEM, without a pass phrase")
        return Key(private)

    def sign(self, files: dict[str, bytes], plan_hash: str, ledger: dict[str, Any] | None) -> bytes:
        """The text of SIGNATURE.json for these files."""
        statement = {
            "format": FORMAT,
            "kind": "signature of a release",
            "files": {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())},
            "plan_hash": plan_hash,
            "ledger": ledger,
            "public_key": _text(_raw(self.private.public_key())),
        }
        signed = {**statement, "signature": _text(self.private.sign(_canonical(statement)))}
        return (json.dumps(signed, indent=1) + "\n").encode()


def make_keys(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Write a new private key to `path`, readable by its owner alone, and the public one beside it as `.pub`."""
    ed25519, serialization = _cryptography()
    private_path = Path(path)
    public_path = private_path.with_name(private_path.name + ".pub")
    private, pem = ed25519.Ed25519PrivateKey.generate(), serialization.Encoding.PEM
    texts = (
        private.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        private.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo),
    )
    if public_path.exists():
        raise ArtefactError(f"{public_path} exists already. Choose another name: a key is never overwritten")
    for place, text, mode in zip((private_path, public_path), texts, (0o600, 0o644), strict=True):
        try:
            with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                file.write(text)
        except FileExistsError:
            raise ArtefactError(f"{place} exists already. Choose another name: a key is never overwritten") from None
        except OSError as problem:
            raise ArtefactError(f"cannot write {place}: {problem.strerror}") from None
    return private_path, public_path


def load_public(path: str | os.PathLike[str]) -> Ed25519PublicKey:
    """From a PEM file."""
    ed25519, serialization = _cryptography()
    try:
        public = serialization.load_pem_public_key(_read(path, "public"))
    except (ValueError, TypeError):
        public = None
    if not isinstance(public, ed25519.Ed25519PublicKey):
        raise _no_key(path, "a public", "It must be Ed25519, in PEM")
    return public


def fingerprint(public: Ed25519PublicKey) -> str:
    """SHA-256 of the key's 32 bytes, for people to compare."""
    return "SHA256:" + hashlib.sha256(_raw(public)).hexdigest()


def check_signature(
    text: bytes,
    files: dict[str, bytes],
    plan_hash: str,
    ledger: dict[str, Any] | None,
    signed_by: Ed25519PublicKey | None,
) -> str:
    """The fingerprint of the key that signed these files, or ArtefactError. `signed_by` is the key that must have."""
    ed25519, _ = _cryptography()
    from cryptography.exceptions import InvalidSignature

    try:
        document = json.loads(text)
        statement = {k: v for k, v in document.items() if k != "signature"}
        if set(document) != _FIELDS or (json.dumps(document, indent=1) + "\n").encode() != text:
            raise ValueError
        if statement["format"] != FORMAT or statement["kind"] != "signature of a release":
            raise ArtefactError(f"{FILE} is not a signature of format {FORMAT}: update dpmerf")
        public = ed25519.Ed25519PublicKey.from_public_bytes(_bytes(statement["public_key"]))
        public.verify(_bytes(document["signature"]), _canonical(statement))
    except DpmerfError:
        raise
    except InvalidSignature:
        raise ArtefactError(f"{FILE} does not fit its key: the release was changed after it was signed") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ArtefactError(f"{FILE} is damaged: it is not a signature") from None
    if signed_by is not None and _raw(signed_by) != _raw(public):
        raise ArtefactError(f"the release was signed by another key ({fingerprint(public)})")
    for name, data in files.items():
        if statement["files"].get(name) != hashlib.sha256(data).hexdigest():
            raise ArtefactError(f"{name} was changed after the release was signed")
    if set(statement["files"]) != set(files) or (statement["plan_hash"], statement["ledger"]) != (plan_hash, ledger):
        raise ArtefactError("the signature belongs to another release")
    return fingerprint(public)


def _cryptography() -> tuple[Any, Any]:
    """The modules `ed25519` and `serialization` of an extra package, imported when they are needed."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise ArtefactError(
            "signatures need the package `cryptography`: install it with `pip install 'dpmerf[sign]'`"
        ) from None
    return ed25519, serialization


def _read(path: str | os.PathLike[str], kind: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_MOST)
    except OSError as problem:
        raise _no_key(path, f"a {kind}", problem.strerror or "it cannot be read") from None


def _no_key(path: str | os.PathLike[str], kind: str, why: str) -> ArtefactError:
    return ArtefactError(f"{os.fspath(path)} is not {kind} key: {why}. `dpmerf keys new NAME` makes a pair of keys")


def _raw(public: Ed25519PublicKey) -> bytes:
    return public.public_bytes_raw()


def _canonical(statement: dict[str, Any]) -> bytes:
    return json.dumps(statement, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(text: Any) -> bytes:
    return base64.b64decode(text, validate=True)
