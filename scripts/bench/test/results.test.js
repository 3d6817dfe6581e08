import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { goalLines } from "../goals.js";
import { pictureOf } from "../picture.js";
import { Figures } from "../results.js";
import { numberText, tableOf } from "../table.js";

/** @type {Readonly<Record<string, import("../results.js").Column>>} */
const columns = {
  clients256: { title: "cycles/s at 256", better: "more", digits: 0 },
  acquireP50Ms: { title: "p50 ms", better: "less", digits: 2 },
  trials: { title: "trials", better: null, digits: 0 },
};

function example() {
  const figures = new Figures("a part", columns);
  for (const [round, factor] of [
    [1, 1],
    [2, 10],
    [3, 2],
  ]) {
    const ours = { clients256: 20_000 * factor, acquireP50Ms: 1 / factor, trials: 3 };
    figures.add({ id: "holdfast", title: "Holdfast" }, round, ours);
    const theirs = { clients256: 1_000 * factor, acquireP50Ms: 4 / factor, trials: 3 };
    figures.add({ id: "etcd-put", title: "etcd <put>" }, round, theirs);
  }
  figures.add({ id: "floor", title: "floor" }, 1, { acquireP50Ms: 0.5 });
  return figures.result();
}

describe("results", () => {
  it("tell how many times better the first row is, whether more is better or less", () => {
    const { rows } = example();
    assert.equal(rows.holdfast?.figures.clients256?.ratio, null);
    assert.equal(rows["etcd-put"]?.figures.clients256?.median, 2_000);
    assert.equal(rows["etcd-put"]?.figures.clients256?.ratio, 20);
    assert.equal(rows["etcd-put"]?.figures.acquireP50Ms?.ratio, 4);
    assert.equal(rows["etcd-put"]?.figures.trials?.ratio, null);
    assert.equal(rows.floor?.figures.acquireP50Ms?.ratio, 0.5);
    assert.equal(rows.floor?.figures.clients256, undefined);
  });

  it("have no ratio to what was not measured", () => {
    const figures = new Figures("a part", columns);
    figures.add({ id: "a", title: "a" }, 1, { clients256: 0 });
    figures.add({ id: "b", title: "b" }, 1, { clients256: 0, acquireP50Ms: 1 });
    const { rows } = figures.result();
    assert.equal(rows.b?.figures.clients256?.ratio, null);
    assert.equal(rows.b?.figures.acquireP50Ms?.ratio, null);
  });

  it("refuse a column that the table lacks", () => {
    assert.throws(() => new Figures("a part", columns).add({ id: "a", title: "a" }, 1, { odd: 1 }), /no column odd/);
  });

  it("are a table with aligned columns", () => {
    assert.equal(
      tableOf(example()),
      [
        "a part",
        "            cycles/s at 256        p50 ms  trials",
        "Holdfast             40,000          0.50       3",
        "etcd <put>      2,000 (20x)   2.00 (4.0x)       3",
        "floor                     -  0.50 (0.50x)       -",
        "",
      ].join("\n"),
    );
  });

  it("are a picture with a bar for each row, the longest for the most", () => {
    const picture = pictureOf(example());
    const widths = [...picture.matchAll(/<rect x="250" y="\d+" width="(\d+)"/g)].map((match) => Number(match[1]));
    assert.deepEqual(widths, [390, 20]);
    assert.match(picture, />40,000</);
    assert.match(picture, />etcd &lt;put&gt;</);
    assert.doesNotMatch(picture, />floor</);
  });

  it("are held against the goals that they speak of", () => {
    assert.deepEqual(goalLines({ cycles: example() }), [
      "met     cycles/s at 256 clients by those of etcd: 20, wanted at least 15",
      "missed  acquire p50 at 1 client by the floor: 2, wanted at most 1.3",
    ]);
    assert.deepEqual(goalLines({}), []);
  });
});

describe("numbers for people", () => {
  it("have commas between thousands, before the point only", () => {
    assert.equal(numberText(1_234_567.891, 0), "1,234,568");
    assert.equal(numberText(1_234.56789, 4), "1,234.5679");
    assert.equal(numberText(999, 1), "999.0");
    assert.equal(numberText(-1_000, 0), "-1,000");
    assert.equal(numberText(Number.NaN, 2), "?");
  });
});
