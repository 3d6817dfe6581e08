/** A client of the HTTP API in tests: each answer is held against the document. */
import assert from "node:assert/strict";
import { sleep } from "../helpers.js";
import { ask } from "./document.js";
import type { Answer, Asked, Judge } from "./document.js";

export interface Opened {
  readonly session: number;
  readonly key: string;
  readonly ttlMs: number;
  readonly credential: string;
}

export interface Grant {
  readonly name: string;
  readonly token: number;
  readonly slot: number | null;
}

export class HttpClient {
  readonly endpoint: string;
  private readonly judge: Judge;

  constructor(endpoint: string, judge: Judge) {
    this.endpoint = endpoint;
    this.judge = judge;
  }

  async ask(method: string, path: string, asked: Asked = {}): Promise<Answer> {
    const answer = await ask(this.endpoint, method, path, asked);
    this.judge.check(method, path, answer);
    return answer;
  }

  /** "200", or "409 lock_held"; with the body as it came. */
  async told(method: string, path: string, asked: Asked = {}): Promise<[string, Readonly<Record<string, unknown>>]> {
    const { status, text } = await this.ask(method, path, asked);
    const body = text === "" ? {} : (JSON.parse(text) as Readonly<Record<string, unknown>>);
    return [status < 300 ? String(status) : `${status} ${String(body["code"])}`, body];
  }

  get(path: string, credential?: string): Promise<[string, Readonly<Record<string, unknown>>]> {
    return this.told("GET", path, { headers: headersFor(credential) });
  }

  post(path: string, body: unknown, credential?: string): Promise<[string, Readonly<Record<string, unknown>>]> {
    const isEmpty = body === undefined;
    const headers = { ...headersFor(credential), ...(isEmpty ? {} : { "content-type": "application/json" }) };
    return this.told("POST", path, { headers, ...(isEmpty ? {} : { body: JSON.stringify(body) }) });
  }

  async open(ttlMs = 60_000): Promise<Opened> {
    const [told, body] = await this.post("/v1/sessions", { ttlMs, info: "test" });
    assert.equal(told, "201");
    return body as unknown as Opened;
  }

  /** Has to be granted. */
  async acquire(credential: string, request: number, names: readonly string[], more: object = {}): Promise<Grant[]> {
    const [told, body] = await this.post("/v1/acquire", { request, names, ...more }, credential);
    assert.equal(told, "200", JSON.stringify(body));
    return body["grants"] as Grant[];
  }
}

/** Until the lock at `path` is so; it is null while it is free. */
export async function shown(
  client: HttpClient,
  path: string,
  isSo: (lock: Readonly<Record<string, unknown>> | null) => boolean,
): Promise<void> {
  for (const endMs = performance.now() + 20_000; ; await sleep(5)) {
    const [, { lock }] = await client.get(path);
    if (isSo(lock as Readonly<Record<string, unknown>> | null)) return;
    assert.ok(performance.now() < endMs, `not within 20 s: ${JSON.stringify(lock)}`);
  }
}

export function headersFor(credential: string | undefined): Record<string, string> {
  return credential === undefined ? {} : { "holdfast-session": credential };
}
