/**
 * Golden conversations: test/scenarios/*.txt hold blocks of commands, `----`, and what the nodes did. With UPDATE_GOLDEN=1 the recordings
 * are renewed; the reviewer reads the difference.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { Conversation } from "./support/conversation.js";

const folder = new URL("../../test/scenarios/", import.meta.url);
const mark = "----";

for (const name of readdirSync(folder)
  .filter((each) => each.endsWith(".txt"))
  .sort()) {
  test(`conversation ${name}`, () => {
    const file = new URL(name, folder);
    const recorded = readFileSync(file, "utf8");
    const replayed = replay(recorded);
    if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(file, replayed);
    else assert.equal(replayed, recorded);
  });
}

test("there are conversations", () => {
  assert.ok(readdirSync(folder).length >= 15);
});

/** The whole file anew: comments and commands as they are, recordings as they come out now. */
function replay(text: string): string {
  const conversation = new Conversation();
  const blocks = text.trimEnd().split(/\n{2,}/);
  return `${blocks.map((block) => replayBlock(conversation, block.split("\n"))).join("\n\n")}\n`;
}

function replayBlock(conversation: Conversation, lines: readonly string[]): string {
  const at = lines.indexOf(mark);
  const commands = at === -1 ? lines : lines.slice(0, at);
  if (commands.every((line) => line.startsWith("#"))) return commands.join("\n");
  return [...commands, mark, ...conversation.run(commands)].join("\n");
}
