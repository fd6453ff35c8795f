// NDNts registers a prefix at a router of another host, with a certificate that it alone serves.
//
// Question: does unmodified prefix registration of NDNts, as testbed users have it, pass `localhop_security`?
//
//   make FOLDER          an anchor for the router (anchors/root.ndncert), and a key chain with a user's certificate by it
//   produce FOLDER UDP   registers the user's prefix at udp HOST:PORT, and serves one packet under it, until it is ended
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";

import { produce } from "@ndn/endpoint";
import { Certificate, ECDSA, generateSigningKey, KeyChain } from "@ndn/keychain";
import { enableNfdPrefixReg } from "@ndn/nfdmgmt";
import { UdpTransport } from "@ndn/node-transport";
import { Component, Data, Name, ValidityPeriod } from "@ndn/packet";
import { Encoder } from "@ndn/tlv";

const ROOT = new Name("/ndn");
const USER = new Name("/ndn/host/alice");
const APPLICATION = USER.append("app"); // not USER: its certificates are not the application's to answer
const VALID_DAYS = 10;

const [command, folder, udp] = process.argv.slice(2);
const keyChain = KeyChain.open(path.join(folder, "keys"));
if (command === "make") {
  const validity = ValidityPeriod.daysFromNow(VALID_DAYS);
  const [rootKey, rootPublic] = await generateSigningKey(ROOT, ECDSA);
  const root = await Certificate.selfSign({ validity, privateKey: rootKey, publicKey: rootPublic });
  await mkdir(path.join(folder, "anchors"), { recursive: true });
  const anchor = Buffer.from(Encoder.encode(root.data)).toString("base64");
  await writeFile(path.join(folder, "anchors", "root.ndncert"), anchor);
  const [, userPublic] = await generateSigningKey(keyChain, USER, ECDSA);
  const user = await Certificate.issue({
    validity, publicKey: userPublic, issuerId: Component.from("root"), issuerPrivateKey: rootKey,
  });
  await keyChain.insertCert(user);
  console.log(`MADE ${user.name}`);
} else if (command === "produce") {
  const [host, port] = udp.split(":");
  const face = await UdpTransport.createFace({}, host, Number(port));
  const [name] = await keyChain.listCerts(USER);
  const signer = await keyChain.getSigner(name, { useKeyNameKeyLocator: false });
  enableNfdPrefixReg(face, { signer, preloadCertName: name, preloadFromKeyChain: keyChain });
  const answer = new TextEncoder().encode("from alice");
  produce(APPLICATION, async (interest) => new Data(interest.name, Data.FreshnessPeriod(1), answer));
  console.log("READY");
} else {
  throw new Error(`unknown command ${command}`);
}
