/**
 * No split-brain keepalive (invariant 17): a leader of term T that acknowledges a keepalive sent at s proves that no leader of a later term
 * had begun its lease clocks before s.
 */
import type { Run } from "../run.js";
import type { Findings } from "../verdict.js";

export function checkKeepalives(run: Run, findings: Findings): void {
  for (const lease of run.leases.leases.values()) {
    for (const acknowledgement of lease.acknowledgements) {
      const { node, term, number, position } = acknowledgement;
      if (node === null || term === null) continue;
      findings.judged("split-brain-keepalive");
      const sent = lease.keepalives.get(number)?.sent ?? null;
      const what = `${node}, leader of term ${term}, acknowledges keepalive ${number} of session ${lease.session}`;
      if (sent !== null && sent.servingTerm > term) {
        const problem = `${what}, sent when a leader of term ${sent.servingTerm} had begun its clocks`;
        findings.violation("split-brain-keepalive", problem, [sent.servingPosition, sent.position, position]);
      } else if (run.leases.hasReceipts && lease.receiptOf(acknowledgement)?.node !== node) {
        findings.violation("split-brain-keepalive", `${what}, which it has not read`, [position]);
      }
    }
  }
}
