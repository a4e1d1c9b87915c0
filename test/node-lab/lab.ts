import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { CACHE } from '../../workshop/sandbox/layout.ts';
import { missingForSystemdNodes } from '../../workshop/sandbox/requirements.ts';
import { bootMachine, type SystemdMachine } from '../../workshop/sandbox/systemd-node/machine.ts';
import { ensureRootfs } from '../../workshop/sandbox/systemd-node/rootfs.ts';
import {
  ensureRootfsArchive,
  type RootfsArchive,
} from '../../workshop/sandbox/systemd-node/rootfs-archive.ts';
import { deadline } from '../fixtures/patience.ts';

/** Why the lab can't run on this machine; nothing when it can. */
export const noLab: string | undefined = missingForSystemdNodes(
  process.getuid?.(),
  process.env['PATH'] ?? '',
);
if (noLab !== undefined) process.stderr.write(`skipped: ${noLab}\n`);

/** Time for the hook that builds the root file system the first time. */
export const FIRST_TIME_MS = 600_000;

/** @returns Debian's root file system with systemd and ostree. */
export function labRootfs(): Promise<string> {
  return ensureRootfs(CACHE, deadline(FIRST_TIME_MS), onBuild);
}

/** @returns the same as the layer of an image. */
export function labArchive(): Promise<RootfsArchive> {
  return ensureRootfsArchive(CACHE, deadline(FIRST_TIME_MS), onBuild);
}

function onBuild(): void {
  process.stderr.write('building a Debian root file system for the lab; this takes a minute, once\n');
}

export interface LabMachine extends SystemdMachine {
  /** Runs a shell's command line inside and returns what it printed, without the last line's end. */
  sh(line: string): Promise<string>;
  /** Writes a unit, and has systemd read it. */
  addUnit(name: string, text: string): Promise<void>;
  /** @returns one property of a unit as systemd has it. */
  property(unit: string, name: string): Promise<string>;
}

/** @returns a machine whose root is Debian's; what is written to it is gone with it. */
export async function bootLabMachine(): Promise<LabMachine> {
  const directory = await mkdtemp(path.join(tmpdir(), 'shale-lab-'));
  const signal = deadline(120_000);
  const machine = await bootMachine({
    root: await labRootfs(),
    nspawnArguments: ['--volatile=overlay'],
    consoleFile: path.join(directory, 'console'),
    signal,
  });
  const sh = async (line: string) => {
    return (await machine.run(['sh', '-c', line], { timeoutMs: 30_000, signal })).trim();
  };
  return {
    ...machine,
    sh,
    addUnit: async (name, text) => {
      await writeFile(path.join(machine.root, 'etc/systemd/system', name), text);
      await sh('systemctl daemon-reload');
    },
    property: (unit, name) => sh(`systemctl show --property=${name} --value ${unit}`),
    [Symbol.asyncDispose]: async () => {
      await machine.kill();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
