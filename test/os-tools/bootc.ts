import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { swapBootOrder } from './boot-order.ts';
import type { BootedArguments } from './pull.ts';
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
  const { values } = parseArgs({
    args: [...args],
    options: { format: { type: 'string' }, 'format-version': { type: 'string' } },
  });
  if (values.format !== 'json' || !['0', '1'].includes(values['format-version'] ?? '')) {
    throw new Refusal('error: the stand-in speaks --format=json --format-version=1 only\n');
  }
  const { staged, booted, rollback: previous, other, isRollbackQueued } = await arrange(tool);
  const spec = (staged ?? booted).reference;
  return `${JSON.stringify({
    apiVersion: 'org.containers.bootc/v1',
    kind: 'BootcHost',
    metadata: { name: 'host' },
    spec: {
      image: spec === undefined ? null : { image: nameOf(spec), transport: 'registry' },
      bootOrder: isRollbackQueued ? 'rollback' : 'default',
    },
    status: {
      staged: staged === undefined ? null : await entryOf(tool, booted, staged),
      booted: await entryOf(tool, booted, booted),
      rollback: previous === undefined ? null : await entryOf(tool, booted, previous),
      otherDeployments: await Promise.all(other.map((each) => entryOf(tool, booted, each))),
      rollbackQueued: isRollbackQueued,
      readOnly: false,
      type: booted.reference === undefined ? null : 'bootcHost',
      usrOverlay: null,
    },
  })}\n`;
}

async function entryOf(
  tool: StandIn,
  booted: ListedDeployment,
  deployment: ListedDeployment,
): Promise<unknown> {
  const { osName, checksum, serial, reference, packages } = deployment;
  const incompatible = packages.installed.length + packages.removed.length > 0;
  const image = reference === undefined || incompatible ? undefined : nameOf(reference);
  return {
    image:
      image === undefined
        ? null
        : {
            image: { image, transport: 'registry' },
            imageDigest: image.slice(image.indexOf('@') + 1),
            architecture: 'amd64',
            version: null,
            timestamp: null,
          },
    cachedUpdate: null,
    incompatible,
    pinned: false,
    softRebootCapable: (await hasSoftRebootTarget(tool)) && (await isSameKernel(tool, booted, deployment)),
    downloadOnly: false,
    store: 'ostreeContainer',
    ostree: { checksum, deploySerial: serial, stateroot: osName },
  };
}

function nameOf(reference: string): string {
  return reference.slice((reference.startsWith(SIGNED) ? SIGNED : UNVERIFIED).length);
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
  if ((staged ?? booted).reference === reference) return 'Image specification is unchanged.\n';
  if (values['enforce-container-sigpolicy']) await requirePolicy(tool);
  const { bootedKernelArguments, pullImage } = await import('./pull.ts');
  const { ref, kernelArguments } = await pullImage(tool.dir, target, tool.signal);
  const present = await bootedKernelArguments(tool.dir);
  await tool.stage({ ref, reference, kernelArguments: nextArguments(present, kernelArguments) });
  return `Queued for next boot: ${target}\n`;
}

async function requirePolicy({ dir }: StandIn): Promise<void> {
  const file = path.join(dir, 'root/etc/containers/policy.json');
  if (!(await readFile(file, 'utf8')).includes('insecureAcceptAnything')) return;
  throw new Refusal(
    'error: containers-policy.json specifies a default of `insecureAcceptAnything`; refusing usage\n',
  );
}

/**
 * The booted ones, changed by the difference of the two images' kargs.d. When the new image has none, those of the booted
 * image are kept, and added once more (bootc_kargs.rs, get_kargs).
 */
function nextArguments({ present, ofImage }: BootedArguments, wanted: readonly string[]): readonly string[] {
  if (wanted.length === 0) return [...present, ...ofImage];
  const kept = present.filter((argument) => !ofImage.includes(argument) || wanted.includes(argument));
  return [...kept, ...wanted.filter((argument) => !ofImage.includes(argument))];
}

async function rollback(tool: StandIn, args: readonly string[]): Promise<string> {
  parseArgs({ args: [...args], options: {} });
  const { staged, rollback: previous, isRollbackQueued } = await arrange(tool);
  if (previous === undefined) throw new Refusal('error: Rollback: No rollback available\n');
  if (previous.reference === undefined) {
    throw new Refusal('error: Rollback: Rollback is not container image based\n');
  }
  if (staged !== undefined) await tool.ostree('admin', 'undeploy', '0');
  await swapBootOrder(tool.dir);
  return isRollbackQueued ? 'Next boot: current deployment\n' : 'Next boot: rollback deployment\n';
}

/** Stands in for bootc 1.16 (bootc-dev/bootc: crates/lib/src/cli.rs, status.rs, deploy.rs, bootc_kargs.rs). */
export const bootcCommands: StandInCommands = { status, switch: switchTo, rollback };

if (import.meta.main) await runStandIn(bootcCommands);
