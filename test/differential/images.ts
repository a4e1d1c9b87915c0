import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { MachineConfig } from '../../api/machine-config.ts';
import { layerContent } from '../../builder/layer/layer-content.ts';
import type { BaseTree } from '../../image/base/base-tree.ts';
import { LayerFold } from '../../image/base/fold-layers.ts';
import { digestOf } from '../../image/digest.ts';
import { readLayer } from '../../image/layer/read-layer.ts';
import { writeLayer } from '../../image/layer/write-layer.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';
import { renderPool } from '../../machineconfig/render.ts';
import { applyLayer, placeOf } from './apply-layer.ts';
import { type Case, machineConfigOf } from './cases.ts';
import { copyTree } from './listing.ts';
import { readTar, writeTar } from './tar.ts';
import type { TreeItem } from './tree-item.ts';

/** A rendered config, as an object and decoded. */
export interface Rendered {
  readonly object: MachineConfig;
  readonly config: NodeConfig;
}

/** Something of the product says no, before a node is touched. */
export class Refused extends Error {
  override readonly name = 'Refused';
  readonly by: 'render' | 'build' | 'standard' | 'node' | 'live';

  constructor(by: Refused['by'], why: string) {
    super(why);
    this.by = by;
  }
}

const POOL = {
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfigPool',
  metadata: { name: 'worker', uid: 'uid-of-worker' },
  spec: {
    machineConfigSelector: { matchLabels: { 'machineconfiguration.openshift.io/role': 'worker' } },
  },
} as const;

/** @returns one of a case's configs as the operator renders it. @throws Refused */
export function renderItems(items: Case['configs']['A']): Rendered {
  const rendering = renderPool({ pool: POOL, configs: [machineConfigOf(items)], controllerVersion: 'v1' });
  if (!rendering.ok) throw new Refused('render', JSON.stringify(rendering.problems));
  const parsed = parseNodeConfig(rendering.rendered);
  if (!parsed.ok) throw new Error(`rendered, and can't be parsed: ${JSON.stringify(parsed.problems)}`);
  return { object: rendering.rendered, config: parsed.config };
}

/** @returns the layer that the builder appends to a base, uncompressed. @throws Refused */
export async function layerOf({ object, config }: Rendered, layers: Case['layers']): Promise<Buffer> {
  const base = await baseTreeOf(layers);
  const content = layerContent(config, object, { base });
  if (!content.ok) {
    throw new Refused('build', content.refusals.map(({ subject, why }) => `${subject}: ${why}`).join('; '));
  }
  const layer = await writeLayer(content.entries, { below: (name) => base.at(name) });
  return gunzipSync(layer.bytes);
}

/** @returns what the builder knows of a base, from its layers as a registry has them. */
async function baseTreeOf(layers: Case['layers']): Promise<BaseTree> {
  const fold = new LayerFold();
  const signal = new AbortController().signal;
  for (const items of layers) {
    const bytes = writeTar(items);
    const blob = (async function* () {
      yield bytes;
    })();
    await fold.add(
      readLayer(blob, { mediaType: LAYER, diffId: digestOf(bytes) }, signal, { special: 'as files' }),
    );
  }
  return fold.finish();
}

const LAYER = 'application/vnd.oci.image.layer.v1.tar';

/**
 * Makes what an ostree system has of an image: its tree, with /etc as /usr/etc and nothing in /var.
 *
 * @param place where it is to be; must not be there.
 */
export function deploy(place: string, layers: readonly (readonly TreeItem[])[]): void {
  mkdirSync(place);
  chmodSync(place, 0o755);
  for (const items of layers) applyLayer(place, items);
  toDeployment(place);
}

/** Makes a deployment of an image's tree. */
function toDeployment(place: string): void {
  renameSync(path.join(place, 'etc'), path.join(place, 'usr/etc'));
  rmSync(path.join(place, 'var'), { recursive: true, force: true });
  mkdirSync(path.join(place, 'var'));
}

/** @returns the items of an archive. */
export function itemsOf(layer: Buffer): readonly TreeItem[] {
  return readTar(layer);
}

/** Makes the root of a machine that was installed with an image: its /etc is the image's, and its /var as given. */
export function install(
  image: string,
  root: string,
  { state, capabilities }: Pick<Case, 'state' | 'capabilities'>,
): void {
  copyTree(image, root, capabilities);
  copyEtc(root, capabilities);
  applyLayer(root, state);
}

/** ostree copies each file of /usr/etc: two names of one are two files in /etc. */
function copyEtc(root: string, capabilities: boolean): void {
  copyTree(path.join(root, 'usr/etc'), path.join(root, 'etc'), capabilities, { hardLinks: false });
}

/**
 * What ostree makes of /etc for the next boot: the next image's, and over it what the running one has otherwise than
 * its own image (libostree merge_configuration_from). Directories that both have keep the next image's attributes.
 */
export function mergeEtc(running: string, booted: string, next: string, capabilities: boolean): void {
  const etc = path.join(next, 'etc');
  copyEtc(next, capabilities);
  const compare = (below: string) => {
    const [ours, base] = [path.join(running, 'etc', below), path.join(booted, 'usr/etc', below)];
    for (const name of new Set([...namesIn(ours), ...namesIn(base)])) {
      const each = path.join(below, name);
      if (isSame(path.join(running, 'etc', each), path.join(booted, 'usr/etc', each))) {
        if (isDirectory(path.join(running, 'etc', each))) compare(each);
        continue;
      }
      const target = path.join(etc, each);
      const source = path.join(running, 'etc', each);
      if (isDirectory(source) && isDirectory(target)) {
        compare(each);
        continue;
      }
      rmSync(target, { recursive: true, force: true });
      if (!existsAt(source)) continue;
      requireParents(running, next, each);
      copyTree(source, target, capabilities);
    }
  };
  compare('');
}

function requireParents(running: string, next: string, each: string): void {
  const parent = path.dirname(each);
  if (parent === '.' || isDirectory(path.join(next, 'etc', parent))) return;
  requireParents(running, next, parent);
  const { mode, uid, gid } = lstatSync(path.join(running, 'etc', parent));
  applyLayer(path.join(next, 'etc'), [
    { type: 'directory', path: `/${parent}`, mode: mode & 0o7777, uid, gid },
  ]);
}

function isSame(a: string, b: string): boolean {
  const [one, other] = [lstatSync(a, { throwIfNoEntry: false }), lstatSync(b, { throwIfNoEntry: false })];
  if (one === undefined || other === undefined) return one === other;
  if (one.mode !== other.mode || one.uid !== other.uid || one.gid !== other.gid) return false;
  if (one.isFile()) return readFileSync(a).equals(readFileSync(b));
  if (one.isSymbolicLink()) return readlinkSync(a) === readlinkSync(b);
  return true;
}

function existsAt(place: string): boolean {
  return lstatSync(place, { throwIfNoEntry: false }) !== undefined;
}

function isDirectory(place: string): boolean {
  return lstatSync(place, { throwIfNoEntry: false })?.isDirectory() === true;
}

function namesIn(place: string): readonly string[] {
  return isDirectory(place) ? readdirSync(place) : [];
}

/**
 * What systemd-tmpfiles does at a boot, with all fragments of the root, or live with one. Outside of a machine it knows
 * the users of /etc/passwd alone, and on one also those that nss-altfiles finds in /usr/lib.
 *
 * @returns what it printed where it failed.
 */
export function runTmpfiles(root: string, fragment?: string): string {
  const accounts = ['passwd', 'group'].map((name) => {
    const place = placeOf(root, `/etc/${name}`);
    const more = path.join(root, 'usr/lib', name);
    return { place, more, before: readFileSync(place) };
  });
  for (const { place, more, before } of accounts) {
    if (existsSync(more)) writeFileSync(place, Buffer.concat([before, readFileSync(more)]));
  }
  const which = fragment === undefined ? ['--boot'] : [fragment];
  try {
    execFileSync('systemd-tmpfiles', ['--create', `--root=${root}`, ...which], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    return '';
  } catch (error) {
    return String((error as { stderr?: Buffer }).stderr ?? error);
  } finally {
    for (const { place, before } of accounts) writeFileSync(place, before);
  }
}

/** @returns whether systemd-tmpfiles has anything to do at a boot. */
export function hasFragments(root: string): boolean {
  return readdirSync(path.join(root, 'usr/lib/tmpfiles.d')).some((name) => name.endsWith('.conf'));
}
