/** The servers' port to their peers, over the virtual network. */
import type { Acceptor, AcceptedCall, AcceptorOptions, Attach, Dial, DialEvents } from "@holdfast/server/parts";
import type { DialRequest, Lane, PeerTransport } from "@holdfast/server/parts";
import type { SimulatedProcess } from "../process.js";
import { Calling } from "./calling.js";
import { Door } from "./door.js";
import type { Network } from "./network.js";
import type { Place } from "./place.js";

/** For one process on the machine of this name. `beforeSend` runs before each frame that it sends, and may kill it. */
export function createPeerTransport(
  network: Network,
  placeName: string,
  process: SimulatedProcess,
  beforeSend: () => void = () => undefined,
): PeerTransport {
  const parts = { network, place: network.place(placeName), process, beforeSend };
  return {
    dial: (request, events) => dial(request, events, parts),
    createAcceptor: (options, onCall) => createAcceptor(options, onCall, parts),
  };
}

interface TransportParts {
  readonly network: Network;
  readonly place: Place;
  readonly process: SimulatedProcess;
  readonly beforeSend: () => void;
}

function dial(request: DialRequest, events: DialEvents, { network, place, process, beforeSend }: TransportParts): Dial {
  const { address, handshakeMs } = request;
  const upgrade = {
    path: `/peer/${request.lane}`,
    process: request.process,
    dial: request.dial,
    secret: request.secret,
  };
  const call = { from: place, process, address, upgrade, isClient: false, tap: null };
  return new Calling(network, call, handshakeMs, {
    onOpened: (name, end) => events.onOpened(name, (socketEvents) => end.attach(socketEvents, beforeSend)),
    onRejected: (status) => {
      if (status === 401) events.onUnauthorized();
      events.onFailed("dialFailed", `answered with HTTP ${status}`);
    },
    onFailed: (kind, problem) => events.onFailed(kind, problem),
  });
}

function createAcceptor(
  options: AcceptorOptions,
  onCall: (call: AcceptedCall, attach: Attach) => void,
  { place, process, beforeSend }: TransportParts,
): Acceptor {
  return new Door({ name: options.process, purpose: "peers" }, place, process, {
    onCall: ({ upgrade, remote, sockets, attach }) => {
      const lane = laneOf(upgrade.path);
      if (lane === null) return 404;
      if (options.secret !== null && upgrade.secret !== options.secret) return 401;
      if (sockets >= options.socketsMax) return 503;
      onCall({ lane, process: upgrade.process, dial: upgrade.dial, remote }, (events) => attach(events, beforeSend));
      return null;
    },
  });
}

function laneOf(path: string): Lane | null {
  if (path === "/peer/control") return "control";
  return path === "/peer/data" ? "data" : null;
}
