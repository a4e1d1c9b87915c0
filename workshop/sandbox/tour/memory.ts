import { readdir, readFile } from 'node:fs/promises';

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
  const look = async () => {
    peak = Math.max(peak, residentBytes(await readProcesses(), roots));
  };
  const timer = setInterval(() => void look(), intervalMs);
  timer.unref();
  return {
    stop() {
      clearInterval(timer);
      return peak;
    },
  };
}

export interface ProcessMemory {
  readonly pid: number;
  readonly parent: number;
  readonly resident: number;
}

/** @returns the resident bytes of the roots and all that descend from them. */
export function residentBytes(processes: readonly ProcessMemory[], roots: readonly number[]): number {
  const counted = new Set(roots);
  // A child can stand before its parent in the list, so it is gone through until nothing is added.
  for (let before = -1; before !== counted.size; ) {
    before = counted.size;
    for (const { pid, parent } of processes) if (counted.has(parent)) counted.add(pid);
  }
  return processes.filter(({ pid }) => counted.has(pid)).reduce((sum, { resident }) => sum + resident, 0);
}

/** proc_pid_status(5) */
async function readProcesses(): Promise<ProcessMemory[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const all = await Promise.all(
    pids.map(async (pid): Promise<ProcessMemory[]> => {
      // A process that ended meanwhile holds no memory.
      const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
      const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0);
      return status === ''
        ? []
        : [{ pid: Number(pid), parent: field('PPid'), resident: field('VmRSS') * 1024 }];
    }),
  );
  return all.flat();
}
