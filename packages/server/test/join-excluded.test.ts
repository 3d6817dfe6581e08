/** A node that waits to be added, and hears from the cluster that it never will be: no member calls it. */
import { strict as assert } from "node:assert";
import { createServer } from "node:http";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, test } from "node:test";
import { reportDirectory } from "../src/directory-report.js";
import { exitCodes } from "../src/exit-codes.js";
import type { ClusterFacts } from "../src/joining.js";
import { runJoiningNode } from "../src/run-node.js";
import { freePorts, memoryLogger, until } from "./helpers.js";
import { newDirectory } from "./node-harness.js";

describe("a node that waits to be added", { timeout: 60_000 }, () => {
  let facts: ClusterFacts;
  let cluster: Server;
  let port = 0;
  let answers = 0;

  beforeEach(async () => {
    facts = { cluster: "test", clusterId: "c", timing: {}, limits: {}, removed: [], members: [] };
    answers = 0;
    cluster = createServer((_, response) => {
      answers += 1;
      response.setHeader("connection", "close").end(JSON.stringify(facts));
    });
    await new Promise<void>((resolve) => cluster.listen(0, "127.0.0.1", resolve));
    ({ port } = cluster.address() as AddressInfo);
  });
  afterEach(() => cluster.close());

  async function start(dataDirectory = newDirectory()) {
    const [peer, client] = await freePorts(2);
    const stop = new AbortController();
    const said: string[] = [];
    const options = {
      endpoints: [`127.0.0.1:${port}`],
      nodeId: "n4",
      dataDirectory,
      peer: `127.0.0.1:${peer}`,
      client: `127.0.0.1:${client}`,
      environment: {},
      signals: false,
      logger: memoryLogger(),
      stop: stop.signal,
      writeError: (text: string) => void said.push(text),
    };
    const again = (): Promise<number> => runJoiningNode(options);
    return { ended: again(), again, stop: () => stop.abort(), said, dataDirectory };
  }

  test("it was added and removed again: it ends, and its directory knows", async () => {
    const { ended, again, said, dataDirectory } = await start();
    await until(() => answers >= 3, "it goes on asking", 20_000);
    facts = { ...facts, removed: ["n4"] };
    assert.equal(await ended, exitCodes.removed.code);
    assert.match(said[0] ?? "", /n4 was removed from its cluster/);
    assert.deepEqual(
      (await reportDirectory(dataDirectory)).problems.map(({ exit }) => exit),
      ["removed"],
    );
    cluster.close();
    assert.equal(await again(), exitCodes.removed.code, "with nobody there to ask");
  });

  test("its id was given to another directory: it ends", async () => {
    const { ended, said } = await start();
    await until(() => answers >= 2, "it asks", 20_000);
    facts = { ...facts, members: [{ id: "n4", instance: "another" }] };
    assert.equal(await ended, exitCodes.wrongInstance.code);
    assert.match(said[0] ?? "", /another data directory \(instance another, not /);
  });

  test("a stranger at that address, or nobody: it waits on, and stops when it is told to", async () => {
    const { ended, stop } = await start();
    await until(() => answers >= 2, "it asks", 20_000);
    facts = { ...facts, clusterId: "of strangers", removed: ["n4"] };
    const before = answers;
    await until(() => answers >= before + 2, "it goes on asking", 20_000);
    stop();
    assert.equal(await ended, exitCodes.ok.code);
  });
});
