import { describe, expect, it } from 'vitest';
import type { IgnitionConfig } from './ignition/config.ts';
import { parseIgnition } from './ignition/parse.ts';
import { mergeIgnition } from './merge.ts';
import { ignition } from './testdata/build.ts';

function parsed(raw: unknown): IgnitionConfig {
  const result = parseIgnition(raw);
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.config;
}

function merge(...configs: object[]): IgnitionConfig {
  return mergeIgnition(configs.map((config) => parsed(ignition(config))));
}

const storage = (sections: object) => ({ storage: sections });
const files = (...entries: object[]) => storage({ files: entries });
const units = (...entries: object[]) => ({ systemd: { units: entries } });
const users = (...entries: object[]) => ({ passwd: { users: entries } });
const sources = (config: IgnitionConfig) =>
  config.storage?.files?.map(({ path, contents }) => [path, contents?.source]);

describe('merging files', () => {
  it('keeps the place of the first and takes the contents of the last', () => {
    const merged = merge(
      files({ path: '/a', contents: { source: 'data:,1' } }, { path: '/b', contents: { source: 'data:,b' } }),
      files({ path: '/c', contents: { source: 'data:,c' } }, { path: '/a', contents: { source: 'data:,2' } }),
    );
    expect(sources(merged)).toEqual([
      ['/a', 'data:,2'],
      ['/b', 'data:,b'],
      ['/c', 'data:,c'],
    ]);
  });

  it('keeps fields that a later config does not set', () => {
    const merged = merge(
      files({ path: '/a', mode: 0o600, user: { name: 'x' }, contents: { source: 'data:,1' } }),
      files({ path: '/a', mode: 0o640 }),
    );
    expect(merged.storage?.files).toEqual([
      { path: '/a', mode: 0o640, user: { name: 'x' }, contents: { source: 'data:,1' }, overwrite: true },
    ]);
  });

  it('lets a file without compression clear the earlier one, with or without contents', () => {
    const compressed = files({
      path: '/a',
      contents: { source: 'data:;base64,H4sIAAAAAAAAA0sEAEO+t+gBAAAA', compression: 'gzip' },
    });
    expect(
      merge(compressed, files({ path: '/a', contents: { source: 'data:,2' } })).storage?.files?.[0]?.contents,
    ).toEqual({
      source: 'data:,2',
    });
    const withoutContents = merge(compressed, files({ path: '/a', mode: 0 })).storage?.files?.[0];
    expect(withoutContents?.contents).toEqual({ source: 'data:;base64,H4sIAAAAAAAAA0sEAEO+t+gBAAAA' });
    expect(merge(files({ path: '/b' }), compressed).storage?.files?.[1]?.contents?.compression).toBe('gzip');
  });

  it('lets empty contents replace', () => {
    const merged = merge(
      files({ path: '/a', contents: { source: 'data:,1' } }),
      files({ path: '/a', contents: { source: '' } }),
    );
    expect(sources(merged)).toEqual([['/a', '']]);
  });

  it('makes overwrite true unless a config says otherwise', () => {
    const merged = merge(files({ path: '/a' }, { path: '/b', overwrite: false }));
    expect(merged.storage?.files?.map(({ overwrite }) => overwrite)).toEqual([true, false]);
  });

  it('leaves out verification hashes, which belong to one source', () => {
    const hash = 'sha256-ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb';
    const merged = merge(files({ path: '/a', contents: { source: 'data:,a', verification: { hash } } }));
    expect(merged.storage?.files?.[0]?.contents).toEqual({ source: 'data:,a' });
  });

  it('appends append lists', () => {
    const merged = merge(
      files({ path: '/a', append: [{ source: 'data:,1' }] }),
      files({ path: '/a', append: [{ source: 'data:,1' }, { source: 'data:,2' }] }),
    );
    expect(merged.storage?.files?.[0]?.append?.map((resource) => resource.source)).toEqual([
      'data:,1',
      'data:,1',
      'data:,2',
    ]);
  });
});

describe('merging paths of different kinds', () => {
  it('keeps the last entry of a path, whatever its kind', () => {
    const merged = merge(
      storage({ files: [{ path: '/a' }, { path: '/b' }] }),
      storage({ links: [{ path: '/a', target: '/x' }] }),
      storage({ directories: [{ path: '/a' }] }),
    );
    expect(merged.storage).toMatchObject({ files: [{ path: '/b' }], directories: [{ path: '/a' }] });
    expect(merged.storage).not.toHaveProperty('links');
  });

  it('does not merge a file with an earlier one when a link came in between', () => {
    const merged = merge(
      files({ path: '/a', mode: 0o600, contents: { source: 'data:,1' } }),
      storage({ links: [{ path: '/a', target: '/x' }] }),
      files({ path: '/a', contents: { source: 'data:,2' } }),
    );
    expect(merged.storage).toEqual({
      files: [{ path: '/a', contents: { source: 'data:,2' }, overwrite: true }],
    });
  });
});

describe('merging units', () => {
  it('merges units by name and drop-ins by name', () => {
    const merged = merge(
      units(
        {
          name: 'a.service',
          enabled: true,
          contents: '[Unit]\n',
          dropins: [{ name: '1.conf', contents: '[A]\n' }],
        },
        { name: 'b.service', mask: true },
      ),
      units({
        name: 'a.service',
        enabled: false,
        dropins: [
          { name: '2.conf', contents: '[B]\n' },
          { name: '1.conf', contents: '[C]\n' },
        ],
      }),
    );
    expect(merged.systemd?.units).toEqual([
      {
        name: 'a.service',
        enabled: false,
        contents: '[Unit]\n',
        dropins: [
          { name: '1.conf', contents: '[C]\n' },
          { name: '2.conf', contents: '[B]\n' },
        ],
      },
      { name: 'b.service', mask: true },
    ]);
  });

  it('lets empty contents replace, so that a unit of the OS comes back', () => {
    const merged = merge(
      units({ name: 'a.service', contents: '[Unit]\n' }),
      units({ name: 'a.service', contents: '' }),
    );
    expect(merged.systemd?.units).toEqual([{ name: 'a.service', contents: '' }]);
  });
});

describe('merging everything else', () => {
  it('unites SSH keys in the order of their first occurrence', () => {
    const merged = merge(
      users({ name: 'core', sshAuthorizedKeys: ['b', 'a'] }),
      users({ name: 'core', passwordHash: 'x', sshAuthorizedKeys: ['c', 'a'] }),
    );
    expect(merged.passwd?.users).toEqual([
      { name: 'core', passwordHash: 'x', sshAuthorizedKeys: ['b', 'a', 'c'] },
    ]);
  });

  it('moves a kernel argument to the list that named it last', () => {
    const merged = merge(
      { kernelArguments: { shouldExist: ['a', 'b'] } },
      { kernelArguments: { shouldNotExist: ['a'] } },
    );
    expect(merged.kernelArguments).toEqual({ shouldExist: ['b'], shouldNotExist: ['a'] });
  });

  it('identifies partitions by number, otherwise by label', () => {
    const disk = (...partitions: object[]) => storage({ disks: [{ device: '/dev/sda', partitions }] });
    const merged = merge(
      disk({ number: 1, sizeMiB: 1 }, { label: 'x' }),
      disk({ number: 1, sizeMiB: 2 }, { label: 'y' }),
    );
    expect(merged.storage?.disks?.[0]?.partitions).toEqual([
      { number: 1, sizeMiB: 2 },
      { label: 'x' },
      { label: 'y' },
    ]);
  });

  it('deletes an HTTP header that comes without a value', () => {
    const fetched = (...httpHeaders: object[]) => ({
      ignition: { version: '3.5.0', config: { replace: { source: 'https://x', httpHeaders } } },
    });
    const merged = merge(
      fetched({ name: 'A', value: '1' }, { name: 'B', value: '2' }),
      fetched({ name: 'A' }),
    );
    expect(merged.ignition.config?.replace?.httpHeaders).toEqual([{ name: 'B', value: '2' }]);
  });

  it('returns an empty config of the newest version without inputs', () => {
    expect(mergeIgnition([])).toEqual({ ignition: { version: '3.5.0' } });
  });
});
