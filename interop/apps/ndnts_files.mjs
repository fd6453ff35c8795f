// NDNts and folders: fetches one with its client of file servers (@ndn/fileserver), or serves one with its encoders.
//
//     ndnts_files.mjs get SOCKET NAME DIR
//     ndnts_files.mjs serve SOCKET NAME DIR
//
// What it serves has Null signatures, the default of NDNts.
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";

import { ReadvertiseDestination } from "@ndn/fw";
import { buildDirectoryListing, Client, FileMetadata, lsKeyword, ModeDir, ModeFile } from "@ndn/fileserver";
import { Segment, Version } from "@ndn/naming-convention2";
import { enableNfdPrefixReg } from "@ndn/nfdmgmt";
import { UnixTransport } from "@ndn/node-transport";
import { Component, Name } from "@ndn/packet";
import { serveMetadata } from "@ndn/rdr";
import { BufferChunkSource, serve } from "@ndn/segmented-object";

const SEGMENT_BYTES = 4000;
const PERMISSIONS = 0o777;
const REGISTER_POLL_MS = 20;

const [role, socket, uri, root] = process.argv.slice(2);
const prefix = new Name(uri);
const face = await UnixTransport.createFace({ addRoutes: role === "get" ? ["/"] : [] }, socket);

async function getAll() {
  const client = new Client(prefix, { retxLimit: 4 });
  let files = 0;
  const folder = async (path) => {
    await mkdir(`${root}/${path}`, { recursive: true });
    for await (const entry of client.readdir(await client.stat(path))) {
      const inner = path === "" ? entry.name : `${path}/${entry.name}`;
      if (entry.isDir) {
        await folder(inner);
      } else {
        await writeFile(`${root}/${inner}`, await client.readFile(await client.stat(path, entry)));
        files++;
      }
    }
  };
  await folder("");
  console.log(`${files} files fetched`);
}

function publish(name, contentName, mode, mtime, bytes) {
  const pOpts = { announcement: prefix };
  const versioned = contentName.append(Version, Math.trunc(mtime.getTime()));
  const chunks = new BufferChunkSource(bytes, { chunkSize: SEGMENT_BYTES });
  serve(versioned, chunks, { pOpts });
  serveMetadata(() => {
    const metadata = new FileMetadata(versioned);
    metadata.mode = mode;
    metadata.mtime = mtime;
    if (metadata.isFile) {
      metadata.finalBlock = Segment.create(Math.max(0, Math.ceil(bytes.length / SEGMENT_BYTES) - 1));
      metadata.segmentSize = SEGMENT_BYTES;
      metadata.size = bytes.length;
    }
    return metadata;
  }, { prefix: name, pOpts });
}

async function serveAll() {
  const registrar = enableNfdPrefixReg(face);
  let files = 0;
  const folder = async (name, path) => {
    const { mode, mtime } = await stat(path);
    const entries = (await readdir(path, { withFileTypes: true }))
      .map((entry) => ({ name: entry.name, isDir: entry.isDirectory() }));
    publish(name, name.append(lsKeyword), ModeDir | (mode & PERMISSIONS), mtime, buildDirectoryListing(entries));
    for (const entry of entries) {
      const [innerName, inner] = [name.append(new Component(undefined, entry.name)), `${path}/${entry.name}`];
      if (entry.isDir) {
        await folder(innerName, inner);
      } else {
        const meta = await stat(inner);
        publish(innerName, innerName, ModeFile | (meta.mode & PERMISSIONS), meta.mtime, await readFile(inner));
        files++;
      }
    }
  };
  await folder(prefix, root);
  const isRegistered = () => [...registrar.table]
    .some(([, { status }]) => status === ReadvertiseDestination.Status.ADVERTISED);
  while (!isRegistered()) {
    await new Promise((resolve) => { setTimeout(resolve, REGISTER_POLL_MS); });
  }
  console.log(`serving ${files} files`);
}

if (role === "get") {
  await getAll();
  process.exit(0);
}
await serveAll();
