// A requester of certificates made with NDNts (@ndn/ndncert): one by a code, then its renewal by possession.
//
//     ndnts_requester.mjs SOCKET SUBJECT CA-CERTIFICATE FOLDER
//
// It trusts the authority whose certificate the file has. Codes come on standard input, one a line. FOLDER gets the
// certificates (pin.cert, possession.cert, in Base64). Afterwards it serves the second, and an object SUBJECT/hello that
// its key signed, until it is ended. Prints lines of JSON:
//
//     {"event":"profile","prefix":NAME,"days":N}
//     {"event":"asked","status":"need-code","tries":3}
//     {"event":"got","certificate":NAME,"challenge":"pin"}
//     {"event":"serves"}
//     {"event":"failed","why":TEXT}                       and ends with status 1
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { createInterface } from "node:readline";

import { produce } from "@ndn/endpoint";
import { ECDSA, generateSigningKey } from "@ndn/keychain";
import { AltUri } from "@ndn/naming-convention2";
import { ClientPinChallenge, ClientPossessionChallenge, requestCertificate, retrieveCaProfile } from "@ndn/ndncert";
import { enableNfdPrefixReg } from "@ndn/nfdmgmt";
import { UnixTransport } from "@ndn/node-transport";
import { Data, Name, ValidityPeriod } from "@ndn/packet";
import { BufferChunkSource, serve } from "@ndn/segmented-object";
import { Decoder, Encoder } from "@ndn/tlv";
import { toUtf8 } from "@ndn/util";

const DAYS = 2;
const DAY_MS = 86_400_000;

const [socket, uri, authority, folder] = process.argv.slice(2);
const subject = new Name(uri);
const say = (line) => { console.log(JSON.stringify(line)); };
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function run() {
  enableNfdPrefixReg(await UnixTransport.createFace({ addRoutes: ["/"] }, socket));
  const known = Decoder.decode(Buffer.from(await readFile(authority, "utf8"), "base64"), Data);
  const profile = await retrieveCaProfile({ caCertFullName: await known.computeFullName() });
  say({ event: "profile", prefix: AltUri.ofName(profile.prefix), days: profile.maxValidityPeriod / DAY_MS });
  const [privateKey, publicKey] = await generateSigningKey(subject, ECDSA);

  async function get(challenge) {
    const validity = ValidityPeriod.daysFromNow(DAYS);
    const got = await requestCertificate({ profile, privateKey, publicKey, validity, challenges: [challenge] });
    got.checkValidity();
    await profile.publicKey.verify(got.data);
    const text = Buffer.from(Encoder.encode(got.data)).toString("base64");
    await writeFile(path.join(folder, `${challenge.challengeId}.cert`), text);
    say({ event: "got", certificate: AltUri.ofName(got.name), challenge: challenge.challengeId });
    return got;
  }

  const first = await get(new ClientPinChallenge(async ({ challengeStatus, remainingTries }) => {
    say({ event: "asked", status: challengeStatus, tries: remainingTries });
    return (await lines.next()).value;
  }));
  const second = await get(new ClientPossessionChallenge(first, privateKey));
  produce(second.name, async () => second.data);
  const hello = new BufferChunkSource(toUtf8(`hello from ${uri}`));
  serve(subject.append("hello"), hello, { signer: privateKey.withKeyLocator(second.name) });
  say({ event: "serves" });
}

try {
  await run();
} catch (err) {
  say({ event: "failed", why: String(err?.message ?? err) });
  process.exit(1);
}
