/**
 * The judges are judged: what the differential test reads and expects is what programs do that share no line with it.
 */
import { lstatSync, mkdirSync, mkdtempSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { emptyNodeConfig, type NodeUnit } from '../../machineconfig/node-config.ts';
import { patience } from '../fixtures/patience.ts';
import { everyCase } from '../fixtures/sample.ts';
import { applyLayer } from './apply-layer.ts';
import { type Case, casesOf, formatCase } from './cases.ts';
import { deploy, install, itemsOf, layerOf, Refused, renderItems } from './images.ts';
import { differences, type Listing, listTree } from './listing.ts';
import { writeLayout } from './oci-layout.ts';
import { writeTar } from './tar.ts';
import { directory, file, type TreeItem } from './tree-item.ts';
import { drawnSeed } from './try-cases.ts';
import { type Node, writeStandard } from './ways.ts';

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(path.join(tmpdir(), 'shale-differential-tools-'));
});
afterAll(() => rmSync(dir, { recursive: true }));

const RUNS = everyCase ? 300 : 10;

test('umoci reads images as the differential test does, and an image that is built on them', {
  timeout: patience(everyCase ? 1_800_000 : 120_000),
}, async () => {
  let count = 0;
  await fc.assert(
    fc.asyncProperty(casesOf(['reboot']), async (given) => {
      const layer = await layerOfCase(given);
      if (layer === undefined) return;
      count += 1;
      const place = path.join(dir, `umoci-${count}`);
      const ours = path.join(place, 'ours');
      mkdirSync(ours, { recursive: true });
      for (const items of [...given.layers, itemsOf(layer)]) applyLayer(ours, items);
      const layout = path.join(place, 'layout');
      writeLayout(layout, 'shale', [...given.layers.map(writeTar), layer]);
      const theirs = await unpack(layout, 'shale', path.join(place, 'bundle'));
      expect(differences(list(ours, given), list(theirs, given)), formatCase(given)).toEqual([]);
      for (const item of ENGINE) for (const root of [ours, theirs]) applyLayer(root, [item]);
      await execa('umoci', ['repack', '--image', `${layout}:built`, path.join(place, 'bundle')]);
      const built = path.join(place, 'built');
      // Without the configuration of a container, for which umoci would read a passwd that may be a directory here.
      await execa('umoci', ['raw', 'unpack', '--image', `${layout}:built`, built]);
      expect(differences(list(ours, given), list(built, given)), formatCase(given)).toEqual([]);
      rmSync(place, { recursive: true });
    }),
    { seed: drawnSeed, numRuns: RUNS },
  );
});

/** What a Containerfile might add. */
const ENGINE: readonly TreeItem[] = [
  directory('/etc/ssl', { mode: 0o755 }),
  ...['/etc/ssl/certs/engine', '/etc/ssh/sshd_config.d/engine', '/usr/sbin/engine', '/etc/engine'].map((at) =>
    file(at, 'engine'),
  ),
];

async function layerOfCase({ configs, layers }: Case): Promise<Buffer | undefined> {
  try {
    return await layerOf(renderItems(configs.A), layers);
  } catch (error) {
    if (error instanceof Refused) return undefined;
    throw error;
  }
}

async function unpack(layout: string, tag: string, bundle: string): Promise<string> {
  await execa('umoci', ['unpack', '--image', `${layout}:${tag}`, bundle]);
  return path.join(bundle, 'rootfs');
}

function list(root: string, { capabilities }: Pick<Case, 'capabilities'>): Listing {
  return listTree(root, { skip: () => false, capabilities });
}

test('systemctl leaves the links that standard mode makes', {
  timeout: patience(everyCase ? 1_800_000 : 120_000),
}, async () => {
  let count = 0;
  await fc.assert(
    fc.asyncProperty(casesOf(['standard']), async (given) => {
      const units = unitsOf(given);
      if (units === undefined || units.size === 0) return;
      count += 1;
      const place = path.join(dir, `systemctl-${count}`);
      mkdirSync(place);
      deploy(path.join(place, 'base'), given.layers);
      const [ours, theirs] = ['ours', 'theirs'].map((name): Node => {
        const root = path.join(place, name);
        install(path.join(place, 'base'), root, given);
        return {
          root,
          booted: path.join(place, 'base'),
          capabilities: false,
          runsTmpfiles: false,
          complaints: [],
        };
      }) as [Node, Node];
      await writeStandard(ours, emptyNodeConfig, { ...emptyNodeConfig, units });
      await enableBySystemctl(theirs.root, [...units.values()]);
      expect(differences(unitsIn(theirs.root), unitsIn(ours.root)), formatCase(given)).toEqual([]);
      rmSync(place, { recursive: true });
    }),
    { seed: drawnSeed, numRuns: RUNS * 4 },
  );
});

function unitsOf({ configs }: Case): ReadonlyMap<string, NodeUnit> | undefined {
  try {
    return renderItems({ ...configs.A, files: [], directories: [], links: [], users: [] }).config.units;
  } catch (error) {
    if (error instanceof Refused) return undefined;
    throw error;
  }
}

/**
 * Texts of units, and which unit each link leads to: of a link systemd minds the name of the unit
 * (unit_file_resolve_symlink). systemctl removes a directory that is empty.
 */
function unitsIn(root: string): Listing {
  const isOfUnits = ([at, line]: readonly [string, string]) =>
    at.startsWith('/etc/systemd/system') && !line.startsWith('directory');
  const all = [...list(root, { capabilities: false })].filter(isOfUnits);
  return new Map(all.map(([at, line]) => [at, line.startsWith('symlink') ? leadsTo(root, at) : line]));
}

function leadsTo(root: string, at: string): string {
  const target = readlinkSync(root + at);
  const isThere = target === '/dev/null' || lstatSync(root + target, { throwIfNoEntry: false }) !== undefined;
  return `leads to ${path.basename(target)}${isThere ? '' : ', which is not there'}`;
}

/**
 * As MCO's daemon does: texts first, then what is disabled, enabled and masked (writeUnits). A mask takes the place of
 * a file there (writeUnit removes it), which systemctl refuses.
 */
async function enableBySystemctl(root: string, units: readonly NodeUnit[]): Promise<void> {
  const at = path.join(root, 'etc/systemd/system');
  for (const { name, contents, masked, dropins } of units) {
    if (contents !== undefined && !masked) {
      rmSync(path.join(at, name), { force: true });
      writeFileSync(path.join(at, name), contents);
    }
    for (const [dropin, text] of dropins) {
      mkdirSync(path.join(at, `${name}.d`), { recursive: true });
      writeFileSync(path.join(at, `${name}.d`, dropin), text);
    }
  }
  const named = (wanted: (unit: NodeUnit) => boolean) => units.filter(wanted).map(({ name }) => name);
  await systemctl(
    root,
    'disable',
    named(({ masked, enabled }) => !masked && enabled === false),
  );
  await systemctl(
    root,
    'enable',
    named(({ masked, enabled }) => !masked && enabled === true),
  );
  const masked = named((unit) => unit.masked);
  for (const name of masked) rmSync(path.join(at, name), { force: true });
  await systemctl(root, 'mask', masked);
}

async function systemctl(root: string, verb: string, names: readonly string[]): Promise<void> {
  for (const name of names)
    await execa('systemctl', [`--root=${root}`, verb, '--force', name], { reject: false });
}
