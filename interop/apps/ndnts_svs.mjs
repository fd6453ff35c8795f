// A publisher of a sync group (@ndn/svs, version 2), or a reader of what it published.
//
//     ndnts_svs.mjs SOCKET GROUP PUBLISHER          publishes 5 bytes and 20,000 bytes, and stays until it is ended
//     ndnts_svs.mjs SOCKET GROUP PUBLISHER read     fetches both and prints their sizes
import { GenericNumber, Version } from "@ndn/naming-convention2";
import { enableNfdPrefixReg } from "@ndn/nfdmgmt";
import { UnixTransport } from "@ndn/node-transport";
import { Data, Name } from "@ndn/packet";
import { DataArray } from "@ndn/repo-api";
import { fetch } from "@ndn/segmented-object";
import { SvPublisher, SvSync } from "@ndn/svs";
import { Decoder } from "@ndn/tlv";

const SIZES = [5, 20_000];
const PERIOD_MS = 500; // sync Interests come often, so that nobody waits for a lost one
const ENCAPSULATED = 6;

const [socket, group, publisher, role] = process.argv.slice(2);
const [syncPrefix, id] = [new Name(group), new Name(publisher)];
const face = await UnixTransport.createFace({ addRoutes: ["/"] }, socket);

if (role === "read") {
  const found = [];
  for (const number of SIZES.keys()) {
    const name = id.append(...syncPrefix.comps, GenericNumber.create(number + 1), Version.create(0));
    let size = 0;
    for await (const outer of fetch(name, { acceptContentType: [0, ENCAPSULATED] })) {
      size += Decoder.decode(outer.content, Data).content.length;
    }
    found.push(`${number + 1}: ${size} bytes`);
  }
  console.log(found.join(", "));
  process.exit(0);
}

enableNfdPrefixReg(face);
const sync = await SvSync.create({ syncPrefix, periodicTimeout: PERIOD_MS });
const sender = new SvPublisher({ sync, id, store: new DataArray() });
// Registrations take a moment; what is told before them, the period tells again.
for (const size of SIZES) {
  await sender.publish(new Name("/said"), new Uint8Array(size));
}
console.log("published");
setInterval(() => {}, 1000);
