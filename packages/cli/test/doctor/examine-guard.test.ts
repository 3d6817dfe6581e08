/** Stores that keep the rule and stores that break it in, findings out. */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, it } from "node:test";
import type { GuardProbe } from "../../src/doctor/guard/examine-guard.js";
import { examineGuard } from "../../src/doctor/guard/examine-guard.js";
import { loadDriver } from "../../src/doctor/guard/load-driver.js";
import { inFolder } from "../dev/folder.js";

/** How a store goes wrong: what it remembers of a token, whether it looks at it, when it writes. */
interface Flaws {
  readonly kept?: (token: number) => number;
  readonly looks?: boolean;
  readonly writesFirst?: boolean;
  readonly yields?: boolean;
}

function probe({ kept = (token) => token, looks = true, writesFirst = false, yields = false }: Flaws): GuardProbe {
  let fence = 0;
  let text: string | null = null;
  return {
    form: "a fake",
    async write(token, next) {
      if (writesFirst) text = next;
      const isStale = looks && kept(token) < fence;
      // Two steps with a gap between them: what other writers do in it is overwritten.
      if (yields) for (let turns = token % 5; turns >= 0; turns -= 1) await Promise.resolve();
      if (isStale) throw Object.assign(new Error("stale"), { code: "stale_token" });
      fence = kept(token);
      text = next;
    },
    stored: async () => ({ text, token: String(fence) }),
  };
}

async function verdicts(flaws: Flaws): Promise<Record<string, string>> {
  const store = { name: "a store", probes: [probe(flaws)], settings: [], close: async () => {} };
  return Object.fromEntries((await examineGuard(store)).map(({ check, severity }) => [check, severity]));
}

const right = { store: "ok", "old token": "ok", "at once": "ok", "great tokens": "ok" };

describe("what a guard does with an old token", () => {
  it("a store that keeps the rule is in order", async () => {
    assert.deepEqual(await verdicts({}), right);
  });

  it("one that accepts it, rounds it, writes before it looks, or compares and writes in two steps is told", async () => {
    const bad = "problem";
    assert.deepEqual(await verdicts({ looks: false }), {
      ...right,
      "old token": bad,
      "at once": bad,
      "great tokens": bad,
    });
    assert.deepEqual(await verdicts({ kept: Math.fround }), { ...right, "great tokens": bad });
    const torn = { ...right, "old token": bad, "great tokens": bad };
    assert.deepEqual({ ...(await verdicts({ writesFirst: true })), "at once": "ok" }, torn);
    assert.equal((await verdicts({ yields: true }))["at once"], bad);
  });

  it("a guard that refuses to work with the store is a problem, and the other guards of the store are examined", async () => {
    const incompatible = Object.assign(new Error("ignores If-Match"), { code: "incompatible" });
    const broken = { ...probe({}), write: () => Promise.reject(incompatible) };
    const store = { name: "a store", probes: [broken, probe({})], settings: [], close: async () => {} };
    const findings = await examineGuard(store);
    assert.deepEqual(
      findings.map(({ check, severity }) => `${check} ${severity}`),
      ["store ok", "old token problem", "old token ok", "at once ok", "great tokens ok"],
    );
    assert.equal(findings[1]?.seen, "a fake: ignores If-Match");
  });

  it("another error than a refusal is the caller's", async () => {
    const broken = { ...probe({}), write: () => Promise.reject(new Error("no table")) };
    const store = { name: "a store", probes: [broken], settings: [], close: async () => {} };
    await assert.rejects(examineGuard(store), { message: "no table" });
  });
});

describe("a driver", () => {
  it("is that of the project, CommonJS or not, in the folder or above it; none is told", async () => {
    await inFolder(async (folder) => {
      const modules = path.join(folder, "node_modules");
      for (const [name, type, code] of [
        ["one", "commonjs", "module.exports = { is: 'one' };"],
        ["two", "module", "export const is = 'two';"],
      ] as const) {
        mkdirSync(path.join(modules, name), { recursive: true });
        const manifest = { name, type, version: "1.0.0", exports: "./index.js" };
        writeFileSync(path.join(modules, name, "package.json"), JSON.stringify(manifest));
        writeFileSync(path.join(modules, name, "index.js"), code);
      }
      const below = path.join(folder, "src");
      mkdirSync(below);
      assert.deepEqual(await loadDriver(["none", "one"], below), { name: "one", module: { is: "one" } });
      assert.equal(((await loadDriver(["two"], folder)).module as { is: string }).is, "two");
      await assert.rejects(loadDriver(["none"], folder), {
        code: "driver_missing",
        exitCode: 1,
        message: /npm install none/,
      });
    });
  });
});
