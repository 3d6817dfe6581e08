/** The peers' network in production: ws in both directions. */
import { CachedLookup } from "./cached-lookup.js";
import { PeerAcceptor } from "./peer-acceptor.js";
import type { Clock, Logger } from "./ports.js";
import type { PeerTransport } from "./transport.js";
import { WsDial } from "./ws-dial.js";

export interface WsTransportParts {
  readonly clock: Clock;
  readonly logger: Logger;
}

export function createWsTransport(parts: WsTransportParts): PeerTransport {
  const dialParts = { clock: parts.clock, lookup: new CachedLookup(parts.clock) };
  return {
    dial: (request, events) => new WsDial(request, dialParts, events),
    createAcceptor: (options, onCall) => new PeerAcceptor(options, parts, onCall),
  };
}
