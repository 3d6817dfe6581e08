/**
 * The documents' programs run: each block of JavaScript under the line `<!-- runs -->`, as a process of its own that has to end with 0.
 * Whoever writes one lets it throw when something isn't as the text says. They have HOLDFAST_ENDPOINTS; endpoints that a program
 * names itself are exchanged for the test's.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { TestCluster } from "../harness/cluster.js";

const top = fileURLToPath(new URL("../../../", import.meta.url));
const limitMs = 60_000;

interface Example {
  readonly name: string;
  readonly program: string;
}

function examplesOf(document: string): Example[] {
  const text = readFileSync(join(top, document), "utf8");
  return [...text.matchAll(/^<!-- runs -->\n```js\n(.*?)^```$/gms)].map((match) => {
    const line = text.slice(0, match.index).split("\n").length;
    return { name: `${document}:${line}`, program: match[1] ?? "" };
  });
}

/** Every marked block is one that was found: a marker that stands somewhere else would run nothing. */
function markersOf(document: string): number {
  return readFileSync(join(top, document), "utf8").split("<!-- runs -->").length - 1;
}

interface End {
  readonly code: number | string | null;
  readonly output: string;
}

function run(file: string, environment: Readonly<Record<string, string>>): Promise<End> {
  return new Promise((resolve) => {
    const options = { env: { ...process.env, ...environment }, timeout: limitMs };
    execFile(process.execPath, [file], options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code ?? error.signal ?? null), output: `${stdout}${stderr}` });
    });
  });
}

describe("the documents' programs", () => {
  let cluster: TestCluster;
  let folder = "";

  before(async () => {
    cluster = await TestCluster.start({ nodes: 1 });
    folder = mkdtempSync(join(tmpdir(), "holdfast-examples-"));
    mkdirSync(join(folder, "node_modules"));
    symlinkSync(join(top, "node_modules/@holdfast"), join(folder, "node_modules/@holdfast"));
  });

  after(async () => {
    rmSync(folder, { recursive: true, force: true });
    await cluster?.close();
  });

  for (const document of ["README.md", "docs/client.md"]) {
    const examples = examplesOf(document);
    test(`${document} has some, and each marker stands before one`, () => {
      assert.ok(examples.length > 0);
      assert.equal(examples.length, markersOf(document));
    });
    for (const [at, { name, program }] of examples.entries()) {
      test(name, async () => {
        const file = join(folder, `${document.replaceAll(/\W/g, "-")}-${at + 1}.mjs`);
        const endpoints = `endpoints: ${JSON.stringify(cluster.endpoints)}`;
        writeFileSync(file, program.replaceAll(/endpoints: \[[^\]]*\]/g, endpoints));
        const end = await run(file, { HOLDFAST_ENDPOINTS: cluster.endpoints.join(",") });
        assert.equal(end.code, 0, end.output);
      });
    }
  }
});
