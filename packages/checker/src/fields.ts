/** Small checks of values that came from outside, put together into the shape of an event. */

/** Returns what is wrong with the value, with the way to it, or null. */
export type Check = (value: unknown, path: string) => FieldProblem | null;

export interface FieldProblem {
  readonly field: string;
  readonly problem: string;
}

export type Fields = Readonly<Record<string, Check>>;

export const text: Check = (value, field) =>
  typeof value === "string" ? null : { field, problem: "must be a string" };

export const flag: Check = (value, field) => {
  return typeof value === "boolean" ? null : { field, problem: "must be true or false" };
};

export const finite: Check = (value, field) => {
  return Number.isFinite(value) ? null : { field, problem: "must be a finite number" };
};

export const positive: Check = (value, field) => {
  return Number.isFinite(value) && Number(value) > 0 ? null : { field, problem: "must be a finite number above 0" };
};

export const notNegative: Check = (value, field) => {
  return Number.isFinite(value) && Number(value) >= 0 ? null : { field, problem: "must be a finite number from 0 on" };
};

export const whole: Check = (value, field) => {
  return Number.isSafeInteger(value) && Number(value) >= 0
    ? null
    : { field, problem: "must be a whole number from 0 to 2^53 - 1" };
};

export function oneOf(...words: readonly (string | number)[]): Check {
  return (value, field) => {
    return words.some((word) => word === value) ? null : { field, problem: `must be one of ${words.join(", ")}` };
  };
}

export function orNull(check: Check): Check {
  return (value, field) => (value === null ? null : check(value, field));
}

export function listOf(check: Check, countMin: number = 0): Check {
  return (value, field) => {
    if (!Array.isArray(value)) return { field, problem: "must be a list" };
    if (value.length < countMin) return { field, problem: `must have at least ${countMin} items` };
    for (const [at, item] of value.entries()) {
      const problem = check(item, `${field}[${at}]`);
      if (problem !== null) return problem;
    }
    return null;
  };
}

export function record(fields: Fields): Check {
  return (value, path) => {
    if (!isRecord(value)) return { field: path, problem: "must be an object" };
    for (const [name, check] of Object.entries(fields)) {
      const problem = check(value[name], path === "" ? name : `${path}.${name}`);
      if (problem !== null) return problem;
    }
    return null;
  };
}

/** A closed union, told apart by `kind`. */
export function variants(table: Readonly<Record<string, Fields>>): Check {
  const checks = new Map(Object.entries(table).map(([kind, fields]) => [kind, record(fields)]));
  return (value, path) => {
    if (!isRecord(value)) return { field: path, problem: "must be an object" };
    const { kind } = value;
    const check = typeof kind === "string" ? checks.get(kind) : undefined;
    if (check !== undefined) return check(value, path);
    const field = path === "" ? "kind" : `${path}.kind`;
    return { field, problem: `must be one of ${[...checks.keys()].join(", ")}` };
  };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
