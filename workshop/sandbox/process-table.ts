import { readdirSync, readFileSync } from 'node:fs';

/** A process, as the kernel's table of processes has it. */
export interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
  /** Bytes; shared pages count for each process. */
  readonly resident: number;
}

/**
 * Reads every process at once: procfs answers from memory, and a promise for each of its files takes ten times as long, which
 * is noticed where somebody looks several times a second.
 *
 * @returns the processes that exist now (proc_pid_status(5)).
 */
export function readProcessTable(): readonly ProcessEntry[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => {
    const status = readOfProcess(pid, 'status')?.toString();
    if (status === undefined) return [];
    const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0);
    return [{ pid: Number(pid), parent: field('PPid'), resident: field('VmRSS') * 1024 }];
  });
}

/** @returns a file that a process has under /proc; undefined once the process has ended. */
export function readOfProcess(
  pid: number | string,
  file: 'cmdline' | 'environ' | 'status',
): Buffer | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`);
  } catch {
    return undefined;
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
