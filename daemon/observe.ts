import path from 'node:path';
import {
  isRetryOf,
  type PowerOffRequest,
  type RebootRequest,
  type RepairRecord,
  type RepairRequest,
  type RetryRequest,
} from '../api/annotation-requests.ts';
import type { MachineConfigNodeSpec, UpdateRecord } from '../api/machine-config-node.ts';
import { nodePaths } from '../api/names.ts';
import type { BootedArguments } from './content/drift/kernel-argument-drift.ts';
import { readOriginals } from './content/write/originals.ts';
import { readMark } from './host/boot-watchdog/watchdog-files.ts';
import { certificatesOf } from './host/certificates/deliver.ts';
import type { NodePorts } from './host/host.ts';
import { readArmedBoot } from './next-boot/armed-boot.ts';
import type { OsStatus } from './os/backend.ts';
import { argumentsOfCommandLine } from './os/ostree/kernel-arguments.ts';
import { type Current, readCurrent } from './records/current.ts';
import type { Journal, JournalEntry } from './records/journal.ts';
import { readLastRepair, readLastUpdate } from './records/last-update.ts';
import { rebootRequestedBy } from './steps/requested-reboot.ts';
import type {
  DaemonObservation,
  Observation,
  ObservedBoot,
  ObservedRecords,
  ObservedRequests,
} from './steps/step.ts';
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
  ports: NodePorts,
  journal: Journal,
  requested: Requested,
  { prepared, withheld }: Readonly<Memory>,
  signal: AbortSignal,
): Promise<Observation> {
  const { host, backend } = ports;
  const { root } = host;
  const deployments = await backend.status(signal);
  const lastUpdate = await readLastUpdate(root);
  const lastRepair = await readLastRepair(root);
  const records = await observeRecords(root, journal, lastUpdate);
  const boot = await observeBoot(host, deployments);
  return {
    ...boot,
    ...records,
    ...(await observeRequests(root, requested, { bootID: boot.bootID, lastUpdate, lastRepair })),
    prepared,
    withheld,
    generation: requested.generation,
    lastUpdate,
    lastRepair,
    osBackend: await backend.tool(signal),
    kernelArguments: await observeArguments(host, deployments),
  };
}

async function observeBoot(host: NodePorts['host'], { booted, staged }: OsStatus): Promise<ObservedBoot> {
  return {
    bootID: await host.bootID(),
    bootedImage: booted.image,
    bootedDeployment: booted.id,
    nextDeployment: staged?.id,
    armed: await readArmedBoot(host.root),
    watchdog: await readMark(host.root),
  };
}

async function observeRecords(
  root: string,
  journal: Journal,
  lastUpdate: UpdateRecord | undefined,
): Promise<ObservedRecords> {
  const current = await readCurrent(root);
  return {
    current,
    journal: await updateUnderWay(root, await journal.read(), current),
    certificates: await certificatesOf(root),
    failed: failureOf(lastUpdate),
  };
}

interface AtRequest {
  readonly bootID: string;
  readonly lastUpdate: UpdateRecord | undefined;
  readonly lastRepair: RepairRecord | undefined;
}

/** @returns the requests that are still to be carried out. */
async function observeRequests(
  root: string,
  { spec, repair, retry, reboot, powerOff }: Requested,
  { bootID, lastUpdate, lastRepair }: AtRequest,
): Promise<ObservedRequests> {
  const since = lastUpdate?.bootIDAfter === bootID ? lastUpdate.startedAt : undefined;
  const requests = { request: reboot, sentinel: spec.rebootSentinel };
  return {
    spec,
    repair: repair?.id === lastRepair?.id ? undefined : repair,
    retry: retry && lastUpdate && isRetryOf(retry, lastUpdate) ? retry : undefined,
    rebootRequested: await rebootRequestedBy(root, requests, { bootID, since }),
    powerOff: powerOff?.bootID === bootID ? powerOff : undefined,
  };
}

async function observeArguments(host: NodePorts['host'], { booted }: OsStatus): Promise<BootedArguments> {
  return {
    entry: booted.kernelArguments,
    running: argumentsOfCommandLine(await host.kernelCommandLine()),
    added: booted.addedKernelArguments,
    unreadable: booted.unreadableArgumentNotes,
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
  return { config, image, why: message, reason };
}
