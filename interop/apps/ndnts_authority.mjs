// An NDNCERT authority made with NDNts (@ndn/ndncert), as its command line ndncert03-ca makes one.
//
//     ndnts_authority.mjs SOCKET PREFIX FOLDER
//
// FOLDER gets its certificate (ca.cert, in Base64), and each that it issues (issued.cert). Prints lines of JSON:
//
//     {"event":"serves","certificate":NAME,"digest":HEX}
//     {"event":"code","code":"123456"}                    a code that a requester must tell
//     {"event":"issued","certificate":NAME}
//
// The KeyLocator of what it signs is the name of its certificate, as NDNts' key chain has it.
import { writeFile } from "node:fs/promises";
import path from "node:path";

import { produce } from "@ndn/endpoint";
import { Certificate, ECDSA, generateSigningKey } from "@ndn/keychain";
import { AltUri } from "@ndn/naming-convention2";
import { CaProfile, Server, ServerPinChallenge, ServerPossessionChallenge } from "@ndn/ndncert";
import { enableNfdPrefixReg } from "@ndn/nfdmgmt";
import { UnixTransport } from "@ndn/node-transport";
import { Name, ValidityPeriod } from "@ndn/packet";
import { Encoder } from "@ndn/tlv";
import { toHex } from "@ndn/util";

const VALID_DAYS = 90;
const LONGEST_MS = 30 * 86_400_000;

const [socket, uri, folder] = process.argv.slice(2);
const prefix = new Name(uri);
const say = (line) => { console.log(JSON.stringify(line)); };

async function write(file, { data }) {
  await writeFile(path.join(folder, file), Buffer.from(Encoder.encode(data)).toString("base64"));
}

/** Serves issued certificates from memory, each under its own name. */
const repo = {
  async insert(data) {
    await write("issued.cert", { data });
    produce(data.name, async () => data);
    say({ event: "issued", certificate: AltUri.ofName(data.name) });
  },
};

const face = await UnixTransport.createFace({ addRoutes: ["/"] }, socket);
enableNfdPrefixReg(face);
const [privateKey, publicKey] = await generateSigningKey(prefix, ECDSA);
const cert = await Certificate.selfSign({ validity: ValidityPeriod.daysFromNow(VALID_DAYS), privateKey, publicKey });
const signer = privateKey.withKeyLocator(cert.name);
const profile = await CaProfile.build({
  prefix, cert, signer, info: "NDNts", probeKeys: [], maxValidityPeriod: LONGEST_MS,
});
const pin = new ServerPinChallenge();
pin.addEventListener("newpin", ({ pin: code }) => { say({ event: "code", code }); });
Server.create({
  profile, signer, repo, challenges: [pin, new ServerPossessionChallenge(profile.publicKey)],
});
await write("ca.cert", cert);
say({ event: "serves", certificate: AltUri.ofName(cert.name), digest: toHex(profile.certDigest).toLowerCase() });
