/** What a doctor finds, and how it is told. */
import { plain, unpainted } from "../output.js";
import type { Paint, Style } from "../output.js";

/** "warning": works, and should be looked at before it doesn't. */
export type Severity = "ok" | "warning" | "problem";

export interface Finding {
  readonly severity: Severity;
  /** What was looked at; stable. */
  readonly check: string;
  /** Null when it speaks of all, or of none. */
  readonly node: string | null;
  readonly seen: string;
  /** Why it matters, and the command or the page that mends it; null when all is well. */
  readonly why: string | null;
  readonly mend: string | null;
}

/** What is wrong: the same for all severities but "ok". */
export interface Fault {
  readonly node: string | null;
  readonly seen: string;
  readonly why: string;
  readonly mend: string;
}

export const manual = "docs/operations.md";

export function ok(check: string, seen: string): Finding {
  return { severity: "ok", check, node: null, seen, why: null, mend: null };
}

export function warning(check: string, fault: Fault): Finding {
  return { severity: "warning", check, ...fault };
}

export function problem(check: string, fault: Fault): Finding {
  return { severity: "problem", check, ...fault };
}

/** What is wrong; when nothing is, that. */
export function findingsOr(check: string, faults: readonly Finding[], seen: string): readonly Finding[] {
  return faults.length > 0 ? faults : [ok(check, seen)];
}

/** The worst of all. */
export function verdictOf(findings: readonly Finding[]): Severity {
  if (findings.some(({ severity }) => severity === "problem")) return "problem";
  return findings.some(({ severity }) => severity === "warning") ? "warning" : "ok";
}

const order: readonly Severity[] = ["problem", "warning", "ok"];

/** The worst first; else as they were found. */
export function sorted(findings: readonly Finding[]): readonly Finding[] {
  return order.flatMap((severity) => findings.filter((finding) => finding.severity === severity));
}

const styles: Readonly<Record<Severity, Style>> = { ok: "green", warning: "yellow", problem: "red" };

export function findingsText(findings: readonly Finding[], paint: Paint = unpainted): string {
  const width = Math.max(...findings.map(({ check }) => check.length));
  const indent = " ".repeat("problem".length + width + 4);
  const lines = sorted(findings).map(({ severity, check, node, seen, why, mend }) => {
    const space = " ".repeat("problem".length - severity.length);
    const head = `${paint(styles[severity], severity)}${space}  ${check.padEnd(width)}  `;
    const subject = node === null ? "" : `${plain(node)}: `;
    const more = why === null || mend === null ? "" : `\n${indent}${plain(why)}\n${indent}-> ${plain(mend)}`;
    return `${head}${subject}${plain(seen)}${more}\n`;
  });
  return `${lines.join("")}\n${summaryText(findings)}\n`;
}

function summaryText(findings: readonly Finding[]): string {
  const count = (severity: Severity): number => findings.filter((finding) => finding.severity === severity).length;
  const told = (number: number, what: string): string => (number === 1 ? `1 ${what}` : `${number} ${what}s`);
  if (verdictOf(findings) === "ok") return "nothing is wrong";
  return [count("problem"), count("warning")]
    .map((number, at) => (number === 0 ? [] : [told(number, at === 0 ? "problem" : "warning")]))
    .flat()
    .join(", ");
}
