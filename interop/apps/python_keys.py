"""Makes and uses key chains and certificates with python-ndn, for interop/key_chain.py.

Question: can python-ndn and `namewire key` read the same key chain and sign with it?

    make HOME          makes a key chain with the identities /python/ec and /python/rsa
    sign HOME NAME...  signs Data as each identity of the key chain, and checks it by the identity's certificate
    verify CERT ISSUER checks the signature of a certificate by the key of another (Base64 files)
    rsa FILE           writes a new RSA private key as PEM
"""
import asyncio
import base64
import sys
from pathlib import Path

from Cryptodome.PublicKey import RSA
from ndn.app_support.security_v2 import parse_certificate
from ndn.encoding import Name, make_data, parse_data, MetaInfo
from ndn.security import KeychainSqlite3, TpmFile
from ndn.security.validator.known_key_validator import EccChecker, RsaChecker


def open_key_chain(home: str) -> KeychainSqlite3:
    ndn = Path(home) / ".ndn"
    return KeychainSqlite3(str(ndn / "pib.db"), TpmFile(str(ndn / "ndnsec-key-file")))


def make(home: str) -> None:
    ndn = Path(home) / ".ndn"
    ndn.mkdir(parents=True)
    if not KeychainSqlite3.initialize(str(ndn / "pib.db"), "tpm-file", str(ndn / "ndnsec-key-file")):
        raise SystemExit("python-ndn made no key chain")
    chain = open_key_chain(home)
    for name, kind in [("/python/ec", "ec"), ("/python/rsa", "rsa")]:
        chain.new_identity(name).new_key(kind)
    chain.shutdown()


def checker(certificate: bytes, signature_type: int):
    return {1: RsaChecker, 3: EccChecker}[signature_type].from_cert(certificate)


def check(wire: bytes, by: bytes) -> None:
    name, _, _, pointers = parse_data(wire)
    if not asyncio.run(checker(by, pointers.signature_info.signature_type)(name, pointers)):
        raise SystemExit(f"{Name.to_str(name)} is not signed by {Name.to_str(parse_certificate(by).name)}")


def sign(home: str, names: list[str]) -> None:
    chain = open_key_chain(home)
    for name in names:
        identity = chain[name]
        certificate = bytes(identity.default_key().default_cert().data)
        check(certificate, certificate)
        signer = chain.get_signer({"identity": name})
        check(bytes(make_data(name + "/data", MetaInfo(), b"content", signer)), certificate)
    chain.shutdown()
    print(f"signed as {len(names)} identities")


def read_base64(path: str) -> bytes:
    return base64.b64decode(Path(path).read_text())


def main() -> None:
    match sys.argv[1:]:
        case ["make", home]:
            make(home)
        case ["sign", home, *names]:
            sign(home, names)
        case ["verify", certificate, issuer]:
            check(read_base64(certificate), read_base64(issuer))
            print("verified")
        case ["rsa", path]:
            Path(path).write_bytes(RSA.generate(2048).export_key("PEM", pkcs=8))
        case other:
            raise SystemExit(f"unknown: {other}\n{__doc__}")


if __name__ == "__main__":
    main()
