/** The process that started `holdfast dev` (npm, a script, a shell): when it ends, the cluster does. */

const lookMs = 500;

/** Calls `stop` once when this process's parent has ended: it has another one then. */
export function watchParent(stop: () => void): void {
  const parent = process.ppid;
  if (parent <= 1) return;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    stop();
  }, lookMs);
  timer.unref();
}
