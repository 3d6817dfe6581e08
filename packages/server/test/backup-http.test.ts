/** /v1/backup over a real socket: whole, at the reader's pace, or broken off so that nobody takes it for a backup. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import type { IncomingMessage, Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, beforeEach, describe, it } from "node:test";
import type { Index, Term } from "@holdfast/raft";
import { BackupDecoder, BackupError } from "@holdfast/storage";
import type { BackupRecord } from "@holdfast/storage";
import { BackupRefusedError } from "../src/backup-taking.js";
import type { BackupSource } from "../src/backup-stream.js";
import { sleep, until } from "./helpers.js";
import { serverFor } from "./http-harness.js";

const configuration = { voters: [], outgoing: [], learners: [], removed: [] };
const base = { position: { term: 4 as Term, index: 44 as Index }, chain: 7, configuration };
const header = { clusterId: "c", nodeId: "n2", base, takenAtMs: 5, closingMs: 7 };
const chunkBytes = 200_000;

describe("/v1/backup", () => {
  let server: Server;
  let port = 0;
  let isReady = true;
  let chunks = 0;
  let goneAt = Number.POSITIVE_INFINITY;
  let refusal: BackupRefusedError | null = null;
  let reads = 0;
  let releases = 0;

  const source: BackupSource = {
    header,
    read: async (chunk) => {
      reads += 1;
      if (chunk >= goneAt) return { bytes: null, done: false };
      return { bytes: new Uint8Array(chunkBytes).fill(chunk), done: chunk === chunks - 1 };
    },
    release: () => void (releases += 1),
  };

  before(async () => {
    const parts = {
      health: () => ({ isLive: true, isReady, problem: isReady ? null : "nobody leads" }),
      status: () => null,
      identity: () => null,
      cluster: () => null,
      keys: () => null,
      clock: () => ({ boot: 1, monotonicMs: 0 }),
      checkup: () => {
        throw new Error("not asked");
      },
      metrics: () => Promise.reject(new Error("not asked")),
      backup: () => (refusal === null ? Promise.resolve(source) : Promise.reject(refusal)),
      hasSession: () => false,
    };
    server = serverFor({ origins: [], hosts: [], isLoopbackOnly: true }, parts);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    ({ port } = server.address() as AddressInfo);
  });
  after(() => {
    server.close();
    server.closeAllConnections();
  });
  beforeEach(() => {
    [isReady, chunks, goneAt, refusal, reads, releases] = [true, 3, Number.POSITIVE_INFINITY, null, 0, 0];
  });

  async function ask(method = "GET"): Promise<IncomingMessage> {
    const asked = request({ host: "127.0.0.1", port, path: "/v1/backup", method });
    asked.end();
    const [response] = (await once(asked, "response")) as [IncomingMessage];
    return response;
  }

  async function records(response: IncomingMessage): Promise<BackupRecord[]> {
    const decoder = new BackupDecoder();
    const found: BackupRecord[] = [];
    // A response that breaks off ends with an error.
    const broken = await (async () => {
      for await (const bytes of response) found.push(...decoder.push(bytes as Buffer));
    })().catch((error: unknown) => error);
    decoder.finish();
    assert.equal(broken, undefined);
    return found;
  }

  it("is a whole backup", async () => {
    const response = await ask();
    assert.equal(response.statusCode, 200);
    assert.equal(response.headers["content-type"], "application/octet-stream");
    const found = await records(response);
    assert.deepEqual(
      found.map(({ kind }) => kind),
      ["header", "chunk", "chunk", "chunk", "end"],
    );
    assert.deepEqual(found[0], { kind: "header", header });
    assert.equal(releases, 1);
  });

  it("is read from the disk only as fast as somebody takes it, and given up when he goes away", async () => {
    chunks = 1_000;
    const response = await ask();
    response.pause();
    let before = -1;
    while (reads === 0 || reads !== before) {
      before = reads;
      await sleep(50);
    }
    // What the kernel's buffers hold, and not 200 MB.
    assert.ok(reads < 100, `${reads} chunks were read for nobody`);
    assert.equal(releases, 0);
    response.destroy();
    await until(() => releases === 1, "it is given up");
    assert.ok(reads < 101);
  });

  it("breaks off when the snapshot is gone: no backup", async () => {
    goneAt = 2;
    await assert.rejects(records(await ask()), (error) => error instanceof BackupError && error.code === "cut_short");
    assert.equal(releases, 1);
  });

  it("is refused by a node that gives one out already, or isn't ready", async () => {
    const problem = async (): Promise<unknown[]> => {
      const response = await ask();
      let text = "";
      for await (const bytes of response) text += String(bytes);
      const { code, detail } = JSON.parse(text) as { code: string; detail: string };
      return [response.statusCode, code, detail];
    };
    refusal = new BackupRefusedError("overloaded", "one already");
    assert.deepEqual(await problem(), [503, "overloaded", "one already"]);
    isReady = false;
    assert.deepEqual(await problem(), [503, "not_ready", "nobody leads"]);
    assert.equal(reads, 0);
  });

  it("is not begun for its head alone", async () => {
    const response = await ask("HEAD");
    response.resume();
    assert.deepEqual([response.statusCode, response.headers.allow], [405, "GET, OPTIONS"]);
    assert.equal(reads, 0);
  });
});
