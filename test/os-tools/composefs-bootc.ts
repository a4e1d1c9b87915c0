import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { parseDigestedPullspec, pullspecDigest } from '../../api/references.ts';
import { layerDigest } from '../../workshop/sandbox/node/memory-source.ts';
import { ComposefsMachine, type Entry } from './composefs-machine.ts';
import { readImages } from './image-store.ts';
import { Refusal, type StandIn, type StandInCommands } from './stand-in.ts';

const machineOf = ({ dir }: StandIn) => new ComposefsMachine(dir);

/** As bootc tells deployments apart (bootc_composefs/status.rs, composefs_deployment_status_from). */
interface Told {
  readonly booted: Entry;
  readonly staged: Entry | undefined;
  readonly rollback: Entry | undefined;
  readonly isQueued: boolean;
}

const DEPLOYMENTS = 'Getting composefs deployment status: Getting composefs deployment status: ';
const STATUS = `error: Status: ${DEPLOYMENTS}`;
const CONFLICT = 'Conflicting boot types\n';
const ENTRIES = 'Listing bootloader entries: Getting sorted Type1 boot entries: ';

function tell(machine: ComposefsMachine): Told {
  if (machine.hasEmptyEntry())
    throw new Refusal(`${STATUS}${ENTRIES}Parsing bls config: Missing 'version' value\n`);
  const entries = machine.entries() ?? [];
  const all = [...entries, ...(machine.entries('entries.staged') ?? [])];
  const booted = all.find(({ verity }) => verity === machine.booted);
  if (booted === undefined) throw new Refusal('error: Status: Booted BLS not found\n');
  if (new Set(all.map(({ isUnified }) => isUnified === true)).size > 1) {
    throw new Refusal(`${STATUS}${CONFLICT}`);
  }
  const noted = machine.note()?.depl_id;
  const staged = all.find(({ verity }) => verity === noted && verity !== booted.verity);
  const rollback = entries.find(({ verity }) => verity !== booted.verity && verity !== staged?.verity);
  return { booted, staged, rollback, isQueued: entries[0]?.verity !== booted.verity };
}

async function status(tool: StandIn): Promise<string> {
  const machine = machineOf(tool);
  const told = tell(machine);
  const { booted, staged, rollback, isQueued } = told;
  const entry = (each: Entry | undefined) => (each === undefined ? null : entryOf(machine, booted, each));
  return JSON.stringify({
    apiVersion: 'org.containers.bootc/v1',
    kind: 'BootcHost',
    metadata: { name: 'host' },
    spec: { bootOrder: isQueued ? 'rollback' : 'default', image: imageOf(machine, staged ?? booted) },
    status: {
      booted: entry(booted),
      readOnly: false,
      rollback: entry(rollback),
      rollbackQueued: isQueued,
      staged: entry(staged),
      type: null,
      usrOverlay: null,
    },
  });
}

function imageOf(machine: ComposefsMachine, { verity }: Entry) {
  return { image: machine.origin(verity).image, transport: 'registry' };
}

function entryOf(machine: ComposefsMachine, booted: Entry, deployment: Entry) {
  const { verity } = deployment;
  const { kernel } = machine.origin(verity);
  const image = imageOf(machine, deployment);
  const isOther = verity !== booted.verity;
  const hasSameArguments =
    deployment.arguments.toSorted().join('\n') === booted.arguments.toSorted().join('\n');
  return {
    cachedUpdate: null,
    composefs: {
      bootDigest: kernel,
      bootType: 'Bls',
      bootloader: 'systemd',
      missingVerityAllowed: true,
      verity,
    },
    downloadOnly: machine.note()?.depl_id === verity && machine.note()?.finalization_locked === true,
    image: {
      architecture: 'amd64',
      image,
      imageDigest: pullspecDigest(parseDigestedPullspec(image.image)),
      timestamp: null,
      version: null,
    },
    incompatible: false,
    ostree: null,
    pinned: false,
    softRebootCapable: isOther && kernel === machine.origin(booted.verity).kernel && hasSameArguments,
    store: null,
  };
}

const SWITCHING = 'error: Switching: Composefs Switching: ';

async function switchTo(tool: StandIn, args: readonly string[]): Promise<string> {
  const { positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      quiet: { type: 'boolean' },
      transport: { type: 'string' },
      'enforce-container-sigpolicy': { type: 'boolean' },
    },
  });
  const [target = ''] = positionals;
  const machine = machineOf(tool);
  const told = tell(machine);
  if (imageOf(machine, told.staged ?? told.booted).image === target)
    return 'Image specification is unchanged.\n';
  const image = parseDigestedPullspec(target);
  const found = (await readImages(tool.dir, [image])).get(image);
  if (found === undefined) throw new Refusal(missingImage(target));
  if (!machine.startFinalizeService()) {
    throw new Refusal(
      `${SWITCHING}Performing Upgrade Operation: Starting finalize staged service: systemctl exited with status exit status: 1\n`,
    );
  }
  const verity = machine.pull(found, found.layers.map(layerDigest));
  const all = { Booted: told.booted, Staged: told.staged, Rollback: told.rollback };
  const same = Object.entries(all).find(([, each]) => each?.verity === verity);
  if (same !== undefined) {
    throw new Refusal(
      `${SWITCHING}Target image has the same fs-verity digest as the existing Some(${same[0]}) deployment.\n`,
    );
  }
  // What is given up in between leaves a tree and a state that no entry is of.
  await new Promise((resolve) => setImmediate(resolve));
  tool.signal.throwIfAborted();
  const [ofImage, ofBooted] = [await machine.kargsOf(verity), await machine.kargsOf(told.booted.verity)];
  tool.signal.throwIfAborted();
  const kept = told.booted.arguments.filter((each) => !ofBooted.includes(each) || ofImage.includes(each));
  const added = ofImage.filter((each) => !ofBooted.includes(each));
  const isUnified = machine.hasUnifiedKernel(verity);
  machine.writeEntries('entries.staged', [
    { verity, arguments: [...kept, ...added], isUnified },
    told.booted,
  ]);
  machine.seed(verity, target);
  machine.writeNote(verity);
  if (isUnified !== (told.booted.isUnified === true)) {
    const collecting = 'Performing Upgrade Operation: Running composefs garbage collection: ';
    throw new Refusal(`${SWITCHING}${collecting}${DEPLOYMENTS}${CONFLICT}`);
  }
  machine.prune(true);
  return '';
}

function missingImage(target: string): string {
  const [name = '', digest = ''] = target.split('@');
  return `${SWITCHING}Checking if image ${target} is pulled: Getting container info: Opening image docker://${target}: failed to invoke method OpenImage: reading manifest ${digest} in ${name}: manifest unknown\n`;
}

/** @returns what it prints. @throws Refusal where nothing is staged any more, after it has merged /etc once more. */
export function finalizeStaged(machine: ComposefsMachine): string {
  const { booted, staged } = tell(machine);
  if (staged === undefined || machine.note()?.finalization_locked === true) return '';
  const pristine = path.join(machine.imageTree(booted.verity), 'etc');
  const own = path.join(machine.state(staged.verity), 'etc');
  mergeInto(own, pristine, path.join(machine.state(booted.verity), 'etc'));
  rmSync(path.join(own, '.updated'), { force: true });
  if (!machine.exchangeEntries()) {
    throw new Refusal(
      'error: Atomically exchanging BLS entries: renameat: No such file or directory (os error 2)\n',
    );
  }
  machine.prune(false);
  return '';
}

/** What differs from the image's version is the admin's (crates/etc-merge). */
function mergeInto(own: string, pristine: string, current: string): void {
  const names = new Set([...readdirSync(pristine), ...readdirSync(current)]);
  for (const name of names) {
    const [before, now, next] = [pristine, current, own].map((directory) => path.join(directory, name));
    if (before === undefined || now === undefined || next === undefined) continue;
    const [was, is] = [formOf(before), formOf(now)];
    if (is === 'directory' && was === 'directory' && formOf(next) === 'directory')
      mergeInto(next, before, now);
    else if (was !== is) {
      rmSync(next, { recursive: true, force: true });
      if (is !== undefined) execFileSync('cp', ['--archive', '--no-target-directory', now, next]);
    }
  }
}

/** @returns what is equal for two entries that are alike; undefined for none. */
function formOf(place: string): string | undefined {
  const stats = lstatSync(place, { throwIfNoEntry: false });
  if (stats === undefined) return undefined;
  if (stats.isDirectory()) return 'directory';
  const content = stats.isSymbolicLink() ? readlinkSync(place) : readFileSync(place, 'latin1');
  return JSON.stringify([stats.mode, stats.uid, stats.gid, content]);
}

async function rollback(tool: StandIn): Promise<string> {
  const machine = machineOf(tool);
  const { staged, rollback: previous, isQueued } = tell(machine);
  if (previous === undefined)
    throw new Refusal('error: Rollback: Rolling back composefs: No rollback available\n');
  machine.dropStagedEntries();
  if (staged !== undefined) machine.removeNote();
  machine.writeEntries('entries', [...(machine.entries() ?? [])].toReversed());
  return isQueued
    ? 'notice: Reverting queued rollback state\nNext boot: current deployment\n'
    : 'Next boot: rollback deployment\n';
}

async function deleteDeployment(tool: StandIn, [verity = '']: readonly string[]): Promise<string> {
  const machine = machineOf(tool);
  const { booted, staged, rollback: previous, isQueued } = tell(machine);
  const what = `error: Deleting composefs deployment ${verity}: `;
  if (verity === booted.verity) throw new Refusal(`${what}Cannot delete currently booted deployment\n`);
  if (![staged?.verity, previous?.verity].includes(verity))
    throw new Refusal(`${what}Deployment ${verity} not found\n`);
  if (verity === staged?.verity) {
    if (machine.entries('entries.staged') === undefined) {
      throw new Refusal(`${what}Opening entries dir: No such file or directory (os error 2)\n`);
    }
    // Its note stays: bootc looks for it among the entries.
    machine.dropStagedEntries();
  } else {
    if (isQueued) await rollback(tool);
    machine.writeEntries(
      'entries',
      (machine.entries() ?? []).filter((each) => each.verity !== verity),
    );
  }
  machine.prune(true);
  return '';
}

/**
 * `bootc internals cfs --system mount <verity> <mountpoint>`, with directories in place of images, and
 * `prep-soft-reboot <verity>`.
 */
async function internals(tool: StandIn, args: readonly string[]): Promise<string> {
  const [cfs, system, mount, verity = '', place = ''] = args;
  if (cfs === 'prep-soft-reboot') return prepareSoftReboot(tool, system ?? '');
  if (cfs !== 'cfs' || system !== '--system' || mount !== 'mount') {
    throw new Refusal(`error: the stand-in speaks no bootc internals ${args.join(' ')}\n`);
  }
  const machine = machineOf(tool);
  const tree = machine.imageTree(verity);
  if (!existsSync(tree)) throw new Refusal(`error: No such file or directory (os error 2)\n`);
  execFileSync('mount', ['--bind', tree, machine.placeOf(place)]);
  execFileSync('mount', ['-o', 'remount,bind,ro', machine.placeOf(place)]);
  return '';
}

/** A directory in place of a mount. */
const NEXT_ROOT = 'run/nextroot';

function prepareSoftReboot(tool: StandIn, verity: string): string {
  const machine = machineOf(tool);
  if (verity === '--reset') {
    rmSync(path.join(machine.root, NEXT_ROOT), { recursive: true });
    return 'Cleared soft reboot queued state\n';
  }
  const told = tell(machine);
  const what = 'error: Soft rebooting: ';
  if (verity === told.booted.verity)
    throw new Refusal(`${what}Cannot soft-reboot to currently booted deployment\n`);
  const found = [told.staged, told.rollback].find((each) => each?.verity === verity);
  if (found === undefined) throw new Refusal(`${what}Deployment '${verity}' not found\n`);
  if (!entryOf(machine, told.booted, found).softRebootCapable) {
    throw new Refusal(`${what}Cannot soft-reboot to deployment with a different kernel state\n`);
  }
  machine.startFinalizeService();
  mkdirSync(path.join(machine.root, NEXT_ROOT, 'usr'), { recursive: true });
  return 'Soft reboot setup complete\n';
}

/**
 * Stands in for bootc 1.16.9 with its composefs backend, systemd-boot and BLS entries (bootc-dev/bootc:
 * crates/lib/src/bootc_composefs).
 */
export const composefsCommands: StandInCommands = {
  status,
  switch: switchTo,
  rollback,
  internals,
  'composefs-finalize-staged': async (tool) => finalizeStaged(machineOf(tool)),
  'delete-deployment': deleteDeployment,
};
