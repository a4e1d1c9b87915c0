import path from 'node:path';
import {
  isRetryOf,
  type PowerOffRequest,
  type RebootRequest,
  type RepairRequest,
  type RetryRequest,
} from '../api/annotation-requests.ts';
import type { MachineConfigNodeSpec, UpdateRecord } from '../api/machine-config-node.ts';
import { nodePaths } from '../api/names.ts';
import { present } from '../api/present.ts';
import { readOriginals } from './content/write/originals.ts';
import { readMark } from './host/boot-watchdog/watchdog-files.ts';
import { certificatesOf } from './host/certificates/deliver.ts';
import type { NodePorts } from './host/host.ts';
import { readArmedBoot } from './next-boot/armed-boot.ts';
import { argumentsOfCommandLine } from './os/ostree/kernel-arguments.ts';
import { type Current, readCurrent } from './records/current.ts';
import type { Journal, JournalEntry } from './records/journal.ts';
import { readLastRepair } from './records/last-repair.ts';
import { readLastUpdate } from './records/last-update.ts';
import { rebootRequestedBy } from './steps/requested-reboot.ts';
import type { DaemonObservation, Observation } from './steps/step.ts';
import type { Memory } from './steps/step-context.ts';

/** What the node's MachineConfigNode asks of it. */
interface Requested {
  readonly spec: MachineConfigNodeSpec;
  /** Of the object that has this spec. */
  readonly generation?: number | undefined;
  /** Whether or not it was carried out already. */
  readonly repair: RepairRequest | undefined;
  /** Whether or not it is about the last update. */
  readonly retry: RetryRequest | undefined;
  /** Whether or not the node has rebooted since. */
  readonly reboot: RebootRequest | undefined;
  readonly powerOff: PowerOffRequest | undefined;
}

/**
 * Looks at everything that the next step depends on.
 *
 * @throws RecordError when a record can't be read, and what the image tool throws.
 */
export async function observe(
  { host, backend }: NodePorts,
  journal: Journal,
  { spec, generation, repair, retry, reboot, powerOff }: Requested,
  memory: Readonly<Memory>,
  signal: AbortSignal,
): Promise<Observation> {
  const { booted, staged } = await backend.status(signal);
  const lastUpdate = await readLastUpdate(host.root);
  const lastRepair = await readLastRepair(host.root);
  const current = await readCurrent(host.root);
  const bootID = await host.bootID();
  const since = lastUpdate?.bootIDAfter === bootID ? lastUpdate.startedAt : undefined;
  const requests = { request: reboot, sentinel: spec.rebootSentinel };
  return {
    spec,
    ...present({ generation }),
    current,
    journal: await updateUnderWay(host.root, await journal.read(), current),
    bootedImage: booted.image,
    bootedDeployment: booted.id,
    bootID,
    watchdog: await readMark(host.root),
    ...present({ nextDeployment: staged?.id, armed: await readArmedBoot(host.root) }),
    prepared: memory.prepared,
    certificates: await certificatesOf(host.root),
    withheld: memory.withheld,
    repair: repair?.id === lastRepair?.id ? undefined : repair,
    retry: retry && lastUpdate && isRetryOf(retry, lastUpdate) ? retry : undefined,
    rebootRequested: await rebootRequestedBy(host.root, requests, { bootID, since }),
    powerOff: powerOff?.bootID === bootID ? powerOff : undefined,
    failed: failureOf(lastUpdate),
    lastUpdate,
    lastRepair,
    osBackend: await backend.tool(signal),
    kernelArguments: {
      entry: booted.kernelArguments,
      ...present({
        running: argumentsOfCommandLine(await host.kernelCommandLine()),
        added: booted.addedKernelArguments,
        unreadable: booted.unreadableArgumentNotes,
      }),
    },
  };
}

/**
 * A daemon may have been killed after the last file of a config and before the journal had it as written: that config
 * is on the disk, whatever the node's target is by now.
 */
async function updateUnderWay(
  root: string,
  entry: JournalEntry | undefined,
  current: Current | undefined,
): Promise<JournalEntry | undefined> {
  if (entry?.step !== 'applying' || entry.next.mode !== 'Standard' || current?.mode === 'Layered')
    return entry;
  const { config } = await readOriginals(path.join(root, nodePaths.state));
  return config === entry.next.config ? { ...entry, written: true } : entry;
}

function failureOf(last: UpdateRecord | undefined): DaemonObservation['failed'] {
  if (last === undefined || last.result === 'Succeeded') return undefined;
  const { config, image, message = 'the last update failed' } = last;
  const reason = last.reason ?? (last.result === 'RolledBack' ? 'HealthCheckFailed' : 'UpdateFailed');
  return { config, ...present({ image }), why: message, reason };
}
