/** `GET /v1/keys` of a node. Not by fetch, which speaks to no port of a list (6000, 6667, 10080) and follows redirects. */
import { request } from "node:http";
import type { IncomingMessage } from "node:http";
import { request as requestTls } from "node:https";

import { InvalidArgumentError } from "./errors.js";
import { described } from "./fence.js";
import { keysOf } from "./sequencer.js";
import type { KeyRing, PublicKey } from "./sequencer.js";

export interface KeyList {
  readonly ring: KeyRing;
  /** The index of the log's entry that set the current key; 0 when there is none. It tells which of a cluster's lists is newer. */
  readonly since: number;
}

/** A few keys of 200 bytes: what is longer is no list of keys. */
const listBytesMax = 65_536;
const endpointPattern = /^(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?):[0-9]{1,5}$/;

/** One of the two is there. @throws InvalidArgumentError naming the option. */
export function urlsOf(endpoints: unknown, url: unknown): readonly URL[] {
  if (url !== undefined) return [checkedUrl(url)];
  const list: unknown = typeof endpoints === "string" ? endpoints.split(",").map((one) => one.trim()) : endpoints;
  if (!Array.isArray(list) || list.length === 0) {
    throw new InvalidArgumentError("options.endpoints", 'must be "host:port" of one node or several');
  }
  return list.map((endpoint: unknown, at) => {
    const isShaped = typeof endpoint === "string" && endpointPattern.test(endpoint);
    const shaped = isShaped && URL.canParse(`http://${endpoint}`) ? `http://${endpoint}` : null;
    if (shaped === null) throw new InvalidArgumentError(`options.endpoints[${at}]`, 'must be "host:port"');
    return new URL("/v1/keys", shaped);
  });
}

function checkedUrl(url: unknown): URL {
  const parsed = typeof url === "string" && URL.canParse(url) ? new URL(url) : null;
  if (parsed === null || !["http:", "https:"].includes(parsed.protocol)) {
    throw new InvalidArgumentError("options.url", `must be a URL of http or https, not ${described(url)}`);
  }
  return parsed;
}

/** Within the time as a whole. Rejects with an Error that says what is wrong. */
export async function fetchKeys(url: URL, timeoutMs: number): Promise<KeyList> {
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    return listIn(await textAt(url, signal));
  } catch (error) {
    const problem = signal.aborted ? `no answer within ${timeoutMs} ms` : messageOf(error);
    throw new Error(`${url.href}: ${problem}`, { cause: error });
  }
}

async function textAt(url: URL, signal: AbortSignal): Promise<string> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const ask = url.protocol === "https:" ? requestTls : request;
    ask(url, { signal }).once("response", resolve).on("error", reject).end();
  });
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > listBytesMax) throw new Error(`it answers with more than ${listBytesMax} bytes`);
    parts.push(part);
  }
  if (response.statusCode !== 200) throw new Error(`HTTP status ${response.statusCode}`);
  return Buffer.concat(parts).toString("utf8");
}

function listIn(text: string): KeyList {
  const { keys } = (JSON.parse(text) ?? {}) as { readonly keys?: unknown };
  if (!Array.isArray(keys)) throw new Error("it answers with something that is no list of keys");
  const list = keys as readonly (PublicKey & { readonly since?: unknown })[];
  const ring = keysOf(list, "keys");
  const since = list.map((key) => (Number.isSafeInteger(key.since) ? (key.since as number) : 0));
  return { ring, since: Math.max(0, ...since) };
}

/** With several addresses for one name Node's error has an empty message of its own. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join("; ");
  return error instanceof Error ? error.message : String(error);
}
