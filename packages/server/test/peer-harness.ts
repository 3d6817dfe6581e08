import { randomBytes } from "node:crypto";
import { firstVersion, versionRange } from "@holdfast/lock";
import type { VersionRange } from "@holdfast/lock";
import type { Message, NodeId } from "@holdfast/raft";
import { createSystemClock } from "../src/clock.js";
import type { FormedFrame } from "../src/incoming-link.js";
import type { FormedFacts } from "../src/peer-hello.js";
import { createPeerLinks } from "../src/peer-links.js";
import type { DurableFacts, PeerLinksOptions, PeerLinksParts, ServerPeerLinks } from "../src/peer-links.js";
import type { Logger, PeerRefusal } from "../src/ports.js";
import { createWsTransport } from "../src/ws-transport.js";
import { configurationOf, memoryLogger, realRandom } from "./helpers.js";
import type { LogLine } from "./helpers.js";

export const clusterId = "c".repeat(32);

export interface RecordedLinks {
  readonly links: ServerPeerLinks;
  readonly received: { readonly from: NodeId; readonly message: Message }[];
  readonly gone: { readonly peer: NodeId; readonly atMs: number }[];
  readonly resets: NodeId[];
  readonly refusals: { readonly refusal: PeerRefusal; readonly isPeerFormed: boolean }[];
  readonly replaced: string[];
  readonly formed: { readonly from: NodeId; readonly frame: FormedFrame }[];
  readonly log: LogLine[];
}

export function instanceOf(id: string): string {
  return `instance-${id}`;
}

export const allFormed: FormedFacts = {
  clusterId,
  firstIndex: 1,
  configuration: configurationOf({ n1: instanceOf("n1"), n2: instanceOf("n2"), n3: instanceOf("n3") }),
};

export const noPromises: DurableFacts = { term: 0, last: { term: 0, index: 0 } } as DurableFacts;

export interface LinkSetup {
  readonly id: string;
  readonly port: number;
  readonly peers: Readonly<Record<string, number>>;
  readonly instance?: string;
  readonly boot?: number;
  readonly cluster?: string;
  readonly secret?: string | null;
  readonly electionTimeoutMs?: number;
  readonly bufferedBytesMax?: number;
  readonly versions?: VersionRange;
  readonly joins?: string;
  /** Its hello says where it can be called. */
  readonly saysAddress?: boolean;
  readonly clusterVersion?: () => number;
}

/** What peer links over real sockets are made of. */
export function realLinkParts(logger: Logger, clusterVersion = (): number => firstVersion): PeerLinksParts {
  const clock = createSystemClock();
  const drawName = (): string => randomBytes(16).toString("hex");
  const transport = createWsTransport({ clock, logger });
  return { clock, random: realRandom, logger, transport, drawName, clusterVersion };
}

/** Over real sockets. */
export function recordedLinks(setup: LinkSetup): RecordedLinks {
  const logger = memoryLogger();
  return recordLinks(setup, realLinkParts(logger, setup.clusterVersion), logger.lines);
}

export function recordLinks(setup: LinkSetup, parts: PeerLinksParts, log: LogLine[]): RecordedLinks {
  const options: PeerLinksOptions = {
    self: {
      id: setup.id,
      instance: setup.instance ?? instanceOf(setup.id),
      boot: setup.boot ?? 1,
      listen: { host: "127.0.0.1", port: setup.port },
      versions: setup.versions ?? versionRange,
      ...(setup.saysAddress === true ? { peer: `127.0.0.1:${setup.port}` } : {}),
    },
    ...(setup.joins === undefined ? {} : { joins: setup.joins }),
    cluster: setup.cluster ?? "test",
    peers: Object.entries(setup.peers).map(([id, port]) => ({ id, address: `127.0.0.1:${port}` })),
    secret: setup.secret ?? null,
    electionTimeoutMs: setup.electionTimeoutMs ?? 500,
    bufferedBytesMax: setup.bufferedBytesMax ?? 32 * 1024 * 1024,
  };
  const recorded = {
    received: [] as { from: NodeId; message: Message }[],
    gone: [] as { peer: NodeId; atMs: number }[],
    resets: [] as NodeId[],
    refusals: [] as { refusal: PeerRefusal; isPeerFormed: boolean }[],
    replaced: [] as string[],
    formed: [] as { from: NodeId; frame: FormedFrame }[],
    log,
  };
  const links = createPeerLinks(options, parts, {
    onMessages: (from, messages) => {
      for (const message of messages) recorded.received.push({ from, message });
    },
    onPeerGone: (peer) => recorded.gone.push({ peer, atMs: performance.now() }),
    onPeerReset: (peer) => recorded.resets.push(peer),
    onRefused: (refusal, isPeerFormed) => recorded.refusals.push({ refusal, isPeerFormed }),
    onReplaced: (other) => recorded.replaced.push(other),
    onMet: () => undefined,
    onFormed: (from, frame) => recorded.formed.push({ from, frame }),
  });
  return { links, ...recorded };
}
