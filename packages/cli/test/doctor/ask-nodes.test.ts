/** Nodes that answer, hang, speak nonsense, are there twice or die on the way. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { RequestListener, Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, it } from "node:test";
import { askNodes } from "../../src/doctor/ask-nodes.js";
import { healthy } from "./facts.js";

const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** `clients`: where its configuration says that clients find the nodes. */
function node(id: string, clients: Readonly<Record<string, string>>, bootOf: () => number = () => 1): Promise<string> {
  const told = healthy().nodes.find(({ after }) => after?.id === id)?.after;
  assert.ok(told !== null && told !== undefined && told.host !== null);
  const voters = told.host.configuration.voters.map((voter) => ({
    ...voter,
    client: clients[voter.id] ?? voter.client,
  }));
  const host = { ...told.host, configuration: { ...told.host.configuration, voters } };
  return serve((request, response) => {
    const boot = bootOf();
    const clock = { boot, monotonicMs: performance.now() };
    response.end(JSON.stringify(request.url === "/v1/clock" ? clock : { ...told, boot, host }));
  });
}

const options = { timeoutMs: 300, measureMs: 500 };

describe("asking nodes", () => {
  it("asks whom it is told of, reads their clocks, and counts each once", async () => {
    const clients: Record<string, string> = {};
    clients["n3"] = await node("n3", clients);
    clients["n2"] = await node("n2", { n3: clients["n3"] });
    const first = await node("n1", clients);
    const sameAgain = first.replace("127.0.0.1", "localhost");
    // All of them answer, some late on a busy machine.
    const facts = await askNodes([first, sameAgain, first, clients["n2"]], { ...options, timeoutMs: 10_000 });
    assert.deepEqual(
      facts.map(({ after, error, endpoint }) => [after?.id, error, endpoint]),
      [
        ["n1", null, first],
        ["n2", null, clients["n2"]],
        ["n3", null, clients["n3"]],
      ],
    );
    for (const { samples } of facts) {
      assert.ok(samples.length >= 2);
      for (const { sentMs, receivedMs } of samples) assert.ok(receivedMs >= sentMs);
    }
  });

  it("gives up who doesn't answer, and who answers nonsense, without waiting longer than it may", async () => {
    const hanging = await serve(() => undefined);
    const page = await serve((_, response) => response.end("<html>"));
    const half = await serve((_, response) => void response.write('{"id":'));
    const older = await serve((_, response) => {
      response.statusCode = 404;
      response.end(JSON.stringify({ detail: "there is nothing at this path" }));
    });
    const gone = await serve(() => undefined);
    servers.pop()?.close();
    const startedMs = performance.now();
    const facts = await askNodes([hanging, page, half, older, gone], options);
    assert.ok(performance.now() - startedMs < 5_000);
    assert.deepEqual(
      facts.map(({ before, error }) => [before, error?.kind, error?.message.replace(/ [\d.:]+$/, "")]),
      [
        [null, "silent", "no answer within 300 ms"],
        [null, "foreign", "it answers with something that is no JSON object"],
        [null, "silent", "no answer within 300 ms"],
        [null, "foreign", "there is nothing at this path"],
        [null, "silent", "connect ECONNREFUSED"],
      ],
    );
  });

  it("notices who stops while it is watched, and takes no clock of another life for the same", async () => {
    let boots = 0;
    // Each answer from a new life: only the checkup's own and none of the clock's is of boot 1.
    const restarting = await node("n1", {}, () => (boots += 1));
    let answers = 0;
    const told = healthy().nodes[1]?.after;
    const dying = await serve((_, response) => {
      answers += 1;
      if (answers <= 2) response.end(JSON.stringify(told));
    });
    const [first, second] = await askNodes([restarting, dying], { ...options, measureMs: 100 });
    assert.deepEqual(first?.samples, []);
    assert.equal(first.before?.boot, 1);
    assert.ok((first.after?.boot ?? 0) > 2);
    assert.equal(second?.before?.id, "n2");
    assert.equal(second.after, null);
    assert.equal(second.error?.message, "no answer within 300 ms");
  });
});
