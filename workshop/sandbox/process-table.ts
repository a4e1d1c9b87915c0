import { closeSync, openSync, readdirSync, readSync } from 'node:fs';

/** A process, as the kernel's table of processes has it. */
export interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
  /** Bytes; shared pages count for each process. */
  readonly resident: number;
}

const PARENT = /^PPid:\s+(\d+)/m;
const RESIDENT = /^VmRSS:\s+(\d+)/m;

/**
 * Reads every process at once: procfs answers from memory, and a promise for each of its files takes ten times as long,
 * which is noticed where somebody looks several times a second.
 *
 * @returns the processes that exist now (proc_pid_status(5)).
 */
export function readProcessTable(): readonly ProcessEntry[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => {
    const status = readOfProcess(pid, 'status')?.toString();
    if (status === undefined) return [];
    const field = (line: RegExp) => Number(line.exec(status)?.[1] ?? 0);
    return [{ pid: Number(pid), parent: field(PARENT), resident: field(RESIDENT) * 1024 }];
  });
}

/** Two pages hold most of what a process has there. */
let readInto = Buffer.allocUnsafeSlow(8192);

/**
 * By a buffer that is used again and again: readFileSync takes 64 KiB for each file of procfs, because these have no
 * size, and after some looks at all processes the whole heap is marked to get that back.
 *
 * @returns a file that a process has under /proc; undefined once the process has ended.
 */
export function readOfProcess(
  pid: number | string,
  file: 'cmdline' | 'environ' | 'status',
): Buffer | undefined {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(`/proc/${pid}/${file}`, 'r');
    let length = 0;
    for (;;) {
      const read = readSync(descriptor, readInto, length, readInto.length - length, null);
      if (read === 0) return Buffer.from(readInto.subarray(0, length));
      length += read;
      if (length === readInto.length) readInto = Buffer.concat([readInto], 2 * length);
    }
  } catch {
    return undefined;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** @returns the roots and all that descend from them. */
export function withDescendants(
  processes: readonly Pick<ProcessEntry, 'pid' | 'parent'>[],
  roots: readonly number[],
): ReadonlySet<number> {
  const found = new Set(roots);
  // A child can stand before its parent in the table, so it is gone through until nothing is added.
  for (let before = -1; before !== found.size; ) {
    before = found.size;
    for (const { pid, parent } of processes) if (found.has(parent)) found.add(pid);
  }
  return found;
}

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
