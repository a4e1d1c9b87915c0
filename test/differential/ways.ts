import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
} from 'node:fs';
import path from 'node:path';
import { nodePaths } from '../../api/names.ts';
import { verifyContent } from '../../daemon/content/drift/verify-content.ts';
import { UnknownAccountError } from '../../daemon/content/entries/desired-tree.ts';
import { applyLive, type LiveApply, verifyLive } from '../../daemon/content/live/live-apply.ts';
import { untouchedManagedPaths } from '../../daemon/content/live/managed-etc.ts';
import { carriedBy, managedContent } from '../../daemon/content/managed-content.ts';
import { settleStateContent } from '../../daemon/content/write/state-content.ts';
import {
  checkContent,
  ForeignChangeError,
  type WriteTarget,
  writeContent,
} from '../../daemon/content/write/write-content.ts';
import { PathError } from '../../daemon/files/host-file-error.ts';
import { LiveApplyRefused } from '../../daemon/files/tree-change.ts';
import { noLabels } from '../../daemon/host/selinux-labels.ts';
import type { NodeDeployment } from '../../daemon/os/backend.ts';
import { resetManagedPaths } from '../../daemon/os/ostree/reset-managed-paths.ts';
import { type Current, PrepareRefused } from '../../daemon/records/current.ts';
import { mergeManaged, readManagedPaths, writeManagedPaths } from '../../daemon/records/managed-paths.ts';
import { contentOfConfigs } from '../../daemon/steps/own-content.ts';
import { refuseUnknownOwners, refuseUnwritable } from '../../daemon/steps/preparation.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { verifyConfig, writeConfig } from '../fixtures/standard-content.ts';
import { hasFragments, mergeEtc, Refused, runTmpfiles } from './images.ts';
import { copyTree } from './listing.ts';

/** The ways by which content comes to a node, each as the daemon takes it (daemon/steps). */

/** A node whose root is a directory. */
export interface Node {
  readonly root: string;
  /** The deployment that it has booted, as its image has it. */
  readonly booted: string;
  readonly capabilities: boolean;
  readonly runsTmpfiles: boolean;
  /** What the daemon would report that is wrong, and goes on. */
  readonly complaints: string[];
}

const signal = new AbortController().signal;
const LAYERED: Current = {
  version: 1,
  mode: 'Layered',
  config: 'rendered-worker',
  image: `registry.example.com/os@sha256:${'0'.repeat(64)}`,
};

/** Something that the product promises and that no comparison of trees shows. */
export class BrokenPromise extends Error {
  override readonly name = 'BrokenPromise';
}

function targetOf({ root }: Node): WriteTarget {
  return {
    root,
    stateDir: path.join(root, nodePaths.state),
    setPasswords: async () => undefined,
    relabel: noLabels,
  };
}

/**
 * Standard mode writes another config (daemon/steps/disk-work.ts, writeRunningConfig). @throws Refused, BrokenPromise
 */
export async function writeStandard(node: Node, from: NodeConfig, to: NodeConfig): Promise<void> {
  await mayRefuse('standard', () => writeConfig(targetOf(node), { from, to }, { signal }));
  const drifts = await verifyConfig(node.root, to);
  if (drifts.length === 0) return;
  const all = drifts.map(({ message }) => message).join('; ');
  throw new BrokenPromise(`standard mode wrote, and reports as changed: ${all}`);
}

/**
 * @throws Refused for what the product finds before anything is changed, BrokenPromise for a change that nobody made.
 */
async function mayRefuse(by: Refused['by'], work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (error instanceof ForeignChangeError) {
      throw new BrokenPromise(`nobody changed the node: ${error.message}`);
    }
    const isTyped =
      error instanceof PathError ||
      error instanceof UnknownAccountError ||
      error instanceof LiveApplyRefused ||
      error instanceof PrepareRefused;
    if (isTyped) throw new Refused(by, error.message);
    throw error;
  }
}

/**
 * A reboot into another image (daemon/steps/reboot.ts, daemon/steps/end-update.ts): ostree merges /etc, the daemon
 * gives the next boot the image's version of what Shale wrote, the state comes, and what no config has any more goes.
 *
 * @param image the deployment of the next image. @param place where the next root is to be. @returns the node after it.
 *   @throws BrokenPromise
 */
export async function rebootInto(node: Node, image: string, place: string): Promise<Node> {
  const { root, booted, capabilities } = node;
  const current = (await carriedBy(root)) === undefined ? undefined : LAYERED;
  await prepare(root, current, image);
  copyTree(image, place, capabilities);
  mergeEtc(root, booted, place, capabilities);
  const from = await managedContent(root, current);
  const to = await carriedBy(place);
  if (to === undefined) throw new TypeError(`${image} carries no config`);
  const handedOver = await contentOfConfigs({ root, current, disk: 'AsRecorded', signal }, to);
  const managed = mergeManaged(handedOver, await readManagedPaths(root));
  const staged = { root: place };
  await resetManagedPaths(
    { root, booted: { root: booted }, staged },
    await untouchedManagedPaths(root, managed),
    signal,
  );
  await mayRefuse('node', () =>
    writeContent({ ...targetOf(node), ...staged, varRoot: root }, { from, to, force: true }, { signal }),
  );
  // Until then a deployment's own is an empty directory.
  rmSync(path.join(place, 'var'), { recursive: true, force: true });
  renameSync(path.join(root, 'var'), path.join(place, 'var'));
  const next: Node = { ...node, root: place, booted: image };
  const failed = node.runsTmpfiles && hasFragments(place) ? runTmpfiles(place) : '';
  await writeManagedPaths(place, new Map());
  await settle(next);
  const said = failed === '' ? '' : ` (systemd-tmpfiles: ${failed.trim()})`;
  await requireUnchanged(place, LAYERED, `after the reboot${said}`);
  return next;
}

/** What the daemon refuses while an image is staged (daemon/steps/prepare-layered.ts). @throws Refused */
async function prepare(root: string, current: Current | undefined, image: string): Promise<void> {
  const to = await carriedBy(image);
  if (to === undefined) return;
  await mayRefuse('node', () => refuseUnknownOwners(root, to));
  await mayRefuse('node', () => refuseUnwritable(root, { current, to }, signal));
}

/**
 * A live apply of another image (daemon/steps/apply-live.ts). @param image its deployment. @throws Refused,
 * BrokenPromise
 */
export async function applyImageLive(node: Node, image: string): Promise<void> {
  const { root } = node;
  const current = (await carriedBy(root)) === undefined ? undefined : LAYERED;
  const to = await carriedBy(image);
  if (to === undefined) throw new TypeError(`${image} carries no config`);
  const from = await managedContent(root, current);
  const write = { from, to, force: true };
  const target = { ...targetOf(node), imageRoot: image };
  await prepare(root, current, image);
  await mayRefuse('node', () => checkContent(target, write, signal));
  const apply: LiveApply = {
    host: HOST(root),
    relabel: noLabels,
    booted: deployment(node.booted),
    staged: deployment(image),
    handedOver: await contentOfConfigs({ root, current, disk: 'AsRecorded', signal }, to),
    signal,
  };
  await mayRefuse('live', () => applyLive(apply));
  await writeContent(target, write, { signal });
  await settle(node);
  const differing = await verifyLive(apply);
  if (differing.length > 0) {
    throw new BrokenPromise(`after the live apply it differs from the image: ${differing.join(', ')}`);
  }
  await requireUnchanged(root, LAYERED, 'after the live apply');
}

const HOST = (root: string): LiveApply['host'] => ({
  root,
  bootID: async () => 'boot',
  softBootSince: async () => undefined,
  kernelCommandLine: async () => undefined,
  powerOff: async () => undefined,
  bootSettled: async () => undefined,
  reboot: async () => undefined,
  rebootSoftly: async () => undefined,
  unlockUsr: async () => undefined,
});

/**
 * The first boot of a machine that was installed with an image: no daemon has run before it. systemd-tmpfiles brings
 * what its fragment has, and the daemon the rest (daemon/steps/verify.ts, bringMissingContent).
 *
 * @param node as installed. @throws Refused, BrokenPromise
 */
export async function bootFirst(node: Node): Promise<void> {
  const { root } = node;
  presetUnits(root);
  if (hasFragments(root)) runTmpfiles(root);
  const to = await carriedBy(root);
  if (to === undefined) throw new TypeError(`${root} carries no config`);
  const write = { from: undefined, to, force: true, isBooted: true };
  await mayRefuse('node', () => writeContent(targetOf(node), write, { signal }));
  await settle(node);
  await requireUnchanged(root, LAYERED, 'after the first boot');
}

/**
 * systemd follows the presets when a machine boots for the first time (machine-id(5)), of all units if it was built so.
 */
function presetUnits(root: string): void {
  const place = path.join(root, 'etc/systemd/system-preset/20-shale.preset');
  if (!existsSync(place)) return;
  const lines = readFileSync(place, 'utf8').trimEnd().split('\n');
  const names = lines.filter((line) => !line.startsWith('#')).flatMap((line) => line.split(' ')[1] ?? []);
  const units = path.join(root, 'etc/systemd/system');
  const directories = () =>
    readdirSync(units, { recursive: true, withFileTypes: true }).filter((each) => each.isDirectory());
  const before = directories();
  // Of a unit that the base doesn't have nothing is preset.
  for (const name of names) spawnSync('systemctl', [`--root=${root}`, 'preset', name]);
  // It removes a directory that is empty, and Debian 12 looks for units below /lib, which is /usr/lib.
  for (const { parentPath, name } of before) mkdirSync(path.join(parentPath, name), { recursive: true });
  for (const each of readdirSync(units, { recursive: true, withFileTypes: true })) {
    const place = path.join(each.parentPath, each.name);
    const target = each.isSymbolicLink() ? readlinkSync(place) : '';
    if (!target.startsWith('/lib/')) continue;
    unlinkSync(place);
    symlinkSync(`/usr${target}`, place);
  }
}

async function settle(node: Node): Promise<void> {
  const content = await managedContent(node.root, LAYERED);
  const { left } = await settleStateContent(targetOf(node), content, signal);
  if (left.length > 0) node.complaints.push(`left behind: ${left.join('; ')}`);
}

async function requireUnchanged(root: string, current: Current | undefined, when: string): Promise<void> {
  const drifts = await verifyContent({ root }, await managedContent(root, current), signal);
  if (drifts.length === 0) return;
  throw new BrokenPromise(
    `${when} is reported as changed: ${drifts.map(({ message }) => message).join('; ')}`,
  );
}

function deployment(root: string): NodeDeployment {
  return { id: root, labels: {}, root, kernelArguments: [] };
}
