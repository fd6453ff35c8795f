// A file server on NDNts' library: serves a folder by the protocol of ndn6-tools' ndn6-file-server.
//
//     ndnts_file_server.mjs SOCKET PREFIX FOLDER
//
// NDNts has the client and the encodings of this protocol (@ndn/fileserver), and no server. This one registers its prefix
// and serves until it is ended. Only regular files and folders are served; names are UTF-8.
import { open, readdir, stat } from "node:fs/promises";
import path from "node:path";

import { produce } from "@ndn/endpoint";
import { buildDirectoryListing, FileMetadata, lsKeyword } from "@ndn/fileserver";
import { Segment, Version } from "@ndn/naming-convention2";
import { enableNfdPrefixReg } from "@ndn/nfdmgmt";
import { UnixTransport } from "@ndn/node-transport";
import { Data, digestSigning, Name, TT } from "@ndn/packet";
import { isDiscoveryInterest, makeMetadataPacket, MetadataKeyword } from "@ndn/rdr";

const SEGMENT_BYTES = 6000;
const FRESHNESS_MS = 10_000;
const NACK = 3; // ContentType

const [socket, uri, folder] = process.argv.slice(2);
const prefix = new Name(uri);

/** Bytes of a segment, and the number of the last one. An empty object has one segment. */
const lastSegment = (size) => Math.max(0, Math.ceil(size / SEGMENT_BYTES) - 1);

async function readListing(file) {
  const entries = await readdir(file, { withFileTypes: true });
  return buildDirectoryListing(entries
    .filter((entry) => entry.isFile() || entry.isDirectory())
    .map((entry) => ({ name: entry.name, isDir: entry.isDirectory() })));
}

async function readSegment(file, number) {
  const handle = await open(file);
  try {
    const { size } = await handle.stat();
    const { buffer, bytesRead } = await handle.read(
      Buffer.alloc(SEGMENT_BYTES), 0, SEGMENT_BYTES, number * SEGMENT_BYTES);
    return [buffer.subarray(0, bytesRead), lastSegment(size)];
  } finally {
    await handle.close();
  }
}

async function answerMissing(name) {
  const data = new Data(name.append(MetadataKeyword), Data.ContentType(NACK), Data.FreshnessPeriod(1));
  await digestSigning.sign(data);
  return data;
}

async function answerDiscovery(name, file) {
  const facts = await stat(file).catch(() => undefined);
  if (!facts) {
    return answerMissing(name);
  }
  const { mode, mtime, atime, ctime, size } = facts;
  const version = Version.create(mtime.getTime());
  const metadata = new FileMetadata();
  Object.assign(metadata, { mode, mtime, atime, ctime });
  if (metadata.isDir) {
    metadata.name = name.at(-1).equals(lsKeyword) ? name.append(version) : name.append(lsKeyword, version);
  } else {
    metadata.name = name.append(version);
    Object.assign(metadata, { size, segmentSize: SEGMENT_BYTES, lastSeg: lastSegment(size) });
  }
  return makeMetadataPacket(metadata, { prefix: name, signer: digestSigning });
}

async function answerSegment(name, file, isListing) {
  const number = name.at(-1).as(Segment);
  let [content, last] = [undefined, undefined];
  if (isListing) {
    const listing = await readListing(file);
    last = lastSegment(listing.length);
    content = listing.subarray(number * SEGMENT_BYTES, (number + 1) * SEGMENT_BYTES);
  } else {
    [content, last] = await readSegment(file, number);
  }
  const data = new Data(name, Data.FreshnessPeriod(FRESHNESS_MS), content);
  data.finalBlockId = Segment.create(last);
  await digestSigning.sign(data);
  return number > last ? undefined : data;
}

/** Answers PREFIX/path[/32=ls]/32=metadata and PREFIX/path[/32=ls]/version/segment. */
async function answer(interest) {
  const { name } = interest;
  const components = name.slice(prefix.length).comps;
  const end = components.findIndex(({ type }) => type !== TT.GenericNameComponent);
  const file = path.join(folder, ...components.slice(0, end).map(({ text }) => text));
  if (isDiscoveryInterest(interest)) {
    return answerDiscovery(name.getPrefix(-1), file);
  }
  return name.at(-1).is(Segment) ? answerSegment(name, file, components[end].equals(lsKeyword)) : undefined;
}

const face = await UnixTransport.createFace({}, socket);
enableNfdPrefixReg(face);
produce(prefix, answer, { concurrency: 64 });
