#!/usr/bin/env python3
"""Makes vectors.json with other software: OpenSSL (through `cryptography` and its command line) and
python-ndn. Needs `pip install python-ndn cryptography`. Each run makes new keys; the file is committed.
"""
import json
import subprocess
from datetime import datetime
from pathlib import Path

from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat, PublicFormat)
from ndn.app_support.security_v2 import new_cert
from ndn.encoding import Component, KeyLocator, Name, Signer
from ndn.security.signer import Sha256WithEcdsaSigner, Sha256WithRsaSigner

MESSAGE = b"what is signed in all of these"
PASSWORD = b"a pass phrase"
HERE = Path(__file__).resolve().parent


class PureEd25519Signer(Signer):
    """Ed25519 as the packet specification has it; python-ndn 0.5 makes Ed25519ph, which hashes first."""

    def __init__(self, locator: str, key: ed25519.Ed25519PrivateKey):
        self.locator, self.key = locator, key

    def write_signature_info(self, signature_info):
        signature_info.signature_type = 5
        signature_info.key_locator = KeyLocator()
        signature_info.key_locator.name = self.locator

    def get_signature_value_size(self):
        return 64

    def write_signature_value(self, wire, contents):
        wire[:] = self.key.sign(b"".join(contents))
        return 64


def der(key, kind=PrivateFormat.PKCS8, encryption=NoEncryption()) -> str:
    return key.private_bytes(Encoding.DER, kind, encryption).hex()


def spki(key) -> bytes:
    return key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def openssl(*args: str, data: bytes) -> bytes:
    return subprocess.run(["openssl", *args], input=data, check=True, capture_output=True).stdout


def explicit(key) -> bytes:
    """The same key with the curve's numbers instead of its name."""
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    return openssl("ec", "-param_enc", "explicit", "-pubout", "-outform", "DER", data=pem)


def certificate(name: str, issuer: str, key_bits: bytes, signer) -> dict:
    cert_name, wire = new_cert(Name.from_str(name), Component.from_str(issuer), key_bits, signer,
                               datetime(2020, 2, 29, 12, 30, 5), datetime(2040, 1, 2, 3, 4, 5))
    return {"name": Name.to_str(cert_name), "key_name": name, "wire": bytes(wire).hex(), "issuer": issuer,
            "not_before_ms": 1582979405000, "not_after_ms": 2209086245000}


def main() -> None:
    p384 = ec.generate_private_key(ec.SECP384R1())
    p256, rsa2048, ed = ec.generate_private_key(ec.SECP256R1()), rsa.generate_private_key(65537, 2048), \
        ed25519.Ed25519PrivateKey.generate()
    mac = hmac.HMAC(b"a shared secret", hashes.SHA256())
    mac.update(MESSAGE)
    keys = [
        {"id": "ecdsa", "type": 3, "algorithm": "ECDSA P-256", "pkcs8": der(p256),
         "traditional": der(p256, PrivateFormat.TraditionalOpenSSL),
         "signature": p256.sign(MESSAGE, ec.ECDSA(hashes.SHA256())).hex(), "spki": spki(p256).hex()},
        {"id": "rsa", "type": 1, "algorithm": "RSA 2048", "pkcs8": der(rsa2048),
         "traditional": der(rsa2048, PrivateFormat.TraditionalOpenSSL),
         "signature": rsa2048.sign(MESSAGE, padding.PKCS1v15(), hashes.SHA256()).hex(), "spki": spki(rsa2048).hex()},
        {"id": "ed25519", "type": 5, "algorithm": "Ed25519", "pkcs8": der(ed), "traditional": "",
         "signature": ed.sign(MESSAGE).hex(), "spki": spki(ed).hex()},
    ]
    for entry, key in zip(keys, (p256, rsa2048, ed)):
        entry["encrypted_pkcs8"] = der(key, encryption=BestAvailableEncryption(PASSWORD))
    named, full = spki(p256), explicit(p256)
    base_y = bytes.fromhex("4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5")
    assert base_y in full
    compressed = p256.public_key().public_bytes(Encoding.X962, PublicFormat.CompressedPoint)
    short = bytes([0x30, 57]) + named[2:2 + 21] + bytes([3, 34, 0]) + compressed
    refused = {
        "RSA of 1024 bits": spki(rsa.generate_private_key(65537, 1024)),
        "curve secp256k1 in full": explicit(ec.generate_private_key(ec.SECP256K1())),
        "another base point": full.replace(base_y, bytes(31) + b"\1"),
        "compressed point": short,
        "bytes after the key": named + b"\0",
        "cut off": named[:-1],
        "nothing": b"",
    }
    certificates = [
        certificate("/test/ecdsa/KEY/%01%02", "self", named,
                    Sha256WithEcdsaSigner("/test/ecdsa/KEY/%01%02", bytes.fromhex(keys[0]["traditional"])))
        | {"signer": "ecdsa", "key": "ecdsa", "self_signed": True},
        certificate("/test/rsa/KEY/k", "self", spki(rsa2048),
                    Sha256WithRsaSigner("/test/rsa/KEY/k", bytes.fromhex(keys[1]["traditional"])))
        | {"signer": "rsa", "key": "rsa", "self_signed": True},
        certificate("/test/ecdsa/child/KEY/k", "parent", spki(ed),
                    Sha256WithEcdsaSigner("/test/ecdsa/KEY/%01%02", bytes.fromhex(keys[0]["traditional"])))
        | {"signer": "ecdsa", "key": "ed25519", "self_signed": False},
        certificate("/KEY/root", "self", full,
                    PureEd25519Signer("/KEY/root", ed))
        | {"signer": "ed25519", "key": "ecdsa", "self_signed": True},
    ]
    (HERE / "vectors.json").write_text(json.dumps({
        "message": MESSAGE.hex(), "password": PASSWORD.decode(), "keys": keys,
        "verified_only": [
            {"id": "p384", "type": 3, "algorithm": "ECDSA P-384", "pkcs8": der(p384),
             "signature": p384.sign(MESSAGE, ec.ECDSA(hashes.SHA256())).hex(),
             "signature_sha384": p384.sign(MESSAGE, ec.ECDSA(hashes.SHA384())).hex(), "spki": spki(p384).hex()}],
        "explicit_p256_spki": full.hex(),
        "hmac": {"secret": b"a shared secret".hex(), "signature": mac.finalize().hex()},
        "refused_keys": [{"why": why, "spki": bytes.hex()} for why, bytes in refused.items()],
        "certificates": certificates,
    }, indent=1) + "\n")


if __name__ == "__main__":
    main()
