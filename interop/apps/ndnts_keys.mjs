// Makes and verifies certificates with NDNts, for interop/key_chain.py.
//
// Question: do NDNts and `namewire key` verify each other's certificates?
//
//   make ALGORITHM NAME FILE   a new key (ecdsa, ed25519 or rsa) with a self-signed certificate, in Base64
//   verify CERT ISSUER         checks the signature of a certificate by the key of another (Base64 files)
import { readFile, writeFile } from "node:fs/promises";

import { Certificate, createVerifier, ECDSA, Ed25519, generateSigningKey, RSA, SigningAlgorithmListFull } from "@ndn/keychain";
import { Data, ValidityPeriod } from "@ndn/packet";
import { Decoder, Encoder } from "@ndn/tlv";

const ALGORITHMS = { ecdsa: ECDSA, ed25519: Ed25519, rsa: RSA };
const VALID_DAYS = 10;

async function readCertificate(file) {
  const wire = Buffer.from(await readFile(file, "utf8"), "base64");
  return Certificate.fromData(Decoder.decode(wire, Data));
}

const [command, ...rest] = process.argv.slice(2);
if (command === "make") {
  const [algorithm, name, file] = rest;
  const [privateKey, publicKey] = await generateSigningKey(name, ALGORITHMS[algorithm]);
  const certificate = await Certificate.selfSign({ validity: ValidityPeriod.daysFromNow(VALID_DAYS), privateKey, publicKey });
  await writeFile(file, Buffer.from(Encoder.encode(certificate.data)).toString("base64"));
} else if (command === "verify") {
  const [certificate, issuer] = await Promise.all(rest.map(readCertificate));
  certificate.checkValidity();
  const verifier = await createVerifier(issuer, { algoList: SigningAlgorithmListFull });
  await verifier.verify(certificate.data);
  console.log("verified");
} else {
  throw new Error(`unknown command ${command}`);
}
