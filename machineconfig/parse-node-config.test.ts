import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { MachineConfigSpec } from '../api/machine-config.ts';
import { parseNodeConfig } from './parse-node-config.ts';
import { file, ignition, machineConfig } from './testdata/build.ts';

function nodeConfig(config: unknown, spec: Partial<MachineConfigSpec> = {}) {
  const parsed = parseNodeConfig(machineConfig('rendered-worker-0', config, spec));
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.config;
}

const storage = (sections: object) => ignition({ storage: sections });

describe('the config of a node', () => {
  it('decodes contents, whatever their encoding', () => {
    const text = 'grün\n';
    const encodings = {
      '/percent': { source: `data:,${encodeURIComponent(text)}` },
      '/base64': { source: `data:;base64,${Buffer.from(text).toString('base64')}` },
      '/gzip': { compression: 'gzip', source: `data:;base64,${gzipSync(text).toString('base64')}` },
    };
    const files = Object.entries(encodings).map(([path, contents]) => ({ path, contents }));
    const decoded = [...nodeConfig(storage({ files })).files.values()].map((one) =>
      Buffer.from(one.contents).toString(),
    );
    expect(decoded).toEqual([text, text, text]);
  });

  it("fills in Ignition's defaults", () => {
    const config = nodeConfig(
      storage({
        files: [file('/f', '')],
        directories: [{ path: '/d' }],
        links: [{ path: '/l', target: 'f' }],
      }),
    );
    const root = { user: { id: 0 }, group: { id: 0 } };
    expect(config.files.get('/f')).toMatchObject({ path: '/f', mode: 0o644, ...root });
    expect(config.directories.get('/d')).toEqual({ path: '/d', mode: 0o755, ...root });
    expect(config.links.get('/l')).toEqual({ path: '/l', target: 'f', hard: false, ...root });
  });

  it('keeps owners by number or by name', () => {
    const { files } = nodeConfig(
      storage({
        files: [
          file('/f', '', { user: { name: 'chrony' }, group: { id: 990 } }),
          file('/g', '', { user: { name: '' } }),
        ],
      }),
    );
    expect(files.get('/f')).toMatchObject({ user: { name: 'chrony' }, group: { id: 990 } });
    expect(files.get('/g')).toMatchObject({ user: { id: 0 } });
  });

  it('treats empty contents of units and drop-ins as absent', () => {
    const { units } = nodeConfig(
      ignition({
        systemd: {
          units: [
            {
              name: 'a.service',
              contents: '',
              enabled: false,
              dropins: [
                { name: '1.conf' },
                { name: '2.conf', contents: '' },
                { name: '3.conf', contents: '[A]\n' },
              ],
            },
            { name: 'b.service', mask: true },
          ],
        },
      }),
    );
    expect(units.get('a.service')).toEqual({
      name: 'a.service',
      enabled: false,
      masked: false,
      dropins: new Map([['3.conf', '[A]\n']]),
    });
    expect(units.get('b.service')).toEqual({ name: 'b.service', masked: true, dropins: new Map() });
  });

  it('lists keys and passwords of users that have some', () => {
    const config = nodeConfig(
      ignition({
        passwd: {
          users: [
            { name: 'core', sshAuthorizedKeys: ['k'], passwordHash: '' },
            { name: 'x', passwordHash: 'h' },
          ],
        },
      }),
    );
    expect([...config.sshKeys]).toEqual([['core', ['k']]]);
    expect([...config.passwordHashes]).toEqual([['x', 'h']]);
  });

  it('takes each line of an entry as a key, as MCO writes them', () => {
    const sshAuthorizedKeys = ['ssh-a A\n', 'ssh-b B\r\n\n# of the night shift\n  ssh-c C  \n', 'ssh-d D'];
    const config = nodeConfig(ignition({ passwd: { users: [{ name: 'core', sshAuthorizedKeys }] } }));
    expect(config.sshKeys.get('core')).toEqual([
      // As it was written before several lines were keys of their own.
      'ssh-a A\n',
      'ssh-b B',
      '# of the night shift',
      'ssh-c C',
      'ssh-d D',
    ]);
  });

  it('splits kernel arguments at white space outside of quotes', () => {
    const kernelArguments = ['a b\tc', '  d="e f" g ', 'h="i', '', 'j" k "l'];
    expect(nodeConfig(undefined, { kernelArguments }).kernelArguments).toEqual([
      'a',
      'b',
      'c',
      'd="e f"',
      'g',
      'h="i',
      'j" k "l',
    ]);
  });

  it('has empty fields for a MachineConfig without any', () => {
    expect(nodeConfig(undefined)).toMatchObject({
      name: 'rendered-worker-0',
      kernelArguments: [],
      kernelType: 'default',
      extensions: [],
      fips: false,
      osImageURL: '',
    });
  });

  it('refuses what it can not decode, with every problem', () => {
    const files = [
      { path: '/a', contents: { source: 'data:,%' } },
      { path: '/b', contents: { source: 'data:x' } },
      { path: '/c', append: [{ source: 'data:,x' }] },
    ];
    const parsed = parseNodeConfig(machineConfig('a', storage({ files: files.slice(0, 2) })));
    expect(parsed).toMatchObject({
      ok: false,
      problems: [
        { path: '$.storage.files[0].contents.source' },
        { path: '$.storage.files[1].contents.source' },
      ],
    });
    const appended = parseNodeConfig(machineConfig('a', storage({ files: files.slice(2) })));
    expect(appended).toMatchObject({ ok: false, problems: [{ path: '$.storage.files[0].append' }] });
  });
});
