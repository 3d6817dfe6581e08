/**
 * What others would install: each package is packed, looked at by publint and attw, put into an empty project and compiled there by a strict
 * consumer, under TypeScript 5.9, 6 and 7. `npm run test:tools` runs it.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { mayMiss } from "../fence/drivers.js";

const top = fileURLToPath(new URL("../../../", import.meta.url));
const tools = join(top, "test/consumer/node_modules");
/** All that a client or a guard is made of. */
const packages = ["client", "fence", "lock", "raft", "wire"] as const;
/** Third-party packages at run time, by themselves or by packages of ours. */
const outside = ["msgpackr", "ws"];
const limitMs = 120_000;

const skip =
  mayMiss() && !existsSync(join(tools, "publint")) ? "its tools are not installed: run `npm run test:tools`" : false;

interface Manifest {
  readonly name: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
}

/** Resolves with what it prints; rejects with that when it fails. */
function run(file: string, args: readonly string[], cwd: string): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      [file, ...args],
      { cwd, timeout: limitMs, maxBuffer: 2 ** 24 },
      (error, stdout, stderr) => {
        if (error === null) resolve(stdout);
        else reject(new Error(`${file} ${args.join(" ")}\n${stdout}${stderr}`, { cause: error }));
      },
    );
  });
}

function pack(into: string): Promise<unknown> {
  const words = packages.flatMap((name) => ["-w", `packages/${name}`]);
  return new Promise((resolve, reject) => {
    const args = ["pack", ...words, "--pack-destination", into];
    execFile("npm", args, { cwd: top, timeout: limitMs, maxBuffer: 2 ** 24 }, (error, stdout, stderr) => {
      if (error === null) resolve(null);
      else reject(new Error(stdout + stderr, { cause: error }));
    });
  });
}

function unpack(tarball: string, into: string): Promise<unknown> {
  mkdirSync(into, { recursive: true });
  return new Promise((resolve, reject) => {
    execFile("tar", ["-xzf", tarball, "-C", into, "--strip-components=1"], (error) =>
      error === null ? resolve(null) : reject(error),
    );
  });
}

// A 11: types that no resolution of modules reaches, and no release that mends them.
describe("the packed packages", { skip }, () => {
  let root = "";
  const tarballOf = (name: string): string => join(root, `holdfast-${name}-0.1.0.tgz`);
  const installed = (name: string): string => join(root, "project/node_modules", name);

  before(async () => {
    root = mkdtempSync(join(tmpdir(), "holdfast-packed-"));
    await pack(root);
    for (const name of packages) await unpack(tarballOf(name), installed(`@holdfast/${name}`));
    // Those of others come as they are installed here: a test asks no registry.
    mkdirSync(installed("@types"));
    for (const name of [...outside, "@types/node"]) symlinkSync(join(top, "node_modules", name), installed(name));
    writeFileSync(join(root, "project/package.json"), JSON.stringify({ name: "project", type: "module" }));
    for (const file of ["types.ts", "browser-types.ts"]) {
      copyFileSync(join(top, "test/consumer", file), join(root, "project", file));
    }
  });

  after(() => {
    if (root !== "") rmSync(root, { recursive: true, force: true });
  });

  for (const name of packages) {
    test(`${name}: publint and attw find nothing`, async () => {
      await run(join(tools, "publint/src/cli.js"), ["run", tarballOf(name), "--strict"], root);
      const attw = join(tools, "@arethetypeswrong/cli/dist/index.js");
      await run(attw, [tarballOf(name), "--profile", "esm-only", "--no-color"], root);
    });
  }

  test("the client needs two packages of others at most, by whatever way", () => {
    const needed = new Set<string>();
    const queue: string[] = ["@holdfast/client"];
    for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
      if (needed.has(name)) continue;
      needed.add(name);
      if (name.startsWith("@holdfast/")) queue.push(...Object.keys(manifestOf(installed(name)).dependencies ?? {}));
    }
    assert.deepEqual([...needed].filter((name) => !name.startsWith("@holdfast/")).sort(), outside);
  });

  test("the client runs as it is packed", async () => {
    const program = join(root, "project/run.js");
    const lines = [
      'import { connect } from "@holdfast/client";',
      'import "@holdfast/fence";',
      'const error = await connect({ endpoints: "127.0.0.1:1", connectTimeoutMs: 100 }).catch((caught) => caught);',
      'if (error.code !== "unreachable") throw error;',
    ];
    writeFileSync(program, lines.join("\n"));
    await run(program, [], root);
  });

  const compilers = { "5.9": "typescript-5", "6": "typescript-6", "7": null } as const;
  const strict = {
    target: "es2022",
    strict: true,
    noUncheckedIndexedAccess: true,
    exactOptionalPropertyTypes: true,
    noPropertyAccessFromIndexSignature: true,
    verbatimModuleSyntax: true,
    isolatedModules: true,
    skipLibCheck: false,
    noEmit: true,
  };
  const consumers = {
    "in Node": {
      files: ["types.ts"],
      compilerOptions: { module: "nodenext", lib: ["es2023", "esnext.disposable"], types: ["node"] },
    },
    "in a page": {
      files: ["browser-types.ts"],
      compilerOptions: {
        module: "esnext",
        moduleResolution: "bundler",
        lib: ["es2023", "esnext.disposable", "dom", "dom.iterable"],
        types: [],
        customConditions: ["browser"],
      },
    },
  };
  for (const [version, alias] of Object.entries(compilers)) {
    for (const [where, { files, compilerOptions }] of Object.entries(consumers)) {
      test(`a strict consumer ${where} compiles under TypeScript ${version}`, async () => {
        const folder = alias === null ? join(top, "node_modules/typescript") : join(tools, alias);
        const compiler = join(folder, "bin/tsc");
        assert.match(
          await run(compiler, ["--version"], root),
          new RegExp(`^Version ${version.replace(".", "\\.")}\\.`),
        );
        const config = join(root, `project/tsconfig.${version}.${files[0]}.json`);
        writeFileSync(config, JSON.stringify({ files, compilerOptions: { ...strict, ...compilerOptions } }));
        await run(compiler, ["-p", config], join(root, "project"));
      });
    }
  }
});
