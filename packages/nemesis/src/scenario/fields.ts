/** Reads an object of a file field by field, and notes each problem with its path: all are told at once. */

export interface Problem {
  /** As in `schedule[2].do.who`. */
  readonly path: string;
  readonly problem: string;
}

export class Fields {
  readonly path: string;
  private readonly values: Readonly<Record<string, unknown>>;
  private readonly problems: Problem[];
  private readonly read = new Set<string>();

  constructor(value: unknown, path: string, problems: Problem[]) {
    this.path = path;
    this.problems = problems;
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    this.values = isObject ? (value as Record<string, unknown>) : {};
    if (!isObject) this.note("", "must be an object");
  }

  has(name: string): boolean {
    return this.values[name] !== undefined;
  }

  any(name: string): unknown {
    this.read.add(name);
    return this.values[name];
  }

  text(name: string): string {
    const value = this.any(name);
    if (typeof value === "string" && value !== "") return value;
    this.note(name, "must be a text that isn't empty");
    return "";
  }

  oneOf<const Value>(name: string, values: readonly Value[], fallback?: Value): Value {
    const value = this.any(name);
    if (value === undefined && fallback !== undefined) return fallback;
    const found = values.find((each) => each === value);
    if (found === undefined) this.note(name, `must be one of ${values.join(", ")}`);
    return found ?? (values[0] as Value);
  }

  /** Left out, it is `fallback`; without one it must be there. */
  number(name: string, least: number, most: number, fallback?: number): number {
    const value = this.any(name);
    if (value === undefined && fallback !== undefined) return fallback;
    if (typeof value === "number" && value >= least && value <= most) return value;
    this.note(name, `must be a number from ${least} to ${most}`);
    return least;
  }

  numberOrNull(name: string, least: number, most: number): number | null {
    return this.has(name) ? this.number(name, least, most) : null;
  }

  flag(name: string, fallback: boolean): boolean {
    const value = this.any(name) ?? fallback;
    if (typeof value !== "boolean") this.note(name, "must be true or false");
    return value === true;
  }

  numbers(name: string): Readonly<Record<string, number>> {
    const value = this.any(name) ?? {};
    const isTable = typeof value === "object" && value !== null && !Array.isArray(value);
    const entries = isTable ? Object.entries(value) : [];
    if (!isTable || entries.some(([, each]) => typeof each !== "number")) this.note(name, "must be a table of numbers");
    return Object.fromEntries(entries) as Record<string, number>;
  }

  list<Item>(name: string, least: number, read: (value: unknown, path: string) => Item): readonly Item[] {
    const value = this.any(name);
    if (!Array.isArray(value) || value.length < least) {
      this.note(name, `must be a list of at least ${least}`);
      return [];
    }
    return value.map((each: unknown, at) => read(each, `${this.pathOf(name)}[${at}]`));
  }

  fields(name: string): Fields {
    return new Fields(this.any(name), this.pathOf(name), this.problems);
  }

  /** Another object of the same file. */
  inside(value: unknown, path: string): Fields {
    return new Fields(value, path, this.problems);
  }

  noteAt(path: string, problem: string): void {
    this.problems.push({ path, problem });
  }

  note(name: string, problem: string): void {
    this.problems.push({ path: this.pathOf(name), problem });
  }

  /** When everything known has been read: what else is there is a mistake. */
  noMore(): void {
    for (const name of Object.keys(this.values)) if (!this.read.has(name)) this.note(name, "is no field of this");
  }

  private pathOf(name: string): string {
    if (name === "") return this.path;
    return this.path === "" ? name : `${this.path}.${name}`;
  }
}
