import { describe, expect, test } from 'vitest';
import type { MachineConfig } from '../../api/machine-config.ts';
import { annotations } from '../../api/names.ts';
import type { PoolRevision } from '../../api/pool-revision.ts';
import { aPool, aRenderedConfig } from '../../test/fixtures/objects.ts';
import { type ChangeNames, changeNames, readChange } from './read-change.ts';

const file = (path: string, text: string, mode = 0o644) => ({
  path,
  mode,
  contents: { source: `data:,${encodeURIComponent(text)}` },
});
type Storage = NonNullable<NonNullable<MachineConfig['spec']['config']>['storage']>;
function config(name: string, storage: Storage, more: object = {}): MachineConfig {
  return { ...aRenderedConfig(name), spec: { config: { ignition: { version: '3.5.0' }, storage, ...more } } };
}
const names: ChangeNames = { from: 'old', to: 'new', sources: ['50-a', '60-b'] };

function change(before: MachineConfig, after: MachineConfig, ...sources: readonly MachineConfig[]) {
  const all = [before, after, ...sources];
  return readChange('worker', names, new Map(all.map((each) => [each.metadata.name, each])));
}

describe('the lines of a change', () => {
  test('are those that differ, with the MachineConfigs that set them', () => {
    const after = { files: [file('/etc/a', 'one\nthree\n'), file('/etc/new', 'x\n')] };
    const read = change(
      config('old', { files: [file('/etc/a', 'one\ntwo\n'), file('/etc/same', 'x')] }),
      config('new', { files: [...after.files, file('/etc/same', 'x')] }),
      config('50-a', after),
      config('60-b', { files: [file('/etc/a', '')] }),
    );
    expect(read).toEqual({
      pool: 'worker',
      from: 'old',
      to: 'new',
      changes: [
        {
          kind: 'file',
          subject: '/etc/a',
          change: 'changed',
          machineConfigs: ['50-a', '60-b'],
          added: 1,
          removed: 1,
          lines: ['@@ -1,3 +1,3 @@', ' # mode 0644, owner 0:0', ' one', '-two', '+three'],
        },
        {
          kind: 'file',
          subject: '/etc/new',
          change: 'added',
          machineConfigs: ['50-a'],
          added: 2,
          removed: 0,
          lines: ['@@ -0,0 +1,2 @@', '+# mode 0644, owner 0:0', '+x'],
        },
      ],
    });
  });

  test.each([
    [
      'in a file that not every user may read',
      { files: [file('/etc/s', 'TOP-SECRET\n', 0o640)] },
      /mode keeps/,
    ],
    [
      'in a private key',
      { files: [file('/etc/s', '-----BEGIN RSA PRIVATE KEY-----\nTOP-SECRET\n')] },
      /private key/,
    ],
  ])('contain no secret %s', (_, storage, why) => {
    const pairs: readonly (readonly [Storage, Storage])[] = [
      [{}, storage],
      [storage, {}],
      [storage, { files: [file('/etc/s', 'open\n')] }],
    ];
    for (const [before, after] of pairs) {
      const read = change(config('old', before), config('new', after));
      expect(JSON.stringify(read)).not.toContain('TOP-SECRET');
      expect(read.changes).toMatchObject([{ subject: '/etc/s', withheld: expect.stringMatching(why) }]);
      expect(read.changes[0]?.added).toBeTypeOf('number');
    }
  });

  test('contain no password hash, no key itself and no value of a password', () => {
    const users = [
      { name: 'core', passwordHash: '$6$TOP-SECRET', sshAuthorizedKeys: ['ssh-ed25519 AAAATOPSECRET me'] },
    ];
    const units = [
      { name: 'a.service', contents: '[Service]\nEnvironment=PASSWORD=TOP-SECRET\nExecStart=/bin/true\n' },
    ];
    const read = change(config('old', {}), config('new', {}, { passwd: { users }, systemd: { units } }));
    expect(read.changes.map(({ kind }) => kind)).toEqual(['sshKey', 'unit', 'passwordHash']);
    expect(JSON.stringify(read)).not.toMatch(/TOP-?SECRET/);
    expect(JSON.stringify(read)).toContain('ExecStart=/bin/true');
  });

  test('are bounded', () => {
    const text = (mark: string, count: number) =>
      Array.from({ length: count }, (_, index) => `${mark}${index}\n`).join('');
    const many = change(
      config('old', { files: [] }),
      config('new', { files: [file('/etc/long', text('x', 900)), file('/etc/wide', 'y'.repeat(5_000))] }),
    ).changes;
    expect(many[0]).toMatchObject({ added: 901 });
    expect(many[0]?.lines?.at(-1)).toMatch(/^@@ \d+ more lines$/);
    expect(many[0]?.lines?.length).toBeLessThan(500);
    expect(Math.max(...(many[1]?.lines ?? []).map(({ length }) => length))).toBeLessThan(500);

    const rewritten = change(
      config('old', { files: [file('/etc/all', text('a', 900))] }),
      config('new', { files: [file('/etc/all', text('b', 900))] }),
    ).changes;
    expect(rewritten).toEqual([
      {
        kind: 'file',
        subject: '/etc/all',
        change: 'changed',
        machineConfigs: [],
        withheld: 'more than 1000 lines differ',
      },
    ]);

    const large = Array.from({ length: 30 }, (_, index) => file(`/etc/${index + 10}`, text('x', 300)));
    const entries = change(config('old', {}), config('new', { files: large })).changes;
    expect(entries[0]?.lines).toBeDefined();
    expect(entries.at(-1)).toMatchObject({ withheld: 'the change is too large' });
    expect(entries.flatMap(({ lines = [] }) => lines).length).toBeLessThanOrEqual(4_000);

    const files = Array.from({ length: 250 }, (_, index) => file(`/etc/${index}`, 'x'));
    const read = change(config('old', {}), config('new', { files }));
    expect(read.changes).toHaveLength(200);
    expect(read.remark).toBe('50 more are not shown');
  });
});

test.each([
  [{ ...names, from: undefined }, ['new'], 'the pool has no earlier config'],
  [names, ['new'], 'old no longer exists'],
  [names, ['old'], 'new no longer exists'],
  [{ ...names, to: '' }, ['old'], 'the target no longer exists'],
])('a change that can not be compared says why', (given, existing, remark) => {
  const configs = new Map(existing.map((name) => [name, config(name, {})]));
  expect(readChange('worker', given, configs)).toMatchObject({ changes: [], remark });
});

describe('the configs of a change', () => {
  const revision = (number: number, name: string): PoolRevision => ({
    apiVersion: 'shale.dev/v1',
    kind: 'PoolRevision',
    metadata: {
      name: `r${number}`,
      ownerReferences: [{ apiVersion: 'v1', kind: 'x', name: 'worker', uid: 'uid-worker' }],
    },
    spec: { machineConfigPool: { name: 'worker' }, revision: number, machineConfig: { name } },
  });
  const revisions = [revision(1, 'a'), revision(2, 'b'), revision(3, 'b'), revision(4, 'c')];
  const pool = (to: string, ran: string | undefined, more: Record<string, string> = {}) => {
    const { metadata, ...rest } = aPool('worker', {
      configuration: { name: to, source: [{ name: '50-a' }, { name: '60-b' }] },
    });
    return {
      ...rest,
      metadata: { ...metadata, annotations: more },
      ...(ran === undefined ? {} : { status: { configuration: { name: ran } } }),
    };
  };
  const sources = ['50-a', '60-b'];

  test.each<[string, ReturnType<typeof pool>, ChangeNames]>([
    ['of a rollout', pool('c', 'b'), { from: 'b', to: 'c', fromRevision: 3, revision: 4, sources }],
    ['of the last rollout', pool('c', 'c'), { from: 'b', to: 'c', fromRevision: 3, revision: 4, sources }],
    ['of what no node was assigned yet', pool('d', 'c'), { from: 'c', to: 'd', fromRevision: 4, sources }],
    ['of a new pool', pool('a', undefined), { from: undefined, to: 'a', revision: 1, sources }],
    [
      'of a rollback',
      pool('c', 'c', { [annotations.rollback]: '{"config":"a"}' }),
      { from: 'c', to: 'a', fromRevision: 4, revision: 1, sources: [] },
    ],
    [
      'of a rollback that began',
      pool('d', 'c', { [annotations.rollback]: '{"config":"b","from":{"config":"c","layered":false}}' }),
      { from: 'c', to: 'b', fromRevision: 4, revision: 3, sources: [] },
    ],
  ])('%s', (_, given, expected) => {
    expect(changeNames(given, revisions)).toEqual(expected);
  });
});
