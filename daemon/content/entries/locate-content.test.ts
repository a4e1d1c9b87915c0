import { chmod, lstat, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { beforeEach, describe, expect, test } from 'vitest';
import { emptyNodeConfig, type NodeConfig } from '../../../machineconfig/node-config.ts';
import { config, createTree, link, OWN } from '../../../test/fixtures/config-tree.ts';
import { verifyConfig, written } from '../../../test/fixtures/standard-content.ts';
import { HostTree } from '../../files/host-tree.ts';
import { watchedNames } from '../drift/drift-watch.ts';
import { labelDrifts } from '../drift/label-drift.ts';
import { restoreContent } from '../write/restore-content.ts';
import { desiredTree } from './desired-tree.ts';
import { locateContent } from './locate-content.ts';

type Tree = Awaited<ReturnType<typeof createTree>>;

const directories = (...paths: readonly string[]): Partial<NodeConfig> => ({
  directories: new Map(paths.map((path) => [path, { path, mode: 0o755, ...OWN }])),
});

let tree: Tree;
beforeEach(async () => {
  tree = await createTree();
  for (const etc of ['etc', 'usr/etc']) {
    await mkdir(tree.at(`${etc}/pki/certs`), { recursive: true });
    await writeFile(tree.at(`${etc}/pki/certs/ca.pem`), 'of the base');
    await mkdir(tree.at(`${etc}/ssl`), { recursive: true });
    await symlink('../pki/certs', tree.at(`${etc}/ssl/certs`));
  }
});

/** @returns where paths lie, and those above that are missing. */
async function places(
  to: NodeConfig,
): Promise<Readonly<Record<string, readonly [string | undefined, string]>>> {
  await using host = new HostTree(tree.target);
  const paths = await locateContent(host, await desiredTree(tree.target, written(to)));
  return Object.fromEntries(
    paths.map(({ path, location }) => [path, [location?.name, location?.missingParents.join(' ') ?? '']]),
  );
}

describe('a path of a config', () => {
  test('lies where the links of the node lead', async () => {
    expect(await places(config('to', { '/etc/ssl/certs/ca.pem': 'ours' }))).toEqual({
      '/etc/ssl/certs/ca.pem': ['/etc/pki/certs/ca.pem', ''],
    });
  });

  test('lies in a directory of the config where the node has a link', async () => {
    const to = config('to', { '/etc/ssl/certs/ca.pem': 'ours' }, directories('/etc/ssl/certs'));
    expect(await places(to)).toEqual({
      '/etc/ssl/certs': ['/etc/ssl/certs', ''],
      '/etc/ssl/certs/ca.pem': ['/etc/ssl/certs/ca.pem', '/etc/ssl/certs'],
    });
  });

  test('also where the config names that by another link', async () => {
    await symlink('ssl', tree.at('etc/tls'));
    const to = config('to', { '/etc/ssl/certs/ca.pem': 'ours' }, directories('/etc/tls/certs'));
    expect(await places(to)).toMatchObject({
      '/etc/tls/certs': ['/etc/ssl/certs', ''],
      '/etc/ssl/certs/ca.pem': ['/etc/ssl/certs/ca.pem', '/etc/ssl/certs'],
    });
  });

  test('lies where a link of the config will lead', async () => {
    const to = config('to', { '/etc/ssl/certs/x': 'ours' }, { links: link('/etc/ssl/certs', '/etc/sub') });
    expect(await places(to)).toMatchObject({ '/etc/ssl/certs/x': ['/etc/sub/x', '/etc/sub'] });
  });

  test('can not be reached below a link of the config that leads to itself', async () => {
    const to = config('to', { '/etc/loop/x': 'ours' }, { links: link('/etc/loop', 'loop') });
    expect(await places(to)).toMatchObject({ '/etc/loop/x': [undefined, ''] });
    await expect(tree.write(emptyNodeConfig, to)).rejects.toThrow('more than 40 symbolic links');
  });
});

test.each([
  ['of a file', config('to', { '/var/open/link/x': 'ours' })],
  [
    'that a hard link leads to',
    config(
      'to',
      {},
      {
        links: new Map([
          ['/var/hard', { path: '/var/hard', target: '/var/open/link/x', hard: true, ...OWN }],
        ]),
      },
    ),
  ],
])(
  'a path %s below a link that others could have made is refused by the name that the config has',
  async (_what, to) => {
    await mkdir(tree.at('var/open'));
    await chmod(tree.at('var/open'), 0o777);
    await mkdir(tree.at('var/there'));
    await symlink('../there', tree.at('var/open/link'));
    const [path = ''] = [...to.files.keys(), ...to.links.keys()];
    await expect(tree.write(emptyNodeConfig, to)).rejects.toThrow(
      new RegExp(`^${path}: /var/open/link is a symbolic link`),
    );
  },
);

describe('a directory over a link of the base', () => {
  const file = '/etc/ssl/certs/ca.pem';
  const to = config('to', { [file]: 'ours' }, directories('/etc/ssl/certs'));
  const base = () => tree.text('etc/pki/certs/ca.pem');

  test('is written, verified, watched, compared for labels and put back as one', async () => {
    const { write, text, target, at, signal } = tree;
    await write(emptyNodeConfig, to);
    expect([await text(file), await base()]).toEqual(['ours', 'of the base']);
    expect(await verifyConfig(target.root, to)).toEqual([]);
    const watched = await watchedNames(target, written(to));
    expect(watched.get(at('etc/ssl/certs'))).toEqual(new Set(['ca.pem']));

    // An admin's link leads to a file with the very same text.
    await rm(at('etc/ssl/certs'), { recursive: true });
    await mkdir(at('etc/theirs'));
    await writeFile(at('etc/theirs/ca.pem'), 'ours');
    await symlink('../theirs', at('etc/ssl/certs'));
    const drifts = async () =>
      (await verifyConfig(target.root, to)).map(({ path: name, what }) => `${name}: ${what}`);
    expect(await drifts()).toEqual(['/etc/ssl/certs: kind', `${file}: missing`]);
    expect((await watchedNames(target, written(to))).get(at('etc/ssl'))).toEqual(new Set(['certs']));
    const compared: string[] = [];
    const wrongLabels = async (names: readonly string[]) => {
      compared.push(...names);
      return [];
    };
    await labelDrifts({ host: target, wrongLabels }, written(to), signal);
    expect(compared).toEqual(['/etc/ssl/certs']);

    for (const delivery of ['Layered', 'Standard'] as const) {
      await rm(at('etc/ssl/certs'), { recursive: true });
      await symlink('../theirs', at('etc/ssl/certs'));
      await restoreContent({ ...target, wrongLabels: async () => [] }, { config: to, delivery }, signal);
      expect(await drifts()).toEqual([]);
      expect((await lstat(at('etc/ssl/certs'))).isDirectory()).toBe(true);
      expect(await readFile(at('etc/theirs/ca.pem'), 'utf8')).toBe('ours');
    }
  });

  test('gives the link back, and the next config writes where that leads', async () => {
    const { write, text, snapshot } = tree;
    const before = await snapshot();
    await write(emptyNodeConfig, to);
    const next = config('next', { [file]: 'through the link' });
    await write(to, next);
    expect([await text(file), await base()]).toEqual(['through the link', 'through the link']);
    await write(next, to);
    expect([await text(file), await base()]).toEqual(['ours', 'of the base']);
    await write(to, emptyNodeConfig);
    expect(await snapshot()).toEqual(before);
  });

  test('is undone whole, whichever step fails, on the way there and back', async () => {
    const { write, snapshot } = tree;
    for (const [from, next] of [
      [emptyNodeConfig, to],
      [to, emptyNodeConfig],
      [to, config('next', { [file]: 'through the link' })],
    ] as const) {
      const before = await snapshot();
      for (let failing = 0; ; failing += 1) {
        let step = 0;
        const beforeStep = (name: string) => {
          if (step === failing) throw new Error(`injected before ${name}`);
          step += 1;
        };
        const outcome = await write(from, next, { beforeStep }).catch((error: Error) => error);
        if (!(outcome instanceof Error)) break;
        expect(outcome.message).toMatch(/^injected before /);
        expect(await snapshot(), outcome.message).toEqual(before);
      }
      if (next !== to) await write(next, to);
    }
  });
});
