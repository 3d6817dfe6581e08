/** The guard with the real client at a server that fails when it is told to. The common promises are in s3-store.test.ts. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { StaleTokenError, UnknownOutcomeError } from "@holdfast/fence";
import { s3Commands, s3Guard } from "@holdfast/fence/s3";
import type { S3Commands, S3Sender } from "@holdfast/fence/s3";
import { driver, skipWithoutDriver } from "./drivers.js";
import { bucketOf, s3Client, s3Options } from "./s3-client.js";
import type { TestS3 } from "./s3-client.js";
import { startS3Server } from "./s3-server.js";
import type { S3Fault, S3ServerOptions, TestS3Server } from "./s3-server.js";

interface Parts {
  server: TestS3Server;
  client: TestS3;
}

const old = { resource: "doc", token: 33 };
const newer = { resource: "doc", token: 34 };
const pointerKey = "holdfast/doc/fence";

function useServer(options: S3ServerOptions = {}): Parts {
  const parts = {} as Parts;
  before(async () => {
    parts.server = await startS3Server(options);
    parts.client = s3Client(parts.server.address, { maxAttempts: 3 });
  });
  after(async () => {
    parts.client?.destroy();
    await parts.server?.stop();
  });
  return parts;
}

/** The next puts of the pointer fail like this; how many did is told. */
function failPointer(server: TestS3Server, faults: readonly S3Fault[]): { count: number } {
  const left = [...faults];
  const failed = { count: 0 };
  server.fault = ({ method, key }) => {
    const fault = method === "PUT" && key === pointerKey ? (left.shift() ?? null) : null;
    if (fault !== null) failed.count += 1;
    return fault;
  };
  return failed;
}

describe("the guard with the client of Amazon's SDK", {
  skip: skipWithoutDriver("@aws-sdk/client-s3"),
  timeout: 120_000,
}, () => {
  outcomeTests(useServer());
  clientTests(useServer({ etags: "bare" }));
  describe("at a store that ignores If-Match", () => ignoringTests(useServer({ etags: "ignored" })));
});

function outcomeTests(parts: Parts): void {
  test("409, 412, 5xx and cut connections, before the effect or after it, with the client's own repetitions: done once", async () => {
    const { server, client } = parts;
    const guard = s3Guard(client, { bucket: bucketOf(server.address) });
    await guard.write(old, "");
    let expected = "";
    for (const answer of [409, 412, 500, 503, "hang up"] as const) {
      for (const effect of ["before", "after"] as const) {
        // One is repeated by the client, four are more than it repeats.
        for (const times of [1, 4]) {
          const failed = failPointer(
            server,
            Array.from({ length: times }, () => ({ answer, effect })),
          );
          const what = `${answer} ${effect} x${times}`;
          await guard.update(old, (current) => `${String(current)}${what}\n`);
          expected += `${what}\n`;
          assert.equal(String(await guard.readNewest("doc")), expected, what);
          assert.ok(failed.count > 0, what);
        }
      }
    }
    server.fault = () => null;
    await guard.removeGarbage("doc");
    assert.deepEqual(
      [...server.objects.keys()].filter((key) => key.startsWith("holdfast/doc/data/")).length,
      1,
      "nothing is left but the pointer and its data",
    );
    await guard.write(newer, "newer");
    await assert.rejects(guard.write(old, "late"), StaleTokenError);
  });

  test("a store that never answers leaves the outcome open; one that refuses has done nothing", async () => {
    const { server, client } = parts;
    const guard = s3Guard(client, { bucket: bucketOf(server.address) });
    await guard.write(newer, "before");
    failPointer(
      server,
      Array.from({ length: 1_000 }, () => ({ answer: "hang up", effect: "before" }) as const),
    );
    const open = await guard.write(newer, "open").catch((error: unknown) => error);
    assert.ok(open instanceof UnknownOutcomeError && !open.retryable && open.resource === "doc", String(open));
    failPointer(server, [{ answer: 403, effect: "before" }]);
    await assert.rejects(guard.write(newer, "refused"), { name: "Other" });
    server.fault = () => null;
    assert.equal(String(await guard.readNewest("doc")), "before");
  });

  test("data that can't be put leaves everything as it was", async () => {
    const { server, client } = parts;
    const guard = s3Guard(client, { bucket: bucketOf(server.address) });
    await guard.write(newer, "before");
    server.fault = ({ method, key }) =>
      method === "PUT" && key.includes("/data/") ? { answer: 503, effect: "after" } : null;
    await assert.rejects(guard.write({ ...newer, token: 50 }, "x"), { name: "SlowDown" });
    server.fault = () => null;
    assert.equal(String(await guard.read(newer)), "before");
  });
}

function clientTests(parts: Parts): void {
  test("a bare S3Client with its commands, and ETags without quotes", async () => {
    const { server, client } = parts;
    const sdk = driver("@aws-sdk/client-s3") as S3Commands & {
      readonly S3Client: new (options: object) => S3Sender & { destroy(): void };
    };
    const bare = new sdk.S3Client(s3Options(server.address));
    try {
      const bucket = bucketOf(server.address);
      const guard = s3Guard(s3Commands(bare, sdk), { bucket });
      await guard.write(old, "one");
      await guard.update(newer, (current) => `${String(current)} two`);
      await assert.rejects(s3Guard(client, { bucket }).write(old, "late"), StaleTokenError);
      assert.equal(await guard.removeGarbage("doc"), 0);
      assert.equal(String(await s3Guard(client, { bucket }).readNewest("doc")), "one two");
    } finally {
      bare.destroy();
    }
  });
}

function ignoringTests(parts: Parts): void {
  test("it is refused, and nothing is written", async () => {
    const { server, client } = parts;
    const guard = s3Guard(client, { bucket: bucketOf(server.address) });
    await assert.rejects(guard.write(old, "x"), { code: "incompatible" });
    assert.deepEqual([...server.objects.keys()], []);
  });
}
