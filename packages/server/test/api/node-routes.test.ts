/** openapi.json and the table of routes say the same; and what a node says of itself is answered as the document says. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { after, before, describe, it } from "node:test";
import { versionRange } from "@holdfast/lock";
import type { Index, Term } from "@holdfast/raft";
import { checkupFrom } from "../../src/checkup.js";
import { parseConfig } from "../../src/config.js";
import { routes } from "../../src/http-routes.js";
import type { HttpParts } from "../../src/node-routes.js";
import { serverFor } from "../http-harness.js";
import { ask, document, Judge, operations } from "./document.js";

const nodes = [{ id: "n1", peer: "127.0.0.1:1", client: "127.0.0.1:2" }];
const health = { isLive: true, isReady: true, problem: null };
const checkup = checkupFrom({
  config: parseConfig(JSON.stringify({ cluster: "test", nodes }), "cluster.json"),
  nodeId: "n1",
  release: "1.2.3",
  dataDirectory: tmpdir(),
  instance: "5f0c",
  boot: 7,
  uptimeMs: 10.4,
  health,
  status: null,
  host: null,
  refusedBeginning: null,
  linked: new Set<string>(),
  connections: 2,
});
const status = {
  id: "n1",
  role: "leader",
  term: 1,
  leader: null,
  commitIndex: 1,
  lastApplied: 1,
  lastIndex: 1,
  snapshotIndex: 0,
  sessions: 0,
  locks: 0,
  clusterId: "c",
  version: "1.2.3",
  uptimeMs: 1.5,
  nodes: [{ id: "n1", client: "127.0.0.1:2" }],
  clusterVersion: 1,
  versions: versionRange,
};
const configuration = { voters: [], outgoing: [], learners: [], removed: [] };
const base = { position: { term: 1 as Term, index: 1 as Index }, chain: 0, configuration };
const well: HttpParts = {
  health: () => health,
  status: () => status,
  identity: () => ({ id: "n1", instance: "i", peer: "a:1", client: "a:2", clusterId: null }),
  cluster: () => ({ cluster: "t", clusterId: "c", timing: { heartbeatMs: 1 }, limits: {}, removed: [], members: [] }),
  keys: () => ({ keys: [{ id: "0123456789abcdef", publicKey: "A".repeat(43), since: 3 }] }),
  clock: () => ({ boot: 7, monotonicMs: 1.5 }),
  checkup: () => checkup,
  metrics: () => Promise.resolve({ contentType: "text/plain; version=0.0.4", text: "holdfast_raft_term 1\n" }),
  backup: () =>
    Promise.resolve({
      header: { clusterId: "c", nodeId: "n1", base, takenAtMs: 1, closingMs: 0 },
      read: () => Promise.resolve({ bytes: new Uint8Array(1), done: true }),
      release: () => undefined,
    }),
  hasSession: () => false,
};
const broken: HttpParts = {
  ...well,
  metrics: () => Promise.reject(new Error("secret")),
  backup: () => Promise.reject(new Error("secret")),
};
const starting: HttpParts = {
  ...broken,
  health: () => ({ isLive: false, isReady: false, problem: "the node is starting" }),
  status: () => null,
  identity: () => null,
  cluster: () => null,
  keys: () => null,
};
const paths = routes.filter(({ kind }) => kind === "node").map(({ path }) => path);

describe("openapi.json", () => {
  it("has every route of the client port, and no other", () => {
    assert.deepEqual(operations().sort(), routes.map(({ method, path }) => `${method} ${path}`).sort());
  });

  it("gives each operation a name of its own, and resolves all of its references", () => {
    const ids = Object.values(document.paths).flatMap((item) => Object.values(item).map((each) => each.operationId));
    assert.equal(new Set(ids).size, ids.length);
    const found = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, pointer = ""]) => pointer);
    assert.ok(found.length > 100);
    for (const pointer of new Set(found)) {
      let at: unknown = document;
      for (const key of pointer.split("/")) at = (at as Readonly<Record<string, unknown>> | undefined)?.[key];
      assert.ok(at !== undefined, pointer);
    }
  });
});

describe("what a node says of itself", () => {
  const judge = new Judge();
  const servers: Server[] = [];

  async function endpointOf(node: HttpParts): Promise<string> {
    const server = serverFor({ origins: [], hosts: [], isLoopbackOnly: true }, node);
    servers.push(server);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return `127.0.0.1:${(server.address() as AddressInfo).port}`;
  }
  let endpoints: string[] = [];

  before(async () => {
    endpoints = await Promise.all([well, broken, starting].map(endpointOf));
  });
  after(() => {
    for (const server of servers) {
      server.close();
      server.closeAllConnections();
    }
  });

  for (const path of paths) {
    it(`${path} is answered as the document says`, async () => {
      for (const endpoint of endpoints) judge.check("GET", path, await ask(endpoint, "GET", path));
      const [endpoint = ""] = endpoints;
      for (const headers of [{ origin: "http://evil.example" }, { host: "evil.example" }]) {
        judge.check("GET", path, await ask(endpoint, "GET", path, { headers }));
      }
    });
  }

  it("each documented answer was seen", () => {
    assert.deepEqual(
      judge.unseen((path) => paths.includes(path)),
      [],
    );
  });
});
