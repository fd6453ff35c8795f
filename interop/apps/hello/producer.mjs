import { produce } from "@ndn/endpoint";
import { enableNfdPrefixReg } from "@ndn/nfdmgmt";
import { UnixTransport } from "@ndn/node-transport";
import { Data, Name } from "@ndn/packet";

const face = await UnixTransport.createFace({}, process.argv[2]);
enableNfdPrefixReg(face);
const hello = new TextEncoder().encode("hello");
produce(new Name("/example"), async ({ name }) => new Data(name, Data.FreshnessPeriod(1000), hello));
