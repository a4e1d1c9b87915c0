import { parseArgs } from 'node:util';
import { swapBootOrder } from './boot-order.ts';
import { changePackages, composePackages, type PackagesAsked, requirePackages } from './packages.ts';
import {
  type ListedDeployment,
  Refusal,
  runStandIn,
  type StandIn,
  type StandInCommands,
} from './stand-in.ts';

async function status(tool: StandIn, args: readonly string[]): Promise<string> {
  const { values } = parseArgs({ args: [...args], options: { json: { type: 'boolean' } } });
  if (values.json !== true) throw new Refusal('error: the stand-in speaks --json only\n');
  const deployments = (await tool.deployments()).map(deploymentOf);
  return `${JSON.stringify({ deployments, transaction: null, 'cached-update': null, 'update-driver': null })}\n`;
}

function deploymentOf({
  osName,
  checksum,
  serial,
  reference,
  packages,
  ...state
}: ListedDeployment): unknown {
  const image = reference === undefined ? undefined : nameOf(reference);
  const container =
    image === undefined
      ? { origin: 'stock' }
      : {
          'container-image-reference': reference,
          'container-image-reference-digest': image.slice(image.indexOf('@') + 1),
        };
  return {
    id: `${osName}-${checksum}.${serial}`,
    osname: osName,
    checksum,
    serial,
    booted: state.isBooted,
    staged: state.isStaged,
    pinned: false,
    unlocked: 'none',
    packages: packages.installed,
    'requested-packages': packages.installed,
    'requested-base-removals': packages.removed,
    'base-commit-meta': {},
    ...container,
  };
}

function nameOf(reference: string): string | undefined {
  return /^ostree-(?:unverified-registry:|image-signed:docker:\/\/)(.*)$/.exec(reference)?.[1];
}

interface PackageArguments {
  readonly names: readonly string[];
  readonly install: readonly string[];
  readonly uninstall: readonly string[];
  readonly isLocked: boolean;
}

function packageArguments(args: readonly string[]): PackageArguments {
  const { positionals, values } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      install: { type: 'string', multiple: true },
      uninstall: { type: 'string', multiple: true },
      'lock-finalization': { type: 'boolean' },
    },
  });
  const { install = [], uninstall = [], 'lock-finalization': isLocked = false } = values;
  if (positionals.length === 0) throw new Refusal('error: At least one PACKAGE must be specified\n');
  return { names: positionals, install, uninstall, isLocked };
}

/** Kernel arguments stay those of the booted deployment: rpm-ostree knows nothing of kargs.d. */
async function rebase(tool: StandIn, args: readonly string[]): Promise<string> {
  const { names, ...asked } = packageArguments(args);
  const [reference = '', ...more] = names;
  if (more.length > 0) throw new Refusal('error: expected one REFSPEC\n');
  const first = await firstOf(tool);
  if (first.reference === reference) throw new Refusal(`error: Old and new refs are equal: ${reference}\n`);
  return deploy(tool, { ...first, reference }, asked);
}

async function install(tool: StandIn, args: readonly string[]): Promise<string> {
  const { names, ...asked } = packageArguments(args);
  return deploy(tool, await firstOf(tool), { ...asked, install: [...names, ...asked.install] });
}

async function uninstall(tool: StandIn, args: readonly string[]): Promise<string> {
  const { names, ...asked } = packageArguments(args);
  return deploy(tool, await firstOf(tool), { ...asked, uninstall: names });
}

async function override(tool: StandIn, [verb = '', ...args]: readonly string[]): Promise<string> {
  if (verb !== 'remove' && verb !== 'reset') throw new Refusal(`error: Unknown command '${verb}'\n`);
  const { names, ...asked } = packageArguments(args);
  return deploy(tool, await firstOf(tool), { ...asked, [verb]: names });
}

/** What a transaction goes on from (rpmostree-sysroot-core.cxx, rpmostree_syscore_get_origin_merge_deployment). */
async function firstOf(tool: StandIn): Promise<ListedDeployment> {
  const [first] = await tool.deployments();
  if (first === undefined) throw new Refusal('error: No deployments\n');
  return first;
}

async function deploy(
  tool: StandIn,
  from: Pick<ListedDeployment, 'reference' | 'packages'>,
  { isLocked, ...asked }: PackagesAsked & Pick<PackageArguments, 'isLocked'>,
): Promise<string> {
  const { reference = '' } = from;
  const image = nameOf(reference);
  if (image === undefined) throw new Refusal(`error: the stand-in has a registry only: ${reference}\n`);
  const packages = changePackages(from.packages, asked);
  await requirePackages(tool.dir, packages);
  const { bootedKernelArguments, pullImage } = await import('./pull.ts');
  const { ref } = await pullImage(tool.dir, image, tool.signal);
  const { present } = await bootedKernelArguments(tool.dir);
  const isPlain = packages.installed.length + packages.removed.length === 0;
  await tool.stage({
    ref: isPlain ? ref : await composePackages(tool.dir, ref, packages),
    reference,
    kernelArguments: present,
    packages,
    isLocked,
  });
  return 'Changes queued for next boot. Run "systemctl reboot" to start a reboot\n';
}

async function cleanup(tool: StandIn, args: readonly string[]): Promise<string> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      base: { type: 'boolean', short: 'b' },
      pending: { type: 'boolean', short: 'p' },
      rollback: { type: 'boolean', short: 'r' },
      repomd: { type: 'boolean', short: 'm' },
    },
  });
  if (Object.keys(values).length === 0) {
    throw new Refusal('error: At least one cleanup option must be specified\n');
  }
  if (values.rollback === true) throw new Refusal('error: nobody should delete the way back\n');
  if (values.pending !== true) return '';
  const all = await tool.deployments();
  for (let left = all.findIndex(({ isBooted }) => isBooted); left > 0; left -= 1) {
    await tool.ostree('admin', 'undeploy', '0');
  }
  return '';
}

async function rollback(tool: StandIn, args: readonly string[]): Promise<string> {
  parseArgs({ args: [...args], options: {} });
  const all = await tool.deployments();
  if (all.length < 2) throw new Refusal('error: Found 1 deployments, at least 2 required for rollback\n');
  if (all.some(({ isStaged }) => isStaged)) await tool.ostree('admin', 'undeploy', '0');
  await swapBootOrder(tool.dir);
  return 'Rollback queued\n';
}

async function cancel(): Promise<string> {
  return 'No active transaction.\n';
}

/** Stands in for rpm-ostree 2026.2 (coreos/rpm-ostree: src/app, src/daemon), client and daemon in one. */
export const rpmOstreeCommands: StandInCommands = {
  status,
  rebase,
  install,
  uninstall,
  override,
  cleanup,
  rollback,
  cancel,
};

if (import.meta.main) await runStandIn(rpmOstreeCommands);
