import { access, mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { nodePaths } from '../../api/names.ts';
import { begun, image, into, powered, withFile } from '../../test/fixtures/powered-node.ts';
import { imageOf, LEASE_HOLDER, observation, standard } from '../../test/fixtures/step-context.ts';
import { ForeignChangeError } from '../content/write/write-content.ts';
import { contentDigestAt } from '../files/read-tree.ts';
import { hasWatchdog } from '../host/boot-watchdog/install.ts';
import type { Current } from '../records/current.ts';
import { writeRecord } from '../records/durable-json.ts';
import { readStatePaths, writeManagedPaths } from '../records/managed-paths.ts';
import { rebootInto } from './reboot.ts';

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
    expect(await hasWatchdog(stagedRoot)).toBe(false);
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
    expect(await hasWatchdog(stagedRoot)).toBe(true);
    expect(await hasWatchdog(root)).toBe(false);
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

  test('removes the password that standard mode has set, and leaves one that was set since', async () => {
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

test('a reboot brings what the next image has in state paths, and puts it on record', async () => {
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
  expect([...((await readStatePaths(root)) ?? new Map()).keys()]).toEqual(['/opt/next']);
});
