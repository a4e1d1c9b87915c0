import { existsSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { parseDigestedPullspec } from '../../api/references.ts';
import { swapBootOrder } from './boot-order.ts';
import { readLabels } from './image-store.ts';
import type { BootedArguments } from './pull.ts';
import { pullRefusals } from './pull-refusals.ts';
import { hasSoftRebootTarget, isSameKernel } from './soft-reboot.ts';
import {
  type ListedDeployment,
  Refusal,
  runStandIn,
  type StandIn,
  type StandInCommands,
} from './stand-in.ts';

const UNVERIFIED = 'ostree-unverified-registry:';
const SIGNED = 'ostree-image-signed:docker://';

interface Arranged {
  readonly staged: ListedDeployment | undefined;
  readonly booted: ListedDeployment;
  readonly rollback: ListedDeployment | undefined;
  readonly other: readonly ListedDeployment[];
  readonly isRollbackQueued: boolean;
}

/** What bootc calls the deployments: any that is written but not booted is its "rollback" (status.rs, get_status). */
async function arrange(tool: StandIn): Promise<Arranged> {
  const all = await tool.deployments();
  const booted = all.find(({ isBooted }) => isBooted);
  if (booted === undefined) throw new Refusal('error: Status: not booted\n');
  const staged = all.find(({ isStaged }) => isStaged);
  const [first, ...other] = all.filter(({ isBooted, isStaged }) => !isBooted && !isStaged);
  const isRollbackQueued = first !== undefined && all.indexOf(first) < all.indexOf(booted);
  return { staged, booted, rollback: first, other, isRollbackQueued };
}

async function status(tool: StandIn, args: readonly string[]): Promise<string> {
  const { format, version } = statusArguments(args);
  if (format !== 'json' || !['0', '1'].includes(version ?? '')) {
    throw new Refusal('error: the stand-in speaks --format=json --format-version=1 only\n');
  }
  const { staged, booted, rollback: previous, other, isRollbackQueued } = await arrange(tool);
  const [stagedEntry, bootedEntry, previousEntry] = await Promise.all(
    [staged, booted, previous].map((each) => (each === undefined ? null : entryOf(tool, booted, each))),
  );
  const others = await Promise.all(other.map((each) => entryOf(tool, booted, each)));
  // What a host of no image has for its spec is bootc's default, whatever boots next.
  const image = imageOf(staged ?? booted) ?? null;
  return JSON.stringify({
    apiVersion: 'org.containers.bootc/v1',
    kind: 'BootcHost',
    metadata: { name: 'host' },
    spec: { bootOrder: image !== null && isRollbackQueued ? 'rollback' : 'default', image },
    status: {
      booted: bootedEntry,
      ...(others.length === 0 ? {} : { otherDeployments: others }),
      readOnly: false,
      rollback: previousEntry,
      rollbackQueued: isRollbackQueued,
      staged: stagedEntry,
      type: imageOf(booted) === undefined ? null : 'bootcHost',
      usrOverlay: null,
    },
  });
}

function statusArguments(args: readonly string[]) {
  const known = /^--format(?:-version)?(?:=|$)/;
  const unknown = args.find((arg) => arg.startsWith('--') && !known.test(arg));
  if (unknown !== undefined) throw unexpectedArgument(unknown, 'bootc status [OPTIONS]');
  const { values } = parseArgs({
    args: [...args],
    options: { format: { type: 'string' }, 'format-version': { type: 'string' } },
  });
  return { format: values.format, version: values['format-version'] };
}

/** As clap says it, the parser of bootc's command line. */
function unexpectedArgument(argument: string, usage: string): Refusal {
  const lines = [
    `error: unexpected argument '${argument}' found`,
    `Usage: ${usage}`,
    "For more information, try '--help'.",
  ];
  return new Refusal(`${lines.join('\n\n')}\n`, 2);
}

interface NamedImage {
  readonly image: string;
  readonly transport: 'registry';
  readonly signature?: 'containerPolicy';
}

/** Where packages were changed, bootc knows of no image (status.rs, boot_entry_from_deployment). */
function imageOf({ reference, packages }: ListedDeployment): NamedImage | undefined {
  if (reference === undefined || packages.installed.length + packages.removed.length > 0) return undefined;
  return namedImage(reference);
}

function namedImage(reference: string): NamedImage {
  return reference.startsWith(SIGNED)
    ? { image: reference.slice(SIGNED.length), signature: 'containerPolicy', transport: 'registry' }
    : { image: reference.slice(UNVERIFIED.length), transport: 'registry' };
}

async function entryOf(tool: StandIn, booted: ListedDeployment, deployment: ListedDeployment) {
  const { osName, checksum, serial, isPinned, packages } = deployment;
  const image = imageOf(deployment);
  return {
    cachedUpdate: null,
    composefs: null,
    downloadOnly: false,
    image: image === undefined ? null : await describeImage(tool, image),
    incompatible: packages.installed.length + packages.removed.length > 0,
    ostree: { checksum, deploySerial: serial, stateroot: osName },
    pinned: isPinned,
    // Also where it is not on a composefs, and ostree refuses (status.rs, has_soft_reboot_capability).
    softRebootCapable: (await hasSoftRebootTarget(tool)) && (await isSameKernel(tool, booted, deployment)),
    store: 'ostreeContainer',
  };
}

/** Version and time are those of the image's labels. */
async function describeImage(tool: StandIn, image: NamedImage) {
  const labels = (await readLabels(tool.dir, parseDigestedPullspec(image.image))) ?? {};
  return {
    architecture: 'amd64',
    image,
    imageDigest: image.image.slice(image.image.indexOf('@') + 1),
    timestamp: labels['org.opencontainers.image.created'] ?? null,
    version: labels['org.opencontainers.image.version'] ?? null,
  };
}

async function switchTo(tool: StandIn, args: readonly string[]): Promise<string> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      quiet: { type: 'boolean' },
      transport: { type: 'string', default: 'registry' },
      'enforce-container-sigpolicy': { type: 'boolean', default: false },
    },
  });
  const [target, ...more] = positionals;
  if (target === undefined || more.length > 0) throw new Refusal('error: expected one <TARGET>\n');
  if (values.transport !== 'registry') throw new Refusal('error: the stand-in has a registry only\n');
  const { staged, booted } = await arrange(tool);
  const reference = `${values['enforce-container-sigpolicy'] ? SIGNED : UNVERIFIED}${target}`;
  const wanted = JSON.stringify(namedImage(reference));
  if (JSON.stringify(imageOf(staged ?? booted)) === wanted) return 'Image specification is unchanged.\n';
  const refusals = pullRefusals(tool, 'Switching: Switching (ostree): ');
  if (values['enforce-container-sigpolicy']) await refusals.requirePolicy();
  const labels = await refusals.requireBootable(target);
  const { bootedKernelArguments, pruneLayers, pullImage } = await import('./pull.ts');
  const { ref, kernelArguments, isNew } = await pullImage(tool.dir, target, tool.signal);
  const present = await bootedKernelArguments(tool.dir);
  await tool.stage({ ref, reference, kernelArguments: nextArguments(present, kernelArguments) });
  const used = (await tool.deployments()).flatMap((deployment) => imageOf(deployment)?.image ?? []);
  const hasPruned = await pruneLayers(tool.dir, used, tool.signal);
  return [
    ...(isNew ? ['layers already present: 1; layers needed: 1 (389 bytes)'] : []),
    ...(hasPruned ? ['Pruned images: 1 (layers: 1, objsize: 1.0 kB)'] : []),
    ...queued(reference, labels),
    '',
  ].join('\n');
}

function queued(reference: string, labels: Readonly<Record<string, string>>): readonly string[] {
  const version = labels['org.opencontainers.image.version'];
  return [
    `Queued for next boot: ${reference.startsWith(SIGNED) ? reference : reference.slice(UNVERIFIED.length)}`,
    ...(version === undefined ? [] : [`  Version: ${version}`]),
    `  Digest: ${reference.slice(reference.indexOf('@') + 1)}`,
  ];
}

/**
 * The booted ones, changed by the difference of the two images' kargs.d. When the new image has none, those of the
 * booted image are kept, and added once more (bootc_kargs.rs, get_kargs).
 */
function nextArguments({ present, ofImage }: BootedArguments, wanted: readonly string[]): readonly string[] {
  if (wanted.length === 0) return [...present, ...ofImage];
  const kept = present.filter((argument) => !ofImage.includes(argument) || wanted.includes(argument));
  return [...kept, ...wanted.filter((argument) => !ofImage.includes(argument))];
}

async function rollback(tool: StandIn, args: readonly string[]): Promise<string> {
  parseArgs({ args: [...args], options: {} });
  const { staged, booted, rollback: previous, isRollbackQueued } = await arrange(tool);
  const refuse = (why: string) => new Refusal(`error: Rollback: Rollback (ostree): ${why}\n`);
  if (previous === undefined) throw refuse('No rollback available');
  if (imageOf(previous) === undefined) throw refuse('Rollback is not container image based');
  if (staged !== undefined) await tool.ostree('admin', 'undeploy', '0');
  // bootc goes by its spec, which a host of no image doesn't have: there it never swaps back.
  const isReverting = isRollbackQueued && imageOf(staged ?? booted) !== undefined;
  if (isReverting || !isRollbackQueued) await swapBootOrder(tool.dir);
  return isReverting
    ? 'notice: Reverting queued rollback state\nNext boot: current deployment\n'
    : 'Next boot: rollback deployment\n';
}

/** Stands in for bootc 1.16 (bootc-dev/bootc: crates/lib/src/cli.rs, status.rs, deploy.rs, bootc_kargs.rs). */
export const bootcCommands: StandInCommands = { status, switch: switchTo, rollback };

if (import.meta.main) {
  const sysroot = path.join(process.env['STAND_IN_NODE'] ?? '', 'root/sysroot');
  const isComposefs = existsSync(path.join(sysroot, 'composefs'));
  await runStandIn(isComposefs ? (await import('./composefs-bootc.ts')).composefsCommands : bootcCommands);
}
