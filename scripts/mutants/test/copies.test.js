import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import os from "node:os";
import path from "node:path";
import { it } from "node:test";
import { Copies } from "../copies.js";

it("a copy has the files of the tree as they are now, and its own packages", () => {
  const top = realpathSync(mkdtempSync(path.join(os.tmpdir(), "holdfast test-")));
  const copies = new Copies(top);
  try {
    const files = {
      ".gitignore": "dist/\nnode_modules/\n",
      "packages/raft/package.json": '{ "name": "@holdfast/raft" }',
      "packages/raft/src/a.ts": "committed",
      "packages/raft/dist/a.js": "built",
      "node_modules/other/index.js": "",
      "node_modules/@holdfast/raft/index.js": "",
    };
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(path.dirname(path.join(top, file)), { recursive: true });
      writeFileSync(path.join(top, file), text);
    }
    spawnSync("git", ["init", "--quiet"], { cwd: top });
    spawnSync("git", ["add", "--all"], { cwd: top });
    writeFileSync(path.join(top, "packages/raft/src/a.ts"), "changed");
    writeFileSync(path.join(top, "packages/raft/src/new.ts"), "new");

    const copy = copies.fresh();
    assert.equal(readFileSync(path.join(copy, "packages/raft/src/a.ts"), "utf8"), "changed");
    assert.equal(readFileSync(path.join(copy, "packages/raft/src/new.ts"), "utf8"), "new");
    assert.equal(existsSync(path.join(copy, "packages/raft/dist")), false);
    assert.equal(readlinkSync(path.join(copy, "node_modules/other")), path.join(top, "node_modules/other"));
    assert.equal(realpathSync(path.join(copy, "node_modules/@holdfast/raft")), path.join(copy, "packages/raft"));

    const other = copies.again(copy);
    assert.equal(realpathSync(path.join(other, "node_modules/@holdfast/raft")), path.join(other, "packages/raft"));
  } finally {
    copies.remove();
    rmSync(top, { recursive: true });
  }
  assert.equal(existsSync(copies.folder), false);
});
