import { parseArgs } from 'node:util';
import { present } from '../../api/present.ts';
import { parseDigestedPullspec } from '../../api/references.ts';
import { swapBootOrder } from './boot-order.ts';
import { readLabels } from './image-store.ts';
import { changePackages, composePackages, type PackagesAsked, requirePackages } from './packages.ts';
import { pullRefusals } from './pull-refusals.ts';
import {
  type ListedDeployment,
  Refusal,
  runStandIn,
  type StandIn,
  type StandInCommands,
} from './stand-in.ts';

/** As GLib says it, the parser of its command line. */
function optionsOf<T extends Readonly<Record<string, { readonly type: 'boolean'; readonly short?: string }>>>(
  args: readonly string[],
  options: T,
) {
  const unknown = args.find((arg) => arg.startsWith('--') && !(arg.slice(2) in options));
  if (unknown !== undefined) throw new Refusal(`error: Unknown option ${unknown}\n`);
  return parseArgs({ args: [...args], options });
}

async function status(tool: StandIn, args: readonly string[]): Promise<string> {
  const { values } = optionsOf(args, { json: { type: 'boolean' } });
  if (values.json !== true) throw new Refusal('error: the stand-in speaks --json only\n');
  const all = await tool.deployments();
  const deployments = await Promise.all(all.map((each) => deploymentOf(tool, each)));
  return `${JSON.stringify({ deployments, transaction: null, 'cached-update': null, 'update-driver': null })}\n`;
}

async function deploymentOf(
  tool: StandIn,
  { osName, checksum, serial, reference, packages, ...state }: ListedDeployment,
): Promise<unknown> {
  const image = reference === undefined ? undefined : nameOf(reference);
  return {
    id: `${osName}-${checksum}.${serial}`,
    osname: osName,
    checksum,
    serial,
    timestamp: 0,
    booted: state.isBooted,
    staged: state.isStaged,
    pinned: state.isPinned,
    unlocked: 'none',
    'regenerate-initramfs': false,
    packages: packages.installed,
    'requested-packages': packages.installed,
    'requested-base-removals': packages.removed,
    ...NOT_CHANGED,
    ...(image === undefined ? { origin: 'stock', 'base-commit-meta': {} } : await ofImage(tool, image)),
    ...present({ 'container-image-reference': reference }),
  };
}

/** What else can be asked of rpm-ostree, and Shale doesn't. */
const NOT_CHANGED = {
  'base-local-replacements': [],
  'base-remote-replacements': {},
  'base-removals': [],
  'requested-base-local-replacements': [],
  'requested-local-fileoverride-packages': [],
  'requested-local-packages': [],
};

async function ofImage(tool: StandIn, image: string) {
  const labels = (await readLabels(tool.dir, parseDigestedPullspec(image))) ?? {};
  const digest = image.slice(image.indexOf('@') + 1);
  return {
    'container-image-reference-digest': digest,
    'base-commit-meta': {
      'ostree.container.image-config': '{}',
      'ostree.importer.version': '0.15.3',
      'ostree.manifest': '{}',
      'ostree.manifest-digest': digest,
    },
    ...present({ version: labels['org.opencontainers.image.version'] }),
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
  const refusals = pullRefusals(tool, '');
  if (reference.startsWith(SIGNED)) await refusals.requirePolicy();
  await refusals.requireBootable(image);
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
  await prune(tool);
  return QUEUED;
}

const SIGNED = 'ostree-image-signed:docker://';
const QUEUED = 'Changes queued for next boot. Run "systemctl reboot" to start a reboot\n';

/** Images that no deployment has any more are gone with the end of a transaction that changes the deployments. */
async function prune(tool: StandIn): Promise<void> {
  const used = (await tool.deployments()).flatMap(({ reference }) =>
    reference === undefined ? [] : (nameOf(reference) ?? []),
  );
  const { pruneLayers } = await import('./pull.ts');
  await pruneLayers(tool.dir, used, tool.signal);
}

async function cleanup(tool: StandIn, args: readonly string[]): Promise<string> {
  const { values } = optionsOf(args, {
    base: { type: 'boolean', short: 'b' },
    pending: { type: 'boolean', short: 'p' },
    rollback: { type: 'boolean', short: 'r' },
    repomd: { type: 'boolean', short: 'm' },
  });
  if (Object.keys(values).length === 0) {
    throw new Refusal('error: cleanup: At least one cleanup option must be specified\n');
  }
  if (values.rollback === true) throw new Refusal('error: nobody should delete the way back\n');
  if (values.pending === true) {
    const all = await tool.deployments();
    const booted = all.findIndex(({ isBooted }) => isBooted);
    const gone = all.slice(0, booted).flatMap(({ isPinned }, index) => (isPinned ? [] : [index]));
    if (gone.length === 0) return 'Deployments unchanged.\n';
    for (const index of gone.reverse()) await tool.ostree('admin', 'undeploy', String(index));
  }
  await prune(tool);
  return '';
}

/** Swaps the two also where nothing comes after the booted deployment: a rollback of a rollback. */
async function rollback(tool: StandIn, args: readonly string[]): Promise<string> {
  parseArgs({ args: [...args], options: {} });
  const all = await tool.deployments();
  const booted = all.findIndex(({ isBooted }) => isBooted);
  const first = all[booted + 1] ?? all[booted];
  if (all.length < 2 || first === undefined) throw new Refusal('error: No rollback deployment found\n');
  if (all.some(({ isStaged }) => isStaged)) {
    throw new Refusal('error: Staged deployment (remove with cleanup -p)\n');
  }
  await swapBootOrder(tool.dir);
  return `Moving '${first.checksum}.${first.serial}' to be first deployment\n${QUEUED}`;
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
