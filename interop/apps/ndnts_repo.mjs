// NDNts and a repository: puts an object by bulk insertion (@ndn/repo-api), or fetches one.
//
//     ndnts_repo.mjs put PORT NAME FILE
//     ndnts_repo.mjs get SOCKET NAME FILE
//
// Names have segment numbers and no version, as repositories' clients have it.
import { readFile, writeFile } from "node:fs/promises";

import { TcpTransport, UnixTransport } from "@ndn/node-transport";
import { digestSigning, Name } from "@ndn/packet";
import { BulkInsertInitiator } from "@ndn/repo-api";
import { BufferChunkSource, DataProducer, fetch } from "@ndn/segmented-object";

const SEGMENT_BYTES = 8000;

const [role, where, uri, file] = process.argv.slice(2);
const name = new Name(uri);

async function put() {
  const chunks = new BufferChunkSource(await readFile(file), { chunkSize: SEGMENT_BYTES });
  const transport = await TcpTransport.connect({ host: "127.0.0.1", port: Number(where) });
  const initiator = new BulkInsertInitiator(transport);
  await initiator.insert(DataProducer.listData(chunks, name, { signer: digestSigning }));
  await initiator[Symbol.asyncDispose]();
  console.log("sent");
}

async function get() {
  await UnixTransport.createFace({ addRoutes: ["/"] }, where);
  const bytes = await fetch(name);
  await writeFile(file, bytes);
  console.log(`${bytes.length} bytes fetched`);
}

await (role === "put" ? put() : get());
process.exit(0);
