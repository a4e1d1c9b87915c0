import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { nodePaths } from '../../api/names.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import { readOriginals } from '../../daemon/content/write/originals.ts';
import { finishOrUndoWrite } from '../../daemon/content/write/write-log.ts';
import { readDeliveries } from '../../daemon/host/certificates/deliver.ts';
import { readArmedBoot } from '../../daemon/next-boot/armed-boot.ts';
import { imagesOfPolicy } from '../../daemon/os/image-policy/keep-image-policy.ts';
import { readImageRecord } from '../../daemon/os/ostree/image-record.ts';
import { extraArgumentsOf } from '../../daemon/os/ostree/kernel-arguments.ts';
import { readVerifiedImages } from '../../daemon/os/require-signature.ts';
import { readPins } from '../../daemon/pinned-images/pins.ts';
import { readCurrent } from '../../daemon/records/current.ts';
import { RecordError } from '../../daemon/records/durable-json.ts';
import { openJournal } from '../../daemon/records/journal.ts';
import { readLastRepair, readLastUpdate } from '../../daemon/records/last-update.ts';
import { readManagedPaths, readStatePaths, readUnlabelledPaths } from '../../daemon/records/managed-paths.ts';
import { withLaterFields } from '../fixtures/later-fields.ts';

/**
 * After a downgrade the daemon finds records on the node's disk that a later version wrote. What it doesn't know of
 * them it ignores; a record that names a later version it refuses, because that is what the number is for.
 */

const DIGEST = `sha256:${'a'.repeat(64)}`;
const IMAGE = `registry.example.com/os/worker@${DIGEST}` as DigestedPullspec;
const BASE = `registry.example.com/os/base@${DIGEST}`;
const KEY = `sha256:${'b'.repeat(64)}`;
const TIME = '2026-01-01T00:00:00Z';

const actions = [{ type: 'DaemonReload' }, { type: 'Restart', service: 'chronyd.service' }];
const cause = { subject: '/etc/a', kind: 'file', change: 'changed', rule: 'policy for /etc/a', actions };
const plan = {
  config: 'rendered-2',
  image: IMAGE,
  staged: true,
  actions,
  causes: [cause],
  source: 'the label',
};
const layered = { version: 1, mode: 'Layered', config: 'rendered-2', image: IMAGE, baseImage: BASE };
const standard = {
  version: 1,
  mode: 'Standard',
  config: 'rendered-1',
  rendered: {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name: 'rendered-1', annotations: { a: 'b' } },
    // Of what the cluster has written, nothing is left out.
    spec: { kernelArguments: ['quiet'] },
  },
  baseImage: BASE,
  kernelArguments: ['quiet'],
  packages: { installed: ['usbguard'], removed: [] },
};
const entry = { version: 1, plan, next: layered, bootID: 'boot-1', startedAt: TIME };
const times = { config: 'rendered-2', image: IMAGE, actions, startedAt: TIME, finishedAt: TIME };
const lastUpdate = {
  ...times,
  causes: [cause],
  source: 'the label',
  bootIDBefore: 'boot-1',
  bootIDAfter: 'boot-2',
  result: 'RolledBack',
  reason: 'HealthCheckFailed',
  earlier: times,
};
const paths = { version: 1, paths: { '/etc/a': [DIGEST] } };
const readJournal = (root: string) => openJournal(root).read();
/** Of the write log, the case in which there is nothing to undo but the records. */
const undoWrite = async (root: string) => {
  const stateDir = path.join(root, nodePaths.state);
  const target = { root, stateDir } as unknown as Parameters<typeof finishOrUndoWrite>[0];
  return [await finishOrUndoWrite(target), await readOriginals(stateDir), await readManagedPaths(root)];
};
interface Case {
  /** Below the state directory. */
  readonly file: string;
  readonly record: object;
  read(root: string): Promise<unknown>;
  /** Fields whose own fields are entries. */
  readonly maps?: readonly string[];
}

const inState = (read: (stateDir: string) => Promise<unknown>) => (root: string) =>
  read(path.join(root, nodePaths.state));

const records: Readonly<Record<string, Case>> = {
  'what the node runs, in standard mode': {
    file: 'current.json',
    record: standard,
    read: readCurrent,
    maps: ['annotations', 'spec'],
  },
  'what the node runs, in layered mode': { file: 'current.json', record: layered, read: readCurrent },
  'an update that is being applied': {
    file: 'journal.json',
    record: { ...entry, step: 'applying' },
    read: readJournal,
  },
  'an update that reboots': {
    file: 'journal.json',
    record: { ...entry, step: 'rebooting' },
    read: readJournal,
  },
  'an update that is being verified': {
    file: 'journal.json',
    record: { ...entry, step: 'verifying', verifying: { bootID: 'boot-2', sinceMs: 1, boots: 1 } },
    read: readJournal,
  },
  'an update that is being rolled back': {
    file: 'journal.json',
    record: { ...entry, step: 'rollingBack', failedBoot: 'boot-2', reason: 'ConfigDrift', why: 'it differs' },
    read: readJournal,
  },
  'a target that is the next boot': {
    file: 'armed-boot.json',
    record: {
      version: 1,
      plan,
      next: layered,
      softRebootAllowed: false,
      bootID: 'boot-1',
      deployment: 'os-1',
      etc: DIGEST,
    },
    read: readArmedBoot,
  },
  'the last update': { file: 'last-update.json', record: lastUpdate, read: readLastUpdate },
  'the last repair': {
    file: 'last-repair.json',
    record: { id: '1', by: 'ann', finishedAt: TIME, result: 'Failed', message: 'why' },
    read: readLastRepair,
  },
  'the managed paths': {
    file: 'managed-paths.json',
    record: paths,
    read: readManagedPaths,
    maps: ['paths'],
  },
  'paths without a label': {
    file: 'unlabelled-paths.json',
    record: { version: 1, paths: ['/etc/a'] },
    read: readUnlabelledPaths,
  },
  'the state paths': { file: 'state-paths.json', record: paths, read: readStatePaths, maps: ['paths'] },
  'the pinned images': {
    file: 'pinned-images.json',
    record: { version: 1, containerRuntime: 'cri-o', images: [IMAGE] },
    read: readPins,
  },
  'the images whose signatures were verified': {
    file: 'verified-images.json',
    record: { version: 1, images: [{ image: IMAGE, key: KEY }] },
    read: readVerifiedImages,
  },
  'the image policy': {
    file: 'image-policy.json',
    record: {
      version: 1,
      images: [{ image: IMAGE, publicKey: 'pem' }],
      entries: { 'registry.example.com': ['key'] },
      before: '{}',
      written: KEY,
    },
    read: imagesOfPolicy,
    maps: ['entries'],
  },
  'the originals': {
    file: 'originals.json',
    record: {
      version: 1,
      paths: {
        '/etc/a': { kind: 'image' },
        '/etc/b': { kind: 'directory', mode: 0o755, uid: 0, gid: 0 },
        '/etc/c': { kind: 'copy' },
      },
      made: ['/etc/d'],
    },
    read: inState(readOriginals),
    maps: ['paths'],
  },
  'an interrupted write': {
    file: 'write.json',
    record: {
      version: 1,
      root: '/',
      touched: [],
      passwords: [],
      originals: { version: 1, paths: {}, made: ['/etc/d'] },
      managed: [['/etc/a', [DIGEST]]],
    },
    read: undoWrite,
    maps: ['paths'],
  },
  'the certificates': {
    file: 'certificates.json',
    record: { version: 1, given: { kubeletCA: { version: '1', files: { '/etc/ca.crt': KEY }, untold: [] } } },
    read: readDeliveries,
    maps: ['files'],
  },
  'an imported image': {
    file: `images/${'a'.repeat(64)}.json`,
    record: { version: 1, labels: { a: 'b' }, layers: [DIGEST], kernelArguments: ['quiet'] },
    read: inState((directory) => readImageRecord(directory, IMAGE)),
    maps: ['labels'],
  },
  'the kernel arguments of deployments': {
    file: 'kernel-arguments.json',
    record: { version: 1, deployments: [{ image: IMAGE, kernelArguments: ['a', 'b'], extra: ['b'] }] },
    read: inState((directory) => extraArgumentsOf(directory, { image: IMAGE, kernelArguments: ['a', 'b'] })),
  },
};

async function readAs(record: unknown, { file, read }: Case): Promise<unknown> {
  const root = await mkdtemp(path.join(tmpdir(), 'shale-later-'));
  onTestFinished(() => rm(root, { recursive: true }));
  const place = path.join(root, nodePaths.state, file);
  await mkdir(path.dirname(place), { recursive: true });
  await writeFile(place, JSON.stringify(record));
  return read(root);
}

describe.each(Object.entries(records))('%s', (_what, record) => {
  test('is read as it is, whatever a later version has added', async () => {
    const known = await readAs(record.record, record);
    expect(known).toBeDefined();
    expect(await readAs(withLaterFields(record.record, record.maps), record)).toEqual(known);
  });

  test('is refused where a later version says that it can’t be read', async () => {
    const failed = await readAs({ ...record.record, version: 2 }, record).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(RecordError);
    expect(String(failed)).toContain(
      `${record.file}: a later version of Shale wrote this record (version 2;`,
    );
  });
});
