/** `holdfast doctor --guard http://...`: sound services on each framework, and services that forget a part of it, at a real cluster. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { Guard, sequencerKeys } from "@holdfast/fence";
import type { SequencerKeys } from "@holdfast/fence";
import { httpFence, httpGuard, memoryRegister } from "@holdfast/fence/http";
import { TestCluster } from "../harness/cluster.js";
import { until } from "../harness/until.js";
import { examineByCli } from "./doctor-run.js";
import type { Examination } from "./doctor-run.js";
import { skipWithoutDriver } from "./drivers.js";
import { frameworks } from "./http-frameworks.js";
import type { FrameworkName } from "./http-frameworks.js";
import { newSigner } from "./signer.js";

const lock = "doc:scratch";
let cluster: TestCluster;
let keys: SequencerKeys;
let environment: Record<string, string> = {};

before(async () => {
  cluster = await TestCluster.start({ nodes: 1 });
  await cluster.raise();
  environment = { HOLDFAST_ENDPOINTS: cluster.endpoints.join(",") };
  keys = sequencerKeys({ endpoints: cluster.endpoints });
  const url = `http://${cluster.endpoints[0]}/v1/keys`;
  await until("there is a key", async () => ((await (await fetch(url)).json()) as { keys: unknown[] }).keys.length > 0);
});
after(() => cluster?.close());

const examine = (url: string, ...more: readonly string[]): Promise<Examination> =>
  examineByCli(url, "drivers", environment, ["--method", "PUT", ...more]);

describe("doctor --guard on a service that guards", () => {
  for (const name of Object.keys(frameworks) as FrameworkName[]) {
    const skip =
      name === "node:http" ? false : skipWithoutDriver(name === "Hono" ? "@hono/node-server" : name.toLowerCase());
    test(`by ${name}: every bad sequencer is refused, the old one with 412; one request gets to the handler`, {
      skip,
    }, async () => {
      for (const form of ["guarded", "fenced"]) {
        const notes = new Guard<string>(memoryRegister<string>());
        const seen: string[] = [];
        const app = await frameworks[name]({
          guard: httpGuard({ keys, fences: memoryRegister() }),
          fence: httpFence({ keys }),
          work: async ({ fence, body }) => {
            await notes.write(fence, body);
            // Fastify has parsed it: it came as JSON.
            seen.push(typeof body === "string" ? body : JSON.stringify(body));
            return "";
          },
        });
        try {
          const url = `${app.url}/${form}/scratch`;
          const sound = await examine(url, "--lock", lock, "--body", '{"text":"new"}');
          assert.deepEqual([sound.code, sound.problems], [0, []], sound.text);
          assert.match(sound.text, /token \d+ after \d+ was refused \(412 stale_token\)/);
          assert.deepEqual(seen, ['{"text":"new"}']);
          const without = await examine(url);
          assert.deepEqual([without.code, without.problems], [3, []], without.text);
          assert.match(without.text, /not shown: no lock was named/);
          const other = await examine(url, "--lock", "doc:other");
          assert.deepEqual([other.code, other.problems], [3, []], other.text);
          assert.match(other.text, /the resource wants the lock \\"doc:scratch\\"/);
          assert.equal(seen.length, 1, "nothing more got to the handler");
        } finally {
          await app.stop();
        }
      }
    });
  }
});

/** Runs `body` at a service that is this handler. */
async function at(
  handler: (request: IncomingMessage, response: ServerResponse) => unknown,
  body: (url: string) => Promise<void>,
): Promise<void> {
  const server = createServer(handler);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    await body(`http://127.0.0.1:${(server.address() as AddressInfo).port}/docs/scratch`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

describe("doctor --guard on a service that forgets a part of it", () => {
  test("no guard at all: told at the first request, and nothing more is sent", async () => {
    let requests = 0;
    await at(
      (_request, response) => {
        requests += 1;
        response.writeHead(204).end();
      },
      async (url) => {
        const found = await examine(url, "--lock", lock);
        assert.deepEqual([found.code, found.problems, requests], [4, ["no sequencer"], 1], found.text);
      },
    );
  });

  test("one that verifies and compares nothing lets the old token in", async () => {
    const fence = httpFence({ keys });
    const naive = fence.node(
      () => lock,
      (_request, response) => response.writeHead(204).end(),
    );
    await at(naive, async (url) => {
      const found = await examine(url, "--lock", lock);
      assert.deepEqual([found.code, found.problems], [4, ["old token"]], found.text);
      assert.match(found.text, /token \d+ after \d+ was let in/);
    });
  });

  test("one that verifies no signatures is told, whether it compares the tokens or not", async () => {
    const tokenIn = (request: IncomingMessage): number =>
      Number(String(request.headers["holdfast-sequencer"]).split(".")[5]);
    const believing = (compares: boolean) => {
      let highest = 2;
      return (request: IncomingMessage, response: ServerResponse): void => {
        const token = tokenIn(request);
        if (Number.isNaN(token)) return void response.writeHead(401).end();
        if (compares && token < highest) {
          const problem = { code: "stale_token", resource: lock, presented: token, highest };
          return void response
            .writeHead(412, { "content-type": "application/problem+json" })
            .end(JSON.stringify(problem));
        }
        highest = Math.max(highest, token);
        response.writeHead(204).end();
      };
    };
    await at(believing(false), async (url) => {
      const found = await examine(url, "--lock", lock);
      assert.deepEqual([found.code, found.problems], [4, ["forged"]], found.text);
      assert.match(found.text, /a sequencer that no cluster signed was let in/);
    });
    await at(believing(true), async (url) => {
      const found = await examine(url, "--lock", lock);
      assert.deepEqual([found.code, found.problems], [4, ["forged", "forged"]], found.text);
      assert.match(found.text, /token \d+ after \d+ was refused \(412 stale_token\)/);
    });
  });

  test("one whose register is ahead refuses every holder", async () => {
    const fences = memoryRegister();
    await new Guard(fences).read({ resource: lock, token: Number.MAX_SAFE_INTEGER });
    const ahead = httpGuard({ keys, fences }).node(
      () => lock,
      async (_request, response) => response.writeHead(204).end(),
    );
    await at(ahead, async (url) => {
      const found = await examine(url, "--lock", lock);
      assert.deepEqual([found.code, found.problems], [4, ["old token"]], found.text);
      assert.match(found.text, /every-guard-refuses-everything/);
    });
  });

  test("one that believes another cluster's keys, and one that answers alike whatever comes, prove nothing: warnings", async () => {
    const strange = httpFence({ keys: sequencerKeys({ keys: [newSigner().publicKey] }) }).node(
      () => lock,
      (_request, response) => response.writeHead(204).end(),
    );
    await at(strange, async (url) => {
      const found = await examine(url, "--lock", lock);
      assert.deepEqual([found.code, found.problems], [3, []], found.text);
      assert.match(found.text, /the holder's own sequencer was answered with 403 bad_sequencer/);
    });
    await at(
      (_request, response) => response.writeHead(404).end(),
      async (url) => {
        const found = await examine(url, "--lock", lock);
        assert.deepEqual([found.code, found.problems], [3, []], found.text);
        assert.match(found.text, /was answered with 404, and then \d+ with 404 rather than 412/);
      },
    );
  });

  test("one that writes once whoever comes proves nothing by its conflict", async () => {
    let writes = 0;
    const once = httpFence({ keys }).node(
      () => lock,
      (_request, response) => {
        writes += 1;
        response.writeHead(writes === 1 ? 201 : 409).end();
      },
    );
    await at(once, async (url) => {
      const found = await examine(url, "--lock", lock);
      assert.deepEqual([found.code, found.problems, writes], [3, [], 2], found.text);
      assert.match(found.text, /with 201, and then \d+ with 409 rather than 412/);
    });
  });

  test("no answer, a user in the URL, odd words: 1 or 2, without the password", async () => {
    await at(
      () => undefined,
      async (url) => {
        const hanging = await examine(url, "--timeout", "300ms");
        assert.equal(hanging.code, 1);
        assert.match(hanging.text, /PUT failed: no answer within 300 ms/);
        for (const [odd, ...more] of [
          [url.replace("//", "//a:secret@")],
          [url, "--method", "put"],
          [url, "--endpoints", "127.0.0.1:1"],
          ["sqlite:a.db", "--lock", "x"],
        ] as const) {
          const refused = await examine(odd, ...more);
          assert.equal(refused.code, 2, refused.text);
          assert.doesNotMatch(refused.text, /secret/);
        }
      },
    );
  });
});
