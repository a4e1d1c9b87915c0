import { BUILDER_DEPLOYMENT, OPERATOR_DEPLOYMENT } from '../../../api/names.ts';
import type { Random } from '../world/random.ts';
import type { ShaleProcess, World } from '../world/world.ts';
import type { Cast, FaultKind } from './fault.ts';

interface Victim {
  readonly subject: string;
  find(world: World): readonly ShaleProcess[];
}

function drawVictim(random: Random, { machines }: Cast): Victim {
  const prefix = random.pick([OPERATOR_DEPLOYMENT, BUILDER_DEPLOYMENT, 'shale-daemon']);
  const node = random.pick(machines);
  if (prefix !== 'shale-daemon') return { subject: prefix, find: (world) => world.processes(prefix) };
  return { subject: `daemon of ${node}`, find: (world) => world.processes(prefix, node) };
}

/** SIGKILL, as by the kernel that is out of memory. */
const kill: FaultKind = {
  weight: 4,
  draw(random, cast) {
    const { subject, find } = drawVictim(random, cast);
    return {
      kind: 'kill',
      subject,
      begin: async ({ world }) => {
        const found = find(world);
        for (const { pid } of found) {
          world.expectEnd(pid);
          signalIfThere(pid, 'SIGKILL');
        }
        return found.length === 0 ? 'does not run' : undefined;
      },
    };
  },
};

/** SIGSTOP, as of a machine that swaps or a virtual machine that migrates: others take its leases meanwhile. */
const pause: FaultKind = {
  weight: 2,
  draw(random, cast) {
    const { subject, find } = drawVictim(random, cast);
    const lastsMs = random.between(500, cast.longestPauseMs);
    let paused: readonly ShaleProcess[] = [];
    return {
      kind: 'pause',
      subject,
      details: `for ${lastsMs} ms`,
      lastsMs,
      begin: async ({ world }) => {
        paused = find(world);
        for (const { pid } of paused) signalIfThere(pid, 'SIGSTOP');
        return paused.length === 0 ? 'does not run' : undefined;
      },
      end: async () => {
        for (const { pid } of paused) signalIfThere(pid, 'SIGCONT');
      },
    };
  },
};

/** The wall clock of one program is set, and set right again. */
const clockJump: FaultKind = {
  weight: 1,
  draw(random) {
    const program = random.pick(['operator', BUILDER_DEPLOYMENT, 'daemon']);
    const seconds = random.pick([-3600, -600, -60, -5, 5, 60, 600, 3600]);
    const lastsMs = random.between(2_000, 15_000);
    return {
      kind: 'clock jump',
      subject: program,
      details: `by ${seconds} s for ${lastsMs} ms`,
      lastsMs,
      begin: async ({ world }) => {
        await world.setClock(program, seconds * 1000);
        return undefined;
      },
      end: ({ world }) => world.setClock(program, 0),
    };
  },
};

/** @returns whether the process is still there to be signalled. */
export function signalIfThere(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    return false;
  }
}

export const processFaults: readonly FaultKind[] = [kill, pause, clockJump];
