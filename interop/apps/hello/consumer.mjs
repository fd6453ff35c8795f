import { consume } from "@ndn/endpoint";
import { UnixTransport } from "@ndn/node-transport";
import { Interest } from "@ndn/packet";

const face = await UnixTransport.createFace({}, process.argv[2]);
const data = await consume(new Interest("/example/hello", Interest.MustBeFresh));
console.log(new TextDecoder().decode(data.content));
face.close();
