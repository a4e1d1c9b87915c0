import { type ProcessEntry, readProcessTable, withDescendants } from '../process-table.ts';

/** How often the processes are looked at: often enough for a pull or a build, seldom enough to cost nothing. */
const INTERVAL_MS = 500;

/** The memory of a process and everything that it started. */
export interface MemoryWatch {
  /** Ends the watch. @returns the most that was resident at one time; bytes. Shared pages count for each process. */
  stop(): number;
}

/** @param roots process ids whose descendants count too. @param intervalMs between two looks. */
export function watchMemory(roots: readonly number[], intervalMs = INTERVAL_MS): MemoryWatch {
  let peak = 0;
  const timer = setInterval(() => {
    peak = Math.max(peak, residentBytes(readProcessTable(), roots));
  }, intervalMs);
  timer.unref();
  return {
    stop() {
      clearInterval(timer);
      return peak;
    },
  };
}

/** @returns the resident bytes of the roots and all that descend from them. */
export function residentBytes(processes: readonly ProcessEntry[], roots: readonly number[]): number {
  const counted = withDescendants(processes, roots);
  return processes.filter(({ pid }) => counted.has(pid)).reduce((sum, { resident }) => sum + resident, 0);
}
