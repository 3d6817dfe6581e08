/** Whether the numbers of faults make sense, and whether faults go together. */
import type { MachineFault } from "./machine.js";
import { MachineError } from "./machine-error.js";

/** A sync that takes longer than any run is a disk that hangs; a minute shows the same. */
const syncDelayMsMax = 60_000;
/** A hundred years: beyond it certificates and calendars break, which nobody wants to know here. */
const wallJumpMsMax = 100 * 365 * 86_400_000;
/** Clocks that are further off than ten times are none. */
const clockRateMin = 0.1;
const clockRateMax = 10;

export function checkFaults(faults: readonly MachineFault[]): void {
  for (const fault of faults) checkFault(fault);
  const rates = faults.flatMap((fault) => (fault.kind === "clockRate" ? [fault.rate] : []));
  if (new Set(rates).size > 1)
    throw bad(`clockRate is ${rates.join(" and ")}: a process has one rate, from its start to its end`);
  if (rates.length > 0 && faults.some(({ kind }) => kind === "wallJump")) {
    throw bad(
      "clockRate and wallJump exclude one another: one fakes all clocks of a process, the other its wall clock alone",
    );
  }
}

function checkFault(fault: MachineFault): void {
  switch (fault.kind) {
    case "slowSync":
      if (!(Number.isSafeInteger(fault.ms) && fault.ms >= 0 && fault.ms <= syncDelayMsMax)) {
        throw bad(`slowSync.ms is ${fault.ms}: it is a whole number from 0 to ${syncDelayMsMax}`);
      }
      return;
    case "wallJump":
      if (!(Math.abs(fault.ms) <= wallJumpMsMax))
        throw bad(`wallJump.ms is ${fault.ms}: it is ${wallJumpMsMax} at most`);
      return;
    case "clockRate":
      if (!(fault.rate >= clockRateMin && fault.rate <= clockRateMax)) {
        throw bad(`clockRate.rate is ${fault.rate}: it is from ${clockRateMin} to ${clockRateMax}`);
      }
      return;
    case "diskFull":
    case "failSync":
    case "frozen":
      return;
  }
}

function bad(message: string): MachineError {
  return new MachineError("bad_argument", message);
}
