// An NDNts application: producer or consumer, by its options.
//
// Question: does an unmodified NDNts program work through our router?
// Same roles, options and output as python_app.py.
import { readFile, writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";

import { consume, produce } from "@ndn/endpoint";
import { ReadvertiseDestination } from "@ndn/fw";
import { Version } from "@ndn/naming-convention2";
import { enableNfdPrefixReg, localhostPrefix } from "@ndn/nfdmgmt";
import { TcpTransport, UdpTransport, UnixTransport } from "@ndn/node-transport";
import { Component, Data, Interest, Name } from "@ndn/packet";
import { BufferChunkSource, discoverVersion, fetch, serve } from "@ndn/segmented-object";
import { WsTransport } from "@ndn/ws-transport";

const FRESHNESS_MS = 10_000;
const LIFETIME_MS = 4_000;
const REGISTER_DEADLINE_MS = 15_000;
const UDP_MTU_BYTES = 1400; // as in the NDNts command line tools; larger packets are fragmented

const { values: options, positionals: [role] } = parseArgs({
  allowPositionals: true,
  options: {
    transport: { type: "string" },
    prefix: { type: "string" },
    api: { type: "string" }, // only python-ndn has two
    "no-register": { type: "boolean" },
    count: { type: "string", default: "200" },
    window: { type: "string", default: "16" },
    file: { type: "string" },
    "segment-bytes": { type: "string", default: "8000" },
  },
});
const prefix = new Name(options.prefix);

async function openFace() {
  const { protocol, hostname, port, pathname } = new URL(options.transport);
  switch (protocol) {
    case "unix:":
      return { face: await UnixTransport.createFace({}, pathname), local: "-" };
    case "tcp:":
    case "tcp4:":
      return { face: await TcpTransport.createFace({}, hostname, Number(port)), local: "-" };
    case "udp:":
    case "udp4:": {
      let local;
      const callback = ({ laddr }) => { local = `udp4://${laddr.address}:${laddr.port}`; };
      const face = await UdpTransport.createFace({ lp: { mtu: UDP_MTU_BYTES }, callback }, hostname, Number(port));
      return { face, local };
    }
    case "ws:":
      return { face: await WsTransport.createFace({}, options.transport), local: "-" };
  }
  throw new Error(`no NDNts transport for ${options.transport}`);
}

async function until(condition, deadlineMs, message) {
  const giveUp = Date.now() + deadlineMs;
  while (!condition()) {
    if (Date.now() > giveUp) {
      throw new Error(message);
    }
    await new Promise((resolve) => { setTimeout(resolve, 20); });
  }
}

async function produceUntilStdinCloses(attach) {
  const { face, local } = await openFace();
  // NDNts does not know that a WebSocket server is on this machine, and would register under /localhop.
  const registration = options.transport.startsWith("ws:") ? { prefix: localhostPrefix } : {};
  const registrar = options["no-register"] ? undefined : enableNfdPrefixReg(face, registration);
  attach();
  if (registrar) {
    const isAdvertised = () => {
      const records = [...registrar.table];
      return records.length > 0 &&
        records.every(([, { status }]) => status === ReadvertiseDestination.Status.ADVERTISED);
    };
    await until(isAdvertised, REGISTER_DEADLINE_MS, "prefix registration did not succeed");
  }
  console.log("READY", local);
  for await (const _ of process.stdin) {} // eslint-disable-line no-empty
}

const replyTo = (name) => Buffer.concat([Buffer.from("reply to "), name.at(-1).value]);

async function ping() {
  const { face } = await openFace();
  const count = Number(options.count);
  let next = 0;
  const lane = async () => {
    while (next < count) {
      const name = prefix.append(new Component(undefined, `${next++}`));
      const data = await consume(new Interest(name, Interest.MustBeFresh, Interest.Lifetime(LIFETIME_MS)));
      if (!replyTo(name).equals(data.content)) {
        throw new Error(`${name} brought ${Buffer.from(data.content)}`);
      }
    }
  };
  await Promise.all(Array.from({ length: Number(options.window) }, lane));
  console.log(`${count} Data`);
  face.close();
}

async function fetchObject() {
  const { face } = await openFace();
  const versioned = await discoverVersion(prefix);
  const result = fetch(versioned, { retxLimit: 4 });
  await writeFile(options.file, await result);
  console.log(`${result.count} segments of ${versioned}`);
  face.close();
}

const roles = {
  "serve-ping": () => produceUntilStdinCloses(() =>
    produce(prefix, async ({ name }) => new Data(name, Data.FreshnessPeriod(FRESHNESS_MS), replyTo(name)),
      { concurrency: 64 })),
  "serve-object": async () => {
    const content = await readFile(options.file);
    const source = new BufferChunkSource(content, { chunkSize: Number(options["segment-bytes"]) });
    await produceUntilStdinCloses(() => serve(prefix.append(Version, 1), source, {
      producerPrefix: prefix,
      freshnessPeriod: FRESHNESS_MS,
    }));
  },
  ping,
  fetch: fetchObject,
};

try {
  await roles[role]();
  process.exit(0);
} catch (err) {
  console.log(String(err?.stack ?? err));
  process.exit(1);
}
