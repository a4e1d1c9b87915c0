import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { decodeDataUrl, encodeDataUrl, parseDataUrl } from '../../machineconfig/ignition/data-url.ts';
import { parseMachineConfig } from '../../machineconfig/parse-machine-config.ts';
import { seed } from '../../test/fixtures/sample.ts';
import { composeMachineConfig, type NewMachineConfig, neitherEnabledNorDisabled } from './machine-config.ts';

const SERVICE = '[Service]\nExecStart=/bin/true\n\n[Install]\nWantedBy=multi-user.target\n';

const nothing: NewMachineConfig = {
  name: '50-worker-new',
  role: 'worker',
  files: [],
  units: [],
  dropIns: [],
  enable: [],
  disable: [],
  mask: [],
  kernelArguments: [],
};
const unit = { unit: 'a.service', source: 'a', contents: SERVICE };

it('composes a config that the renderer takes', () => {
  const file = { path: '/etc/a.conf', source: 'a', mode: 0o600, user: { name: 'root' }, group: undefined };
  const created = composeMachineConfig({
    ...nothing,
    files: [{ ...file, contents: Buffer.from('a = "b c"\n') }],
    units: [unit],
    dropIns: [
      { unit: 'a.service', name: '10-a.conf', source: 'a', contents: '[Service]\nNice=5\n' },
      { unit: 'b.service', name: '10-b.conf', source: 'b', contents: '[Service]\nNice=6\n' },
    ],
    enable: ['a.service'],
    mask: ['c.service'],
    kernelArguments: ['quiet'],
  });
  expect(parseMachineConfig(created)).toMatchObject({ problems: [], warnings: [] });
  expect(created).toEqual({
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name: '50-worker-new', labels: { 'machineconfiguration.openshift.io/role': 'worker' } },
    spec: {
      config: {
        ignition: { version: '3.5.0' },
        storage: {
          files: [
            {
              path: '/etc/a.conf',
              mode: 384,
              overwrite: true,
              user: { name: 'root' },
              contents: { source: 'data:,a%20=%20%22b%20c%22%0A' },
            },
          ],
        },
        systemd: {
          units: [
            {
              name: 'a.service',
              contents: SERVICE,
              enabled: true,
              dropins: [{ name: '10-a.conf', contents: '[Service]\nNice=5\n' }],
            },
            { name: 'c.service', mask: true },
            { name: 'b.service', dropins: [{ name: '10-b.conf', contents: '[Service]\nNice=6\n' }] },
          ],
        },
      },
      kernelArguments: ['quiet'],
    },
  });
});

it('has no Ignition config where only kernel arguments are named', () => {
  expect(composeMachineConfig({ ...nothing, kernelArguments: ['quiet'] }).spec).toEqual({
    kernelArguments: ['quiet'],
  });
});

it('finds units that somebody forgot to enable', () => {
  const target = { unit: 'b.service', source: 'b', contents: '[Service]\nExecStart=/bin/true\n' };
  expect(neitherEnabledNorDisabled({ ...nothing, units: [unit, target] })).toEqual(['a.service']);
  expect(neitherEnabledNorDisabled({ ...nothing, units: [unit], disable: ['a.service'] })).toEqual([]);
});

it('encodes any contents so that they are read back', () => {
  for (let round = 0; round < 500; round++) {
    const drawn = createHash('sha256').update(`${seed} data URL ${round}`).digest();
    const contents = round % 2 === 0 ? drawn : drawn.map((byte) => byte % 128);
    const parsed = parseDataUrl(encodeDataUrl(contents));
    if (typeof parsed === 'string') expect.fail(parsed);
    expect(Buffer.from(decodeDataUrl(parsed)).equals(contents)).toBe(true);
  }
  const umlauts = encodeDataUrl(Buffer.from('Zürich 😀\n'));
  expect(umlauts).toBe('data:,Z%C3%BCrich%20%F0%9F%98%80%0A');
});
