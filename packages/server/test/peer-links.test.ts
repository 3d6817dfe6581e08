import { strict as assert } from "node:assert";
import { fork } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterEach, describe, test } from "node:test";
import type { RecordedLinks, LinkSetup } from "./peer-harness.js";
import { allFormed, noPromises, recordedLinks } from "./peer-harness.js";
import { append, freePorts, heartbeat, sleep, until } from "./helpers.js";

const running: RecordedLinks[] = [];
const children: ChildProcess[] = [];

afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  await Promise.all(running.splice(0).map(({ links }) => links.close()));
});

async function start(setup: LinkSetup, isFormed = true): Promise<RecordedLinks> {
  const recorded = recordedLinks(setup);
  running.push(recorded);
  await recorded.links.start();
  if (isFormed) recorded.links.becomeFormed(allFormed, noPromises);
  return recorded;
}

async function pair(): Promise<[RecordedLinks, RecordedLinks]> {
  const [p1 = 0, p2 = 0] = await freePorts(2);
  const a = await start({ id: "n1", port: p1, peers: { n2: p2 } });
  const b = await start({ id: "n2", port: p2, peers: { n1: p1 } });
  await until(() => a.links.figures().links === 4 && b.links.figures().links === 4, "all lanes are open");
  return [a, b];
}

async function startChild(id: string, port: number, peer: string, peerPort: number, boot = 1): Promise<ChildProcess> {
  const child = fork(fileURLToPath(new URL("./peer-child.js", import.meta.url)), [
    id,
    `${port}`,
    peer,
    `${peerPort}`,
    `${boot}`,
  ]);
  children.push(child);
  const [message] = await once(child, "message");
  assert.equal(message, "ready");
  return child;
}

/** n1 here, n2 in a process of its own. */
async function withChild(): Promise<{ a: RecordedLinks; child: ChildProcess; ports: [number, number] }> {
  const [p1 = 0, p2 = 0] = await freePorts(2);
  const a = await start({ id: "n1", port: p1, peers: { n2: p2 } });
  const child = await startChild("n2", p2, "n1", p1);
  await until(() => a.links.met().get("n2")?.clusterId === allFormed.clusterId, "met");
  await sleep(100);
  a.resets.length = 0;
  return { a, child, ports: [p1, p2] };
}

describe("peer links", () => {
  test("carry messages both ways, each lane in order", async () => {
    const [a, b] = await pair();
    for (let n = 1; n <= 50; n += 1) a.links.send("n2", [append(n, 1_000), heartbeat(n)]);
    b.links.send("n1", [heartbeat(7)]);
    await until(() => b.received.length === 100 && a.received.length === 1, "all messages");
    const rounds = b.received.flatMap(({ message }) => (message.kind === "heartbeat" ? [message.round] : []));
    const indexes = b.received.flatMap(({ message }) =>
      message.kind === "append" ? [message.previous.index + 1] : [],
    );
    const expected = Array.from({ length: 50 }, (_, n) => n + 1);
    assert.deepEqual(rounds, expected);
    assert.deepEqual(indexes, expected);
    assert.ok(a.resets.includes("n2") && b.resets.includes("n1"), "a new link is a reset");
    assert.deepEqual(a.gone, []);
  });

  test("carry nothing before both are formed", async () => {
    const [p1 = 0, p2 = 0] = await freePorts(2);
    const a = await start({ id: "n1", port: p1, peers: { n2: p2 } });
    const b = await start({ id: "n2", port: p2, peers: { n1: p1 } }, false);
    await until(() => b.formed.length > 0, "the first configuration was handed on");
    assert.deepEqual(b.formed[0]?.frame.configuration, allFormed.configuration);
    a.links.send("n2", [heartbeat(1)]);
    b.links.send("n1", [heartbeat(2)]);
    await sleep(50);
    assert.deepEqual([a.received, b.received, a.resets, b.resets], [[], [], [], []]);
    b.links.becomeFormed(allFormed, noPromises);
    await until(() => a.resets.length > 0 && b.resets.length > 0, "links of members");
    await until(() => {
      a.links.send("n2", [heartbeat(3)]);
      return b.received.length > 0;
    }, "a message arrives");
    assert.deepEqual([a.gone, b.gone], [[], []], "becoming formed is no death");
  });

  test("tell a killed process, once", async () => {
    const { a, child } = await withChild();
    child.kill("SIGKILL");
    await until(() => a.gone.length > 0, "onPeerGone");
    await sleep(400);
    assert.equal(a.gone.length, 1, "said once, however often the dial is refused");
    assert.deepEqual(a.resets, []);
  });

  test("a restarted process is heard again, and its next death too", async () => {
    const { a, child, ports } = await withChild();
    child.kill("SIGKILL");
    await until(() => a.gone.length === 1, "first death");
    const next = await startChild("n2", ports[1], "n1", ports[0], 2);
    await until(() => a.resets.length > 0 && a.links.met().size === 1, "back");
    next.kill("SIGKILL");
    await until(() => a.gone.length === 2, "second death");
  });

  test("a stopped process is not gone, and wakes up to a fresh link", async () => {
    const { a, child } = await withChild();
    child.kill("SIGSTOP");
    // Two quiet periods end its links; the dials that follow hang.
    await until(() => a.links.figures().links === 0, "all links are cleared", 20_000);
    await sleep(300);
    assert.deepEqual([a.gone, a.resets], [[], []]);
    child.kill("SIGCONT");
    await until(() => a.resets.length > 0 && a.links.met().size === 1, "linked again");
    assert.deepEqual(a.gone, []);
  });

  test("a stopped process that is killed is gone", async () => {
    const { a, child } = await withChild();
    child.kill("SIGSTOP");
    await until(() => a.links.met().size === 0, "links cleared", 20_000);
    child.kill("SIGKILL");
    await until(() => a.gone.length === 1, "onPeerGone");
  });

  test("a goodbye is no death", async () => {
    const { a, child } = await withChild();
    child.send("leave");
    await once(child, "exit");
    await until(() => a.links.met().size === 0, "links closed");
    await sleep(300);
    assert.deepEqual([a.gone, a.resets], [[], []]);
  });
});
