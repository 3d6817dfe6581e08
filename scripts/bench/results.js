/** What a part has measured: a table of figures, each the summary of its rounds, with ratios of ours to the others'. */
import { ratioOf, summaryOf } from "./statistics.js";

/**
 * @typedef {import("./statistics.js").Summary} Summary
 * @typedef {{ title: string, better: "more" | "less" | null, digits: number }} Column With its unit; null: no ratio means anything; how many
 * digits after the point are shown.
 * @typedef {Summary & { ratio: number | null }} Figure `ratio`: how many times better the first row is; null where that means nothing.
 * @typedef {{ title: string, figures: Record<string, Figure> }} Row
 * @typedef {{ title: string, columns: Record<string, Column>, rows: Record<string, Row> }} Result No lists, so that the JSON of it reads well.
 */

export class Figures {
  /** @type {Map<string, { title: string, columns: Map<string, Map<number, number>> }>} */
  #rows = new Map();

  /**
   * @param {string} title
   * @param {Readonly<Record<string, Column>>} columns
   */
  constructor(title, columns) {
    this.title = title;
    this.columns = columns;
  }

  /**
   * The first row that is added is the one that ratios speak of.
   * @param {{ id: string, title: string }} row
   * @param {number} round From 1 on; a row's second value of one round takes the place of the first.
   * @param {Readonly<Record<string, number>>} values By column.
   */
  add({ id, title }, round, values) {
    const row = this.#rows.get(id) ?? { title, columns: new Map() };
    this.#rows.set(id, row);
    for (const [column, value] of Object.entries(values)) {
      if (!(column in this.columns)) throw new Error(`no column ${column} in "${this.title}"`);
      const rounds = row.columns.get(column) ?? new Map();
      row.columns.set(column, rounds.set(round, value));
    }
  }

  /** @returns {Result} */
  result() {
    const summaries = [...this.#rows].map(([id, { title, columns }]) => {
      const figures = [...columns].map(([column, rounds]) => /** @type {const} */ ([column, summaryOf(rounds)]));
      return { id, title, figures: new Map(figures) };
    });
    const base = summaries[0]?.figures ?? new Map();
    const rows = summaries.map(({ id, title, figures }, at) => {
      const withRatios = [...figures].map(([column, summary]) => {
        const ours = at === 0 ? undefined : base.get(column);
        return [column, { ...summary, ratio: ours === undefined ? null : this.#ratio(column, ours, summary) }];
      });
      return [id, { title, figures: Object.fromEntries(withRatios) }];
    });
    return { title: this.title, columns: this.columns, rows: Object.fromEntries(rows) };
  }

  /**
   * @param {string} column
   * @param {Summary} ours
   * @param {Summary} theirs
   */
  #ratio(column, ours, theirs) {
    const { better } = this.columns[column];
    if (better === null) return null;
    const ratio = better === "more" ? ratioOf(ours, theirs) : ratioOf(theirs, ours);
    return Number.isFinite(ratio) ? ratio : null;
  }
}
