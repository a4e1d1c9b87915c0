import { chmod, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { deployment, stepUnderTest } from '../../../test/fixtures/step-context.ts';
import { contentDigestAt } from '../../files/read-tree.ts';
import { contentDigest, readTreeEntry } from '../../files/tree-entry.ts';
import type { NodeDeployment } from '../../os/backend.ts';
import {
  isManaged,
  readManagedPaths,
  readUnlabelledPaths,
  writeManagedPaths,
} from '../../records/managed-paths.ts';
import { applyLive, type LiveApply, undoLive, verifyLive } from './live-apply.ts';

/** Files by path; what no list of a tree names is not there. */
type Files = Readonly<Record<string, string>>;

async function put(root: string, files: Files): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    const place = path.join(root, name);
    await mkdir(path.dirname(place), { recursive: true });
    await writeFile(place, text);
  }
}

interface Given {
  readonly booted?: Files;
  readonly staged?: Files;
  /** What the running root has beside what it booted. */
  readonly running?: Files;
  readonly deployments?: Partial<NodeDeployment>;
}

/** A root, the image that it booted and the one that is staged. /etc is what was booted, unless it says otherwise. */
async function trees({ booted = {}, staged = {}, running = {}, deployments = {} }: Given) {
  const labelled: (readonly string[])[] = [];
  const { context, root } = await stepUnderTest({
    ports: { relabel: async (_root, names) => void labelled.push(names) },
  });
  const places = { booted: path.join(root, 'run/booted'), staged: path.join(root, 'run/staged') };
  for (const place of [root, places.booted, places.staged])
    await mkdir(path.join(place, 'usr/etc'), { recursive: true });
  await put(places.booted, booted);
  await put(places.staged, staged);
  const inEtc = Object.entries(booted).filter(([name]) => name.startsWith('usr/etc/'));
  await put(root, booted);
  await put(root, Object.fromEntries(inEtc.map(([name, text]) => [name.slice(4), text])));
  await put(root, running);
  const apply: LiveApply = {
    host: context.ports.host,
    relabel: context.ports.relabel,
    booted: deployment(places.booted),
    staged: deployment(places.staged, deployments),
    signal: context.signal,
  };
  return {
    root,
    ...places,
    apply,
    labelled,
    text: (name: string) => readFile(path.join(root, name), 'utf8'),
    kindAt: async (name: string) => (await readTreeEntry(path.join(root, name)))?.kind,
  };
}

const changed: Given = { booted: { 'usr/etc/app.conf': 'old' }, staged: { 'usr/etc/app.conf': 'new' } };

test("what is about to be put into /etc is on record as Shale's before it is there", async () => {
  const { root, staged, apply, text } = await trees(changed);
  const digest = contentDigest(await readTreeEntry(path.join(staged, 'usr/etc/app.conf')));
  const killed = applyLive({
    ...apply,
    beforeStep: async ({ kind }) => {
      throw new Error(`killed before ${kind}`);
    },
  });

  await expect(killed).rejects.toThrow('killed before copy');
  expect(await text('etc/app.conf')).toBe('old');
  expect(isManaged(await readManagedPaths(root), '/etc/app.conf', digest)).toBe(true);
  expect(await readUnlabelledPaths(root)).toEqual(['/etc/app.conf']);

  await applyLive(apply);
  expect(await text('etc/app.conf')).toBe('new');
  expect([...(await readManagedPaths(root))]).toEqual([['/etc/app.conf', [digest]]]);
});

test('what was applied live is undone for the image that was booted, and what an admin edited since stays', async () => {
  const { root, apply, text, kindAt, labelled } = await trees({
    booted: { 'usr/etc/app.conf': 'old', 'usr/etc/gone': 'old', 'usr/etc/edited': 'old' },
    staged: { 'usr/etc/app.conf': 'new', 'usr/etc/new/file': 'new', 'usr/etc/edited': 'new' },
  });
  await applyLive(apply);
  await writeFile(path.join(root, 'etc/edited'), "the admin's");
  await writeFile(path.join(root, 'etc/mine'), "the admin's");
  labelled.length = 0;

  const taken = await undoLive(apply);
  expect([...taken].sort()).toEqual(['/etc/app.conf', '/etc/gone', '/etc/new', '/etc/new/file']);
  expect([await text('etc/app.conf'), await text('etc/gone'), await kindAt('etc/new')]).toEqual([
    'old',
    'old',
    undefined,
  ]);
  expect([await text('etc/edited'), await text('etc/mine')]).toEqual(["the admin's", "the admin's"]);
  expect(labelled.flat().sort()).toEqual([...taken].sort());
  expect(await undoLive(apply)).toEqual([]);
});

test('a directory keeps the mode that the node has given it, unless an image changes it', async () => {
  const { root, staged, apply, text } = await trees({
    booted: { 'usr/etc/closed/app.conf': 'old', 'usr/etc/opened/app.conf': 'old' },
    staged: { 'usr/etc/closed/app.conf': 'new', 'usr/etc/opened/app.conf': 'new' },
  });
  const modes = async () =>
    Promise.all(
      ['closed', 'opened'].map(async (name) => {
        const { mode } = await stat(path.join(root, 'etc', name));
        return (mode & 0o7777).toString(8);
      }),
    );
  // As systemd-tmpfiles does at boot, or an admin.
  for (const name of ['closed', 'opened']) await chmod(path.join(root, 'etc', name), 0o700);
  await chmod(path.join(staged, 'usr/etc/opened'), 0o711);
  expect(await verifyLive(apply)).toEqual(['/etc/closed/app.conf', '/etc/opened', '/etc/opened/app.conf']);
  await applyLive(apply);
  expect([await text('etc/closed/app.conf'), await modes()]).toEqual(['new', ['700', '711']]);
  expect(await verifyLive(apply)).toEqual([]);

  const { mode } = await stat(path.join(apply.booted.root, 'usr/etc/opened'));
  await applyLive({ ...apply, staged: apply.booted });
  expect([await text('etc/closed/app.conf'), await modes()]).toEqual([
    'old',
    ['700', (mode & 0o7777).toString(8)],
  ]);
});

describe('a live apply', () => {
  test('brings /usr and /etc, labels what it wrote once, and keeps what an admin edited', async () => {
    const { apply, text, kindAt, labelled, root } = await trees({
      booted: {
        'usr/bin/tool': 'old',
        'usr/bin/gone': 'old',
        'usr/etc/app.conf': 'old',
        'usr/etc/edited': 'old',
      },
      staged: {
        'usr/bin/tool': 'new',
        'usr/bin/added': 'new',
        'usr/etc/app.conf': 'new',
        'usr/etc/edited': 'new',
      },
      running: { 'etc/edited': "the admin's" },
    });
    expect(await verifyLive(apply)).toEqual([
      '/etc/app.conf',
      '/usr/bin/added',
      '/usr/bin/gone',
      '/usr/bin/tool',
    ]);
    await applyLive(apply);
    expect([await text('usr/bin/tool'), await text('usr/bin/added'), await text('etc/app.conf')]).toEqual([
      'new',
      'new',
      'new',
    ]);
    expect([await kindAt('usr/bin/gone'), await text('etc/edited')]).toEqual([undefined, "the admin's"]);
    expect(labelled).toEqual([['/etc/app.conf', '/usr/bin/added', '/usr/bin/gone', '/usr/bin/tool']]);
    expect(await readUnlabelledPaths(root)).toEqual([]);
    expect(await text('usr/etc/app.conf')).toBe('old');
    expect(await verifyLive(apply)).toEqual([]);
  });

  test('that changes nothing labels nothing', async () => {
    const { apply, labelled } = await trees({
      booted: { 'usr/bin/tool': 'same' },
      staged: { 'usr/bin/tool': 'same' },
    });
    expect([...(await applyLive(apply))]).toEqual([]);
    expect(labelled).toEqual([[]]);
  });

  test('labels again what a killed one has written without labels', async () => {
    const { apply, labelled } = await trees(changed);
    const relabel = () => Promise.reject(new Error('killed'));
    await expect(applyLive({ ...apply, relabel })).rejects.toThrow('killed');
    await applyLive(apply);
    expect(labelled).toEqual([['/etc/app.conf']]);
  });

  test("takes what is on record, or was handed over, for no admin's edit", async () => {
    const given: Given = { ...changed, running: { 'etc/app.conf': "Shale's", 'etc/other': "Shale's" } };
    const recorded = await trees(given);
    const digests = async (name: string) => [await contentDigestAt(recorded.root, name)];
    await writeManagedPaths(recorded.root, new Map([['/etc/app.conf', await digests('/etc/app.conf')]]));
    const handedOver = new Map([['/etc/other', await digests('/etc/other')]]);
    await applyLive({ ...recorded.apply, handedOver });
    expect(await recorded.text('etc/app.conf')).toBe('new');
    expect(await recorded.kindAt('etc/other')).toBeUndefined();
    const unknown = await trees(given);
    await applyLive(unknown.apply);
    expect([await unknown.text('etc/app.conf'), await unknown.text('etc/other')]).toEqual([
      "Shale's",
      "Shale's",
    ]);
  });

  test('stops before the next step when the signal is aborted', async () => {
    const { apply, text } = await trees({
      booted: { 'usr/bin/a': 'old', 'usr/bin/b': 'old' },
      staged: { 'usr/bin/a': 'new', 'usr/bin/b': 'new' },
    });
    const down = new AbortController();
    const steps = [];
    const beforeStep = async (step: object) => {
      steps.push(step);
      down.abort();
    };
    await expect(applyLive({ ...apply, beforeStep, signal: down.signal })).rejects.toThrow(/abort/);
    expect([steps.length, await text('usr/bin/b')]).toEqual([1, 'old']);
  });
});

const KARGS = 'usr/lib/bootc/kargs.d/50-shale.toml';

test('an argument of both images that somebody has removed from the host prevents no live apply', async () => {
  const kargs = { [KARGS]: 'kargs = ["audit=1"]' };
  const { apply, text } = await trees({
    booted: { ...kargs, 'usr/etc/app.conf': 'old' },
    staged: { ...kargs, 'usr/etc/app.conf': 'new', 'etc/app.conf': 'new' },
    running: { 'etc/app.conf': 'old' },
    deployments: { kernelArguments: ['audit=1'] },
  });
  await applyLive(apply);
  expect(await text('etc/app.conf')).toBe('new');
});

describe('only a reboot brings', () => {
  const refused = async (given: Given, why: string) => {
    const { apply, text } = await trees({ ...changed, ...given });
    await expect(applyLive(apply)).rejects.toMatchObject({
      name: 'LiveApplyRefused',
      message: expect.stringContaining(why),
    });
    await expect(verifyLive(apply)).rejects.toThrow(why);
    expect(await text('usr/etc/app.conf').catch(() => 'old')).toBe('old');
  };

  test('other kernel arguments', () =>
    refused({ deployments: { kernelArguments: ['quiet'] } }, 'running with "", staged "quiet"'));

  test('other kernel arguments, also where somebody has changed those of the host', () =>
    refused(
      {
        booted: { [KARGS]: 'kargs = ["audit=1"]' },
        staged: { [KARGS]: 'kargs = ["audit=0"]' },
        deployments: { kernelArguments: ['audit=0'] },
      },
      'staged "audit=0"',
    ));

  test.each(['usr/lib/modules/6.1/vmlinuz', 'usr/lib/ostree-boot/vmlinuz'])('another kernel: %s', (name) =>
    refused({ booted: { [name]: 'old' }, staged: { [name]: 'new' } }, `/${name} differs`),
  );

  test("other files on a deployment's top level", () =>
    refused({ staged: { 'opt/file': 'x' } }, '/opt differs'));

  test('the files of an image without directories', async () => {
    const { apply, staged } = await trees(changed);
    await rm(path.join(staged, 'usr'), { recursive: true });
    await expect(applyLive(apply)).rejects.toThrow(`${staged} has no /usr to read`);
  });
});

test("what belongs to the host is not compared on a deployment's top level", async () => {
  const { apply } = await trees({ staged: { 'var/x': 'x', 'boot/x': 'x', 'run/x': 'x' } });
  expect(await verifyLive(apply)).toEqual([]);
});

test('the file that ostree mounts a deployment from takes part in no live apply', async () => {
  const { apply } = await trees({ booted: { '.ostree.cfs': 'old' }, staged: { '.ostree.cfs': 'new' } });
  await applyLive(apply);
  expect(await verifyLive(apply)).toEqual([]);
});
