import { access, mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import type { UpdatePlan } from '../../api/machine-config-node.ts';
import { nodePaths } from '../../api/names.ts';
import {
  deployment,
  imageOf,
  LEASE_HOLDER,
  type NodeUnderTest,
  observation,
  standard,
  stepUnderTest,
} from '../../test/fixtures/step-context.ts';
import { isArmed } from '../host/boot-watchdog/arm.ts';
import type { StageOptions } from '../os/backend.ts';
import { type Current, readCurrent, writeCurrent } from '../records/current.ts';
import { writeRecord } from '../records/durable-json.ts';
import type { JournalEntry } from '../records/journal.ts';
import { writeManagedPaths } from '../records/managed-paths.ts';
import { readStatePaths } from '../records/state-paths.ts';
import { ForeignChangeError } from '../standard/write-config.ts';
import { contentDigestAt } from '../tree/read-tree.ts';
import { rebootInto, requestReboot } from './reboot.ts';
import type { Update } from './update.ts';

const image: Extract<Current, { mode: 'Layered' }> = {
  version: 1,
  mode: 'Layered',
  config: 'rendered-2',
  image: imageOf('2'),
};
const plan = (more: Partial<UpdatePlan> = {}): UpdatePlan => ({
  config: 'rendered-2',
  staged: true,
  actions: [{ type: 'Reboot' }],
  causes: [],
  source: 'a test',
  ...more,
});
const into = (next: Current, more: Partial<UpdatePlan> = {}): Update => ({ plan: plan(more), next });
/** Of an update that was started in this boot. */
const begun = (update: Update): JournalEntry => ({
  version: 1,
  step: 'applying',
  ...update,
  bootID: 'boot-1',
  startedAt: '2026-01-01T00:00:00.000Z',
});
const withFile = (
  config: string,
  content: string,
  more: Partial<Extract<Current, { mode: 'Standard' }>> = {},
) => ({
  ...standard(config, [{ path: '/etc/app.conf', content }]),
  ...more,
});

/** A node with a staged deployment, whose machine goes down when it is asked to reboot. */
async function powered({ context = {}, host = {}, backend = {}, ...node }: NodeUnderTest = {}) {
  const down = new AbortController();
  const done: string[] = [];
  const asked: StageOptions[] = [];
  const handedOver: ReadonlyMap<string, string>[] = [];
  let stagedRoot = '';
  const status = async () => ({
    booted: deployment('/booted', { image: imageOf('0') }),
    staged: deployment(stagedRoot),
  });
  const test = await stepUnderTest({
    leaseHolder: LEASE_HOLDER,
    ...node,
    host: {
      bootID: async () => 'boot-1',
      reboot: async (reason) => {
        done.push(`reboot: ${reason}`);
        down.abort();
      },
      ...host,
    },
    backend: {
      status,
      stage: async (name, options) => {
        done.push(`stage ${name}`);
        asked.push(options);
        return deployment(stagedRoot, { image: name });
      },
      finalizeStaged: async (managed) => {
        done.push('finalize');
        handedOver.push(managed);
        return deployment(stagedRoot);
      },
      rollbackScript: async () => 'true',
      prepareSoftReboot: async () => void done.push('prepare soft reboot'),
      ...backend,
    },
    context: { signal: down.signal, ...context },
  });
  stagedRoot = path.join(test.root, 'staged');
  await mkdir(path.join(stagedRoot, 'etc/systemd/system'), { recursive: true });
  const read = (name: string) => readFile(path.join(test.root, name), 'utf8');
  return { ...test, done, asked, handedOver, down, stagedRoot, read };
}

describe('a reboot into an image', () => {
  test('leaves a journal of what boots next, reports each stage, and then asks for it', async () => {
    const { context, done, asked, phases, events, stagedRoot } = await powered();

    await expect(rebootInto(context, into(image), observation())).rejects.toThrow('aborted');

    expect(done).toEqual([
      `stage ${imageOf('2')}`,
      'finalize',
      `reboot: shale: update to rendered-2 in ${imageOf('2')}`,
    ]);
    expect(asked).toEqual([expect.objectContaining({ evenIfBooted: true })]);
    expect(await context.journal.read()).toMatchObject({
      step: 'rebooting',
      bootID: 'boot-1',
      leaseHolder: LEASE_HOLDER,
      rebootingSince: expect.any(String),
    });
    expect(phases.map(({ kind }) => kind)).toEqual(['applying', 'rebooting']);
    expect(phases[0]).toMatchObject({ doing: 'Preparing the next boot' });
    expect(events).toEqual([`Rebooting into rendered-2 in ${imageOf('2')}: a test`]);
    expect(await isArmed(stagedRoot)).toBe(false);
  });

  test('takes what Shale wrote and nobody touched out of the merge of /etc', async () => {
    const { context, handedOver, root } = await powered();
    await writeFile(path.join(root, 'etc/ours'), 'ours');
    await writeFile(path.join(root, 'etc/edited'), 'ours');
    const digests = [
      await contentDigestAt(root, '/etc/ours'),
      await contentDigestAt(root, '/etc/edited'),
    ] as const;
    await writeManagedPaths(
      root,
      new Map([
        ['/etc/ours', [digests[0]]],
        ['/etc/edited', [digests[1]]],
      ]),
    );
    await writeFile(path.join(root, 'etc/edited'), 'by an admin');

    await expect(rebootInto(context, into(image), observation())).rejects.toThrow('aborted');

    expect(handedOver.map((managed) => [...managed.keys()])).toEqual([['/etc/ours']]);
  });

  test('labels in the next boot what Shale has changed there, and the certificates that it took along', async () => {
    const labelled: (readonly [string, readonly string[]])[] = [];
    const { context, root, stagedRoot } = await powered({
      ports: { relabel: async (tree, names) => void labelled.push([tree, names]) },
    });
    await writeFile(path.join(root, 'etc/ours'), 'ours');
    const written = [await contentDigestAt(root, '/etc/ours')];
    await writeManagedPaths(root, new Map([['/etc/ours', written]]));
    await writeFile(path.join(root, 'etc/ca.crt'), 'PEM');
    const given = { kubeletCA: { version: 'v', files: { '/etc/ca.crt': 'digest' }, untold: [] } };
    await writeRecord(path.join(root, nodePaths.state, 'certificates.json'), { version: 1, given });

    await expect(rebootInto(context, into(image), observation())).rejects.toThrow('aborted');

    expect(labelled).toEqual([[stagedRoot, ['/etc/ours', '/etc/ca.crt']]]);
  });

  test('puts the watchdog into what boots next, where the host is to roll back by itself', async () => {
    const { context, stagedRoot, root } = await powered({
      context: { healthLimits: { checksMs: 1_000, kubeletMs: 1_000 } },
    });
    await expect(rebootInto(context, into(image), observation())).rejects.toThrow();
    expect(await isArmed(stagedRoot)).toBe(true);
    expect(await isArmed(root)).toBe(false);
  });

  test.each(['EROFS', 'EPERM', 'EACCES'])(
    'goes on without a watchdog where %s keeps it out',
    async (code) => {
      const { context, done, events, reasons } = await powered({
        context: { healthLimits: { checksMs: 1_000, kubeletMs: 1_000 } },
        backend: {
          rollbackScript: () => Promise.reject(Object.assign(new Error(`${code}: no`), { code })),
        },
      });
      await expect(rebootInto(context, into(image), observation())).rejects.toThrow();
      expect(reasons[0]).toBe('BootUnwatched');
      expect(events[0]).toContain(`will not roll back by itself if no daemon starts: ${code}`);
      expect(done).toHaveLength(3);
    },
  );

  test.each([
    ['a full disk', Object.assign(new Error('ENOSPC: no space'), { code: 'ENOSPC' })],
    ['anything else', new Error('the tool is busy')],
  ])('waits where %s keeps the watchdog out', async (_name, error) => {
    const { context, done } = await powered({
      context: { healthLimits: { checksMs: 1_000, kubeletMs: 1_000 } },
      backend: { rollbackScript: () => Promise.reject(error) },
    });
    await expect(rebootInto(context, into(image), observation())).rejects.toThrow(error.message);
    expect(done).toEqual([`stage ${imageOf('2')}`, 'finalize']);
    expect(await context.journal.read()).toMatchObject({ step: 'applying' });
  });

  test('stays on record when it could not be staged, so that it is resumed', async () => {
    const { context, done } = await powered({
      backend: { stage: () => Promise.reject(new Error('no room')) },
    });
    await expect(rebootInto(context, into(image), observation())).rejects.toThrow('no room');
    expect(await context.journal.read()).toMatchObject({ step: 'applying', next: image });
    expect(done).toEqual([]);
  });

  test('takes back the password that standard mode has set, and leaves one that was set since', async () => {
    const fields: ReadonlyMap<string, string>[] = [];
    const { context, root, stagedRoot } = await powered({
      ports: { setPasswords: async (_root, given) => void fields.push(given) },
    });
    const current = withFile('rendered-1', 'before');
    await writeFile(path.join(root, 'etc/app.conf'), 'before');
    await writeFile(path.join(root, 'etc/shadow'), 'core:$6$ours:1::::::\nother:$6$theirs:1::::::\n');
    const users = [
      { name: 'core', passwordHash: '$6$ours' },
      { name: 'other', passwordHash: '$6$theirs' },
    ];
    const config = { ...(current.rendered.spec.config as object), passwd: { users } };
    const from = { ...current, rendered: { ...current.rendered, spec: { config } } };
    await writeFile(path.join(stagedRoot, 'etc/shadow'), 'core:$6$ours:1::::::\nother:$6$changed:1::::::\n');
    await writeFile(
      path.join(stagedRoot, 'etc/passwd'),
      'core:x:1000:1000::/home/core:/bin/sh\nother:x:1001:1001::/home/other:/bin/sh\n',
    );
    await expect(
      rebootInto(context, into(image), observation({ current: from as Current })),
    ).rejects.toThrow();
    expect(fields.map((given) => [...given.keys()])).toEqual([['core']]);
  });

  describe.each(['Standard', 'Layered'] as const)('from %s mode', (mode) => {
    /** A node whose config has a file. */
    async function configured(content: string) {
      const node = await powered();
      const standardMode = withFile('rendered-1', 'rendered');
      const at = (name: string) => path.join(node.root, name);
      await mkdir(path.dirname(at(nodePaths.imageConfig)), { recursive: true });
      await writeFile(at(nodePaths.imageConfig), JSON.stringify(standardMode.rendered));
      await writeFile(at('etc/app.conf'), content);
      const current: Current =
        mode === 'Standard'
          ? standardMode
          : { version: 1, mode, config: 'rendered-1', image: imageOf('1'), baseImage: imageOf('0') };
      return { ...node, at, observed: observation({ current }) };
    }

    test("takes no edit of the config's files along: nothing has begun", async () => {
      const { context, done, observed } = await configured('by hand');
      await expect(rebootInto(context, into(image), observed)).rejects.toThrow(ForeignChangeError);
      expect(done).toEqual([]);
      expect(await context.journal.read()).toBeUndefined();
    });

    test('puts them back with the force file, and goes on', async () => {
      const { at, context, done, handedOver, observed } = await configured('by hand');
      await mkdir(path.dirname(at(nodePaths.forceFile)), { recursive: true });
      await writeFile(at(nodePaths.forceFile), '');
      await expect(rebootInto(context, into(image), observed)).rejects.toThrow('aborted');
      expect(await readFile(at('etc/app.conf'), 'utf8')).toBe('rendered');
      await expect(access(at(nodePaths.forceFile))).rejects.toThrow('ENOENT');
      expect(done).toHaveLength(3);
      expect(handedOver.map((managed) => [...managed.keys()])).toEqual([['/etc/app.conf']]);
    });

    test("counts the config's files as Shale's by the config alone, and no others", async () => {
      const { at, context, handedOver, observed } = await configured('rendered');
      await writeFile(at('etc/admin.conf'), 'mine');
      await expect(rebootInto(context, into(image), observed)).rejects.toThrow('aborted');
      expect(handedOver.map((managed) => [...managed.keys()])).toEqual([['/etc/app.conf']]);
    });

    test('brings what an interrupted update has left to its target without asking', async () => {
      const { context, done, handedOver, observed } = await configured('half-way');
      const journal = begun(into(image));
      await expect(rebootInto(context, into(image), { ...observed, journal })).rejects.toThrow('aborted');
      expect(done).toHaveLength(3);
      expect(handedOver.map((managed) => [...managed.keys()])).toEqual([['/etc/app.conf']]);
    });
  });
});

test('a reboot puts on record what the former and the next image have in state paths', async () => {
  const { context, root, stagedRoot } = await powered();
  for (const [tree, name] of [
    [root, '/opt/former'],
    [stagedRoot, '/opt/next'],
  ] as const) {
    const place = path.join(tree, nodePaths.imageConfig);
    await mkdir(path.dirname(place), { recursive: true });
    const { rendered } = standard('rendered', [{ path: name, content: 'x' }]);
    await writeFile(place, JSON.stringify(rendered));
  }
  await mkdir(path.join(root, 'opt'));
  await writeFile(path.join(root, 'opt/former'), 'x');
  const current: Current = { ...image, config: 'rendered-1', image: imageOf('0') };
  await expect(rebootInto(context, into(image), observation({ current }))).rejects.toThrow('aborted');
  expect([...((await readStatePaths(root)) ?? new Map()).keys()].sort()).toEqual([
    '/opt/former',
    '/opt/next',
  ]);
});

describe('a reboot in standard mode', () => {
  test('writes the config to the running root, and says that it did', async () => {
    const { context, done, read } = await powered();
    await expect(
      rebootInto(context, into(withFile('rendered-2', 'new', { baseImage: imageOf('0') })), observation()),
    ).rejects.toThrow();
    expect(await read('etc/app.conf')).toBe('new');
    expect(done).toEqual([expect.stringContaining('reboot: shale: update to rendered-2 in standard mode')]);
    expect(await context.journal.read()).toMatchObject({ step: 'rebooting' });
  });

  test('takes all of /etc along into a new deployment', async () => {
    const { context, done, handedOver, read, root } = await powered();
    await writeManagedPaths(root, new Map([['/etc/hosts', ['absent']]]));
    const next = withFile('rendered-2', 'new', { baseImage: imageOf('9') });
    await expect(rebootInto(context, into(next), observation())).rejects.toThrow();
    expect(await read('etc/app.conf')).toBe('new');
    // What ostree's merge left of it is not relied upon.
    expect(await read('staged/etc/app.conf')).toBe('new');
    expect(done.slice(0, 2)).toEqual([`stage ${imageOf('9')}`, 'finalize']);
    expect(handedOver.map((managed) => managed.size)).toEqual([0]);
  });

  test('on the way out of layering writes into the stock image alone', async () => {
    const { context, done, read, root } = await powered();
    await writeFile(path.join(root, 'etc/app.conf'), 'of the image');
    const next = {
      ...standard('rendered-2', [
        { path: '/etc/app.conf', content: 'new' },
        { path: '/var/app/seed', content: 'new' },
      ]),
      baseImage: imageOf('0'),
    };
    await expect(rebootInto(context, into(next), observation({ current: image }))).rejects.toThrow();
    expect(await read('etc/app.conf')).toBe('of the image');
    expect(await read('staged/etc/app.conf')).toBe('new');
    expect([...((await readStatePaths(root)) ?? new Map()).keys()]).toEqual(['/var/app/seed']);
    expect(done.slice(0, 2)).toEqual([`stage ${imageOf('0')}`, 'finalize']);
  });

  test('does not begin over a change that somebody else has made', async () => {
    const { context, done, read, root } = await powered();
    await writeFile(path.join(root, 'etc/app.conf'), 'by hand');
    const current = withFile('rendered-1', 'old');

    await expect(
      rebootInto(context, into(withFile('rendered-2', 'new')), observation({ current })),
    ).rejects.toThrow('/etc/app.conf');

    expect(await read('etc/app.conf')).toBe('by hand');
    expect(await context.journal.read()).toBeUndefined();
    expect(done).toEqual([]);
  });

  test('has the kernel arguments of its config, and records which the node had', async () => {
    const { context, root, asked } = await powered();
    const quiet = { kernelArguments: ['quiet'], baseImage: imageOf('0') };
    await writeFile(path.join(root, 'etc/app.conf'), 'old');
    const current = withFile('rendered-1', 'old', quiet);
    const drifted = observation({ current, kernelArguments: { entry: ['rw'] } });

    const next = withFile('rendered-2', 'new', quiet);
    await expect(rebootInto(context, into(next), drifted)).rejects.toThrow('aborted');

    expect(asked.map(({ extraKernelArguments }) => extraKernelArguments)).toEqual([
      { remove: [], add: ['quiet'] },
    ]);
    expect(await readCurrent(root)).toEqual({ ...current, kernelArguments: [] });
  });

  test('that lost power once its deployment was written still knows which arguments ran before', async () => {
    const { context, root, asked } = await powered();
    const baseImage = imageOf('0');
    await writeFile(path.join(root, 'etc/app.conf'), 'new');
    const current = withFile('rendered-1', 'old', { baseImage });
    const next = withFile('rendered-2', 'new', { baseImage, kernelArguments: ['quiet'] });
    const journal = { ...begun(into(next)), bootID: 'boot-0' };
    await context.journal.write(journal);
    await writeCurrent(root, current);
    const kernelArguments = { entry: ['rw', 'quiet'], added: ['quiet'] };

    await expect(
      rebootInto(context, into(next), observation({ current, journal, kernelArguments })),
    ).rejects.toThrow('aborted');

    expect(asked).toHaveLength(1);
    expect(await readCurrent(root)).toEqual(current);
  });

  test('that was begun before writes over whatever is there', async () => {
    const { context, read, root } = await powered();
    await writeFile(path.join(root, 'etc/app.conf'), 'half-way');
    const current = withFile('rendered-1', 'old');
    const next = withFile('rendered-2', 'new');
    const journal = begun(into(next));
    await context.journal.write(journal);
    await expect(rebootInto(context, into(next), observation({ current, journal }))).rejects.toThrow(
      'aborted',
    );
    expect(await read('etc/app.conf')).toBe('new');
  });
});

describe('a soft reboot', () => {
  const since = (ms: number) => new Date(Date.now() - ms).toISOString();
  const entry = (rebootingSince: string): JournalEntry => ({
    version: 1,
    step: 'rebooting',
    ...into(image, { softReboot: true }),
    bootID: 'boot-1',
    startedAt: '2026-01-01T00:00:00.000Z',
    rebootingSince,
  });

  test('is prepared and asked for', async () => {
    const softly = new AbortController();
    const done: string[] = [];
    const {
      context,
      done: asked,
      events,
    } = await powered({
      host: {
        rebootSoftly: async (reason) => {
          done.push(reason);
          softly.abort();
        },
      },
      context: { signal: softly.signal },
    });
    await expect(rebootInto(context, into(image, { softReboot: true }), observation())).rejects.toThrow(
      'aborted',
    );
    expect(asked.at(-1)).toBe('prepare soft reboot');
    expect(done).toEqual([`shale: update to rendered-2 in ${imageOf('2')}`]);
    expect(events).toEqual([expect.stringContaining('Soft-rebooting into')]);
    expect(await context.journal.read()).toMatchObject({ plan: { softReboot: true } });
  });

  test.each<[string, NodeUnderTest, string, string]>([
    ['its time is over', {}, since(60_000), 'the soft reboot did not happen within 60 s'],
    [
      'it booted something else',
      { host: { bootID: async () => 'boot-1+1' } },
      since(0),
      'the soft reboot did not boot the target',
    ],
    [
      'the tool refuses',
      { backend: { prepareSoftReboot: () => Promise.reject(new Error('another kernel')) } },
      since(0),
      'another kernel',
    ],
    [
      'it does not come in what is left of its time',
      { host: { rebootSoftly: async () => undefined }, context: { softRebootLimitMs: 20 } },
      since(0),
      'the soft reboot did not happen within 0.02 s',
    ],
  ])('becomes a full one where %s', async (_name, node, rebootingSince, why) => {
    const { context, done, events } = await powered(node);
    await context.journal.write(entry(rebootingSince));

    await expect(requestReboot(context, entry(rebootingSince))).rejects.toThrow('aborted');

    expect(done.at(-1)).toContain('reboot: shale: update to rendered-2');
    expect(events).toEqual([
      expect.stringContaining(`Rebooting fully into rendered-2 in ${imageOf('2')}: ${why}`),
    ]);
    const journal = await context.journal.read();
    expect(journal?.plan.softReboot).toBeUndefined();
    expect(journal?.plan.source).toContain(why);
  });

  test('that fails because the daemon ends is no failure', async () => {
    const ending = new AbortController();
    const { context, done, events } = await powered({
      host: {
        rebootSoftly: async () => {
          ending.abort();
          throw new Error('interrupted');
        },
      },
      context: { signal: ending.signal },
    });
    await context.journal.write(entry(since(0)));
    await expect(requestReboot(context, entry(since(0)))).rejects.toThrow('aborted');
    expect(events).toEqual([]);
    expect(done).toEqual(['prepare soft reboot']);
  });
});

test('what was not asked to be soft is a full reboot, and is asked for with its reason', async () => {
  const { context, done } = await powered();
  const entry: JournalEntry = {
    version: 1,
    step: 'rebooting',
    ...into(image),
    bootID: 'boot-1',
    startedAt: '2026-01-01T00:00:00.000Z',
  };
  await expect(requestReboot(context, entry, 'because')).rejects.toThrow('aborted');
  expect(done).toEqual(['reboot: because']);
  expect(await context.journal.read()).toEqual({ ...entry, rebootRequests: 1 });
  await expect(requestReboot(context, { ...entry, rebootRequests: 1 })).rejects.toThrow('aborted');
  expect(await context.journal.read()).toEqual({ ...entry, rebootRequests: 2 });
});
