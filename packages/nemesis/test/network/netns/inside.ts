/** Run by netns.test.ts in a network namespace of its own, as root and as a user: the network itself. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { runCommand } from "../../../src/machine/command.js";
import { missingDelay } from "../../../src/network/netns/enter.js";
import type { Rules } from "../../../src/network/netns/filter.js";
import { iptablesRules } from "../../../src/network/netns/iptables-rules.js";
import { NetnsError } from "../../../src/network/netns/netns-error.js";
import { NetnsNetwork } from "../../../src/network/netns/netns-network.js";
import { nftRules } from "../../../src/network/netns/nft-rules.js";
import { until } from "../../until.js";
import { startTalker } from "./talkers.js";
import { parties, World } from "./world.js";

const [toolName = "nft", reasonWithoutDelay = ""] = process.argv.slice(2);
const rules: Rules = toolName === "iptables" ? iptablesRules : nftRules;

describe(`ways are cut, by ${toolName}`, { timeout: 120_000 }, () => {
  let world: World;

  before(async () => {
    world = await World.open(rules);
  });
  after(() => world.close());

  it("counts what passes, way by way", async () => {
    const before = await world.network.bytesPassed("n1", "n2");
    const other = await world.network.bytesPassed("n1", "n3");
    await world.n1.ask({ ask: "send", bytes: 10_000 });
    await until("n2 has got it", async () => (await world.received("n2")) >= 10_000);
    const passed = (await world.network.bytesPassed("n1", "n2")) - before;
    assert.ok(passed >= 10_000 && passed < 20_000, `${passed} bytes for 10,000 and their headers`);
    assert.equal(await world.network.bytesPassed("n1", "n3"), other);
  });

  it("lets nothing pass on a cut way, everything on the way back, and all of it once healed", async () => {
    await world.network.cut("n1", "n2");
    const passed = await world.network.bytesPassed("n1", "n2");
    const [atN1, atN2] = [await world.received("n1"), await world.received("n2")];
    await world.n1.ask({ ask: "send", bytes: 5_000 });
    // Goes to w1, too, which isn't cut off in any direction.
    await world.n2.ask({ ask: "send", bytes: 1_000 });
    await until("n1 hears n2", async () => (await world.received("n1")) === atN1 + 1_000);
    await until("w1 hears n2", async () => (await world.received("w1")) >= 1_000);
    assert.equal(await world.network.bytesPassed("n1", "n2"), passed);
    assert.equal(await world.received("n2"), atN2);
    await world.network.heal("n1", "n2");
    await until("n2 has got the rest", async () => (await world.received("n2")) === atN2 + 5_000);
    assert.deepEqual((await world.n1.ask({ ask: "state" })).errors, []);
  });

  it("answers no new connection over a cut way, until it is healed", async () => {
    const n3 = startTalker(world.network, "n3");
    await world.network.cut("n2", "n3");
    await n3.ask({ ask: "dial", address: world.network.addressOf("n3", "n2", "peer") });
    await until("the first packet is there", async () => (await world.network.bytesPassed("n3", "n2")) > 0);
    assert.equal(await world.network.bytesPassed("n2", "n3"), 0);
    assert.equal((await n3.ask({ ask: "state" })).connected, false);
    await world.network.heal("n2", "n3");
    await until("n3 has reached n2", async () => (await n3.ask({ ask: "state" })).connected);
    await n3.end();
  });
});

describe(`ways are shaped, by ${toolName}`, { timeout: 120_000 }, () => {
  let world: World;

  before(async () => {
    world = await World.open(rules);
  });
  after(() => world.close());

  it("loses a share of the packets, and TCP brings them all the same", async () => {
    await world.network.shape("n1", "n2", { lossFraction: 1 });
    const passed = await world.network.bytesPassed("n1", "n2");
    const [atN1, got] = [await world.received("n1"), await world.received("n2")];
    await world.n1.ask({ ask: "send", bytes: 2_000 });
    await world.n2.ask({ ask: "send", bytes: 100 });
    await until("n1 hears n2", async () => (await world.received("n1")) === atN1 + 100);
    assert.equal(await world.network.bytesPassed("n1", "n2"), passed);
    await world.network.shape("n1", "n2", { lossFraction: 0.2 });
    await until("n2 has got it", async () => (await world.received("n2")) === got + 2_000);
    await world.network.shape("n1", "n2", null);
  });

  it("lets so many bytes pass in a second, in one direction and for one party", async () => {
    await world.network.shape("n1", "n2", { bytesPerSecond: 20_000 });
    const got = await world.received("n2");
    const startMs = performance.now();
    await world.n1.ask({ ask: "send", bytes: 40_000 });
    await until("n2 has got it", async () => (await world.received("n2")) === got + 40_000);
    const tookMs = performance.now() - startMs;
    assert.ok(tookMs > 1_000, `40,000 bytes at 20,000 a second took ${tookMs} ms`);
    await world.network.shape("n1", "n2", { bytesPerSecond: 10_000_000 });
    const againMs = performance.now();
    await world.n1.ask({ ask: "send", bytes: 200_000 });
    await until("n2 has got that too", async () => (await world.received("n2")) === got + 240_000);
    assert.ok(performance.now() - againMs < 10_000, "a wider way is wider");
    await world.network.shape("n1", "n2", null);
  });

  it("delays, or says that the kernel can't", async () => {
    if (reasonWithoutDelay !== "") {
      assert.match((await missingDelay()) ?? "", /netem/);
      await assert.rejects(world.network.shape("n1", "n2", { delayMs: 300 }), {
        name: "NetnsError",
        code: "unsupported_shape",
      });
      await world.network.shape("n1", "n2", null);
      return;
    }
    await world.network.shape("n1", "n2", { delayMs: 300, jitterMs: 50 });
    const got = await world.received("n2");
    const startMs = performance.now();
    await world.n1.ask({ ask: "send", bytes: 10 });
    await until("n2 has got it", async () => (await world.received("n2")) === got + 10);
    assert.ok(performance.now() - startMs >= 300);
    await world.network.shape("n1", "n2", null);
  });
});

describe(`a network of namespaces, by ${toolName}`, { timeout: 120_000 }, () => {
  let world: World;

  before(async () => {
    world = await World.open(rules);
  });
  after(() => world.close());

  it("refuses what makes no sense, by name", async () => {
    await assert.rejects(world.network.cut("n1", "n9"), { code: "unknown_party", message: /n9/ });
    await assert.rejects(world.network.cut("n1", "n1"), { code: "bad_argument", message: /n1/ });
    for (const shape of [{ delayMs: -1 }, { jitterMs: Number.NaN }, { lossFraction: 1.1 }, { bytesPerSecond: 0 }]) {
      const [name = ""] = Object.keys(shape);
      await assert.rejects(world.network.shape("n1", "n2", shape), { code: "bad_argument", message: new RegExp(name) });
    }
    await assert.rejects(NetnsNetwork.open({ nodes: ["n1"], workers: ["n1"] }), { code: "bad_argument" });
    // The bridge of this network is in the way of another one.
    await assert.rejects(NetnsNetwork.open(parties), NetnsError);
  });

  it("leads to the parties and nowhere else", async () => {
    const [program = "", ...rest] = world.network.wrap("n1", ["ip", "route", "show"]);
    const routes = (await runCommand([program, ...rest])).trim().split("\n");
    assert.equal(routes.length, 1);
    assert.match(routes[0] ?? "", /^10\.79\.0\.0\/24 dev eth0 /);
  });

  it("breaks connections with a reset, those between these two alone", async () => {
    await world.network.reset("n1", "n2");
    await until("n1 and n2 know", async () => {
      const [one, two] = await Promise.all([world.n1, world.n2].map((talker) => talker.ask({ ask: "state" })));
      return one?.errors.length === 1 && two?.errors.length === 1;
    });
    assert.deepEqual((await world.w1.ask({ ask: "state" })).errors, []);
    const got = await world.received("n2");
    await world.w1.ask({ ask: "send", bytes: 10 });
    await until("w1 still reaches n2", async () => (await world.received("n2")) === got + 10);
  });
});
