/** What a report and a picture look like. Read the difference, and the picture itself, before it is committed. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { reportMarkdown } from "../../src/report/report.js";
import { timelineSvg } from "../../src/report/timeline.js";
import { sampleEvents, sampleRun } from "./sample-run.js";

function assertGolden(name: string, text: string): void {
  const file = fileURLToPath(new URL(`../../../test/report/golden/${name}`, import.meta.url));
  if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(file, text);
  assert.equal(
    text,
    readFileSync(file, "utf8"),
    `${name} differs: npm run test:golden -- --rewrite, and read the diff`,
  );
}

describe("a run's report", () => {
  it("is one page", () => {
    assertGolden("report.md", reportMarkdown(sampleRun, sampleEvents));
  });

  it("has a picture", () => {
    assertGolden("timeline.svg", timelineSvg(sampleRun, sampleEvents));
  });

  it("is short when there is little to say", () => {
    const { verdict } = sampleRun;
    const quiet = {
      ...sampleRun,
      log: { toldBy: null, snapshots: [] },
      faults: [],
      expectations: [],
      seed: null,
      isPassed: true,
    };
    const counts = { ...verdict.counts, found: verdict.counts.excluded, excluded: verdict.counts.found };
    assertGolden("quiet.md", reportMarkdown({ ...quiet, verdict: { violations: [], counts } }, []));
  });
});
