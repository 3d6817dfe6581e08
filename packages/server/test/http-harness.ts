/** A client port's HTTP side alone, behind a server of the test's. */
import { createServer } from "node:http";
import type { Server } from "node:http";
import { createSystemClock } from "../src/clock.js";
import { HttpSide } from "../src/http.js";
import type { HttpOptions } from "../src/http.js";
import type { HttpParts } from "../src/node-routes.js";

export function serverFor(doors: Pick<HttpOptions, "origins" | "hosts" | "isLoopbackOnly">, node: HttpParts): Server {
  const options = { ...doors, requestsMax: 10, bufferedBytesMax: 1_000_000 };
  const side = new HttpSide(options, { clock: createSystemClock(), node, onRejected: () => undefined });
  return createServer((asked, response) => side.handle(asked, response));
}
