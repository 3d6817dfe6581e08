import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { Server, Socket } from "node:net";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ProxyNetwork } from "../../../src/network/proxy/proxy-network.js";
import { until } from "../../until.js";

/** What has come in so far. */
class Ear {
  text = "";
  isEnded = false;
  isClosed = false;
  readonly socket: Socket;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding("utf8").on("data", (text: string) => {
      this.text += text;
    });
    socket.on("end", () => {
      this.isEnded = true;
    });
    socket.on("error", () => undefined);
    socket.on("close", () => {
      this.isClosed = true;
    });
  }
}

describe("a network of proxies", { timeout: 60_000 }, () => {
  let network: ProxyNetwork;
  let server: Server;
  const accepted: Ear[] = [];

  before(async () => {
    network = await ProxyNetwork.open({ nodes: ["n1", "n2"], workers: ["w1"] });
    const [host = "", port = ""] = network.bindAddress("n2", "peer").split(":");
    server = createServer({ allowHalfOpen: true }, (socket) => accepted.push(new Ear(socket)));
    server.listen(Number(port), host);
    await once(server, "listening");
  });

  after(async () => {
    for (const { socket } of accepted) socket.destroy();
    server.close();
    await network.close();
  });

  /** n1 dials n2. */
  async function dial(): Promise<{ readonly near: Ear; readonly far: Ear }> {
    const [host = "", port = ""] = network.addressOf("n1", "n2", "peer").split(":");
    const count = accepted.length;
    const socket = connect({ host, port: Number(port), allowHalfOpen: true });
    await once(socket, "connect");
    await until("the connection is through", () => accepted.length > count);
    return { near: new Ear(socket), far: accepted.at(-1) as Ear };
  }

  it("gives each viewer an address of its own for each node", () => {
    const addresses = ["n1", "harness", "n2"].map((viewer) => network.addressOf(viewer, "n2", "peer"));
    assert.equal(addresses[1], addresses[2]);
    assert.notEqual(addresses[0], addresses[1]);
    assert.throws(() => network.addressOf("w1", "n2", "peer"), /w1 has no way to the peer port of n2/);
    assert.notEqual(network.addressOf("w1", "n2", "client"), network.bindAddress("n2", "client"));
  });

  it("carries bytes both ways, and counts them", async () => {
    const { near, far } = await dial();
    const there = await network.bytesPassed("n1", "n2");
    near.socket.write("question");
    far.socket.write("answer");
    await until("both have come", () => far.text === "question" && near.text === "answer");
    assert.equal((await network.bytesPassed("n1", "n2")) - there, "question".length);
    near.socket.destroy();
    await until("the end came through", () => far.isClosed || far.isEnded);
  });

  it("holds what a cut way should carry, lets the other way pass, and delivers late, in order", async () => {
    const { near, far } = await dial();
    await network.cut("n1", "n2");
    const before = await network.bytesPassed("n1", "n2");
    near.socket.write("one ");
    far.socket.write("heard");
    await until("the whole way works", () => near.text === "heard");
    near.socket.write("two");
    await sleep(100);
    assert.equal(far.text, "");
    assert.equal(await network.bytesPassed("n1", "n2"), before);
    await network.heal("n1", "n2");
    await until("what was held has come", () => far.text === "one two");
    near.socket.destroy();
  });

  it("tells nobody of an end over a cut way", async () => {
    const { near, far } = await dial();
    await network.cut("n1", "n2");
    near.socket.destroy();
    // It would notice by an answer, too: the reset for it may not pass either.
    far.socket.write("are you there?");
    await sleep(200);
    assert.equal(far.isEnded || far.isClosed, false);
    await network.heal("n1", "n2");
    await until("it is told", () => far.isEnded || far.isClosed);
  });

  it("connects nobody over a way that is cut in either direction, until it is whole", async () => {
    for (const [from, to] of [
      ["n1", "n2"],
      ["n2", "n1"],
    ] as const) {
      await network.cut(from, to);
      const count = accepted.length;
      const [host = "", port = ""] = network.addressOf("n1", "n2", "peer").split(":");
      const socket = connect({ host, port: Number(port) });
      socket.write("hello");
      await sleep(150);
      assert.equal(accepted.length, count);
      await network.heal(from, to);
      await until("it is connected now", () => accepted.length === count + 1 && accepted.at(-1)?.text === "hello");
      socket.destroy();
    }
  });

  it("delays, and lets a slow way take its time", async () => {
    const { near, far } = await dial();
    await network.shape("n1", "n2", { delayMs: 150 });
    let startMs = performance.now();
    near.socket.write("late");
    await until("it came", () => far.text === "late");
    assert.ok(performance.now() - startMs >= 145);
    await network.shape("n1", "n2", { bytesPerSecond: 100_000 });
    startMs = performance.now();
    near.socket.write("x".repeat(30_000));
    await until("all of it came", () => far.text.length === 30_004);
    assert.ok(performance.now() - startMs >= 250, "30 kB at 100 kB/s");
    await network.shape("n1", "n2", null);
    near.socket.destroy();
  });

  it("breaks connections, and closes one direction alone", async () => {
    const broken = await dial();
    await network.reset("n1", "n2");
    await until("both ends are told", () => broken.near.isClosed && broken.far.isClosed);
    const { near, far } = await dial();
    network.halfClose("n1", "n2");
    await until("the far end has heard the last", () => far.isEnded);
    far.socket.write("still here");
    await until("the other direction goes on", () => near.text === "still here");
    assert.equal(near.isEnded, false);
    near.socket.destroy();
  });
});
