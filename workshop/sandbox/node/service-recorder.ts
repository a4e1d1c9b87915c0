import { appendFile, readdir, readFile, readlink } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { resolveInRoot } from '../../../daemon/files/resolve-in-root.ts';
import { ignoreMissing } from '../../../daemon/files/tree-entry.ts';
import type { ServiceManager, ServiceState } from '../../../daemon/host/host.ts';
import { assertUnitName, ServiceError } from '../../../daemon/host/systemctl.ts';
import { type DirectoryNodeLayout, readDirectoryMachine } from './directory-host.ts';

/** A line of `services.jsonl`. */
export interface ServiceRecord {
  readonly time: string;
  readonly action: 'daemon-reload' | 'reload' | 'restart' | 'start' | 'stop';
  /** The unit; the fragment for `tmpfiles`; empty for `daemon-reload`. */
  readonly unit: string;
  readonly bootID: string;
}

/** What `service-faults.json` may ask for, to try out what a node does then: a unit that fails or never gets ready. */
const FaultsSchema = z.record(z.string(), z.enum(['fail', 'hang']));

/**
 * In the order in which systemd looks (systemd.unit(5), "Unit File Load Path"), as far as a directory node has them.
 */
const UNIT_DIRECTORIES = [
  '/etc/systemd/system',
  '/run/systemd/system',
  '/usr/local/lib/systemd/system',
  '/usr/lib/systemd/system',
];

/** A unit of a fault that hangs does so until the caller gives up, but not for ever. */
const HANG_MS = 3_600_000;

/**
 * The service manager of a directory node, which has no init: it writes down what it is asked for, and refuses what
 * systemd would refuse: a unit that doesn't exist or is masked, a reload of one without ExecReload.
 *
 * @param now the wall clock, for the records.
 */
export function serviceRecorder(
  layout: DirectoryNodeLayout,
  now: () => Date = () => new Date(),
): ServiceManager {
  async function record(action: ServiceRecord['action'], unit: string): Promise<void> {
    const { bootID } = await readDirectoryMachine(layout);
    const line: ServiceRecord = { time: now().toISOString(), action, unit, bootID };
    await appendFile(layout.services, `${JSON.stringify(line)}\n`);
  }

  async function act(
    action: 'reload' | 'restart' | 'start',
    unit: string,
    signal: AbortSignal,
  ): Promise<void> {
    signal.throwIfAborted();
    assertUnitName(action, unit);
    const unitFile = await findUnit(layout.root, unit);
    if (unitFile === undefined) throw new ServiceError(action, unit, 'unit not found');
    if (unitFile.masked) throw new ServiceError(action, unit, 'unit is masked');
    if (action === 'reload' && !/^(ExecReload=.|Type=notify-reload)/m.test(unitFile.text)) {
      throw new ServiceError(action, unit, 'job type reload is not applicable: the unit has no ExecReload');
    }
    await record(action, unit);
    const fault = (await readFaults(layout))[unit];
    if (fault === 'hang') await delay(HANG_MS, undefined, { signal });
    if (fault === 'fail') throw new ServiceError(action, unit, 'unit entered failed state');
  }

  return {
    daemonReload: async (signal) => {
      signal.throwIfAborted();
      await record('daemon-reload', '');
    },
    reload: (unit, signal) => act('reload', unit, signal),
    restart: (unit, signal) => act('restart', unit, signal),
    start: (unit, signal) => act('start', unit, signal),
    stop: async (unit, signal) => {
      signal.throwIfAborted();
      assertUnitName('stop', unit);
      await record('stop', unit);
    },
    state: (unit) => stateOf(layout, unit),
    isLoaded: async (unit) => (await findUnit(layout.root, unit))?.masked === false,
    // Nothing runs that could have said anything.
    lastLines: async () => '',
  };
}

/** @returns what was recorded, oldest first. */
export async function readServiceRecords({
  services,
}: DirectoryNodeLayout): Promise<readonly ServiceRecord[]> {
  const text = (await readFile(services, 'utf8').catch(ignoreMissing)) ?? '';
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as ServiceRecord);
}

async function stateOf(layout: DirectoryNodeLayout, unit: string): Promise<ServiceState> {
  assertUnitName('state', unit);
  const unitFile = await findUnit(layout.root, unit);
  const isLoaded = unitFile?.masked === false;
  const { bootID } = await readDirectoryMachine(layout);
  const records = await readServiceRecords(layout);
  const last = records.findLast((line) => line.unit === unit && line.bootID === bootID);
  // What was started runs on without its unit file.
  if (last?.action === 'stop' || (last === undefined && !isLoaded)) return 'inactive';
  if (last !== undefined && (await readFaults(layout))[unit] === 'fail') return 'failed';
  return 'active';
}

async function readFaults({ serviceFaults }: DirectoryNodeLayout): Promise<z.infer<typeof FaultsSchema>> {
  const text = await readFile(serviceFaults, 'utf8').catch(ignoreMissing);
  return text === undefined ? {} : FaultsSchema.parse(JSON.parse(text));
}

/**
 * Finds a unit with its drop-ins; an instance without a file of its own is its template's (`a@b.service`:
 * `a@.service`).
 */
async function findUnit(
  root: string,
  unit: string,
): Promise<{ readonly masked: boolean; readonly text: string } | undefined> {
  const template = unit.replace(/@[^.]+(?=\.[a-z]+$)/, '@');
  for (const name of new Set([unit, template])) {
    for (const directory of UNIT_DIRECTORIES) {
      const place = await resolveInRoot(root, `${directory}/${name}`);
      if (place === undefined) continue;
      const target = await readlink(place).catch(() => undefined);
      if (target === '/dev/null') return { masked: true, text: '' };
      const text = await readUnitFile(root, `${directory}/${name}`);
      if (text !== undefined) return { masked: false, text: text + (await readDropIns(root, name)) };
    }
  }
  return undefined;
}

/** Unit files are often links to others (aliases), whose targets are those of the node's root. */
async function readUnitFile(root: string, name: string): Promise<string | undefined> {
  const place = await resolveInRoot(root, name);
  if (place === undefined) return undefined;
  const target = await readlink(place).catch(() => undefined);
  if (target === undefined) return readFile(place, 'utf8').catch(ignoreMissing);
  const resolved = await resolveInRoot(root, path.posix.resolve(path.posix.dirname(name), target));
  return resolved === undefined ? undefined : readFile(resolved, 'utf8').catch(ignoreMissing);
}

async function readDropIns(root: string, name: string): Promise<string> {
  const texts: string[] = [];
  for (const directory of UNIT_DIRECTORIES) {
    const place = await resolveInRoot(root, `${directory}/${name}.d/x`);
    if (place === undefined) continue;
    for (const file of (await readdir(path.dirname(place)).catch(ignoreMissing)) ?? []) {
      if (file.endsWith('.conf'))
        texts.push((await readUnitFile(root, `${directory}/${name}.d/${file}`)) ?? '');
    }
  }
  return `\n${texts.join('\n')}`;
}
