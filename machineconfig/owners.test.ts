import { expect, test } from 'vitest';
import type { MachineConfig } from '../api/machine-config.ts';
import { configsWith, type Subject } from './owners.ts';

const config = (name: string, spec: object): MachineConfig => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: { name },
  spec: spec as MachineConfig['spec'],
});
const CONFIGS = [
  config('00-base', {
    config: {
      storage: { files: [{ path: '/etc/a' }], links: [{ path: '/etc/l' }] },
      systemd: { units: [{ name: 'a.service' }] },
    },
    kernelArguments: ['quiet'],
    fips: false,
  }),
  config('50-more', { config: { storage: { files: [{ path: '/etc/a' }] } }, kernelArguments: [] }),
  config('60-keys', { config: { passwd: { users: [{ name: 'core' }] } }, osImageURL: 'r/os@sha256:0' }),
];

test.each<[Subject, string[]]>([
  [{ kind: 'file', subject: '/etc/a' }, ['00-base', '50-more']],
  [{ kind: 'file', subject: '/etc/l' }, ['00-base']],
  [{ kind: 'file', subject: '/etc/b' }, []],
  [{ kind: 'unit', subject: 'a.service' }, ['00-base']],
  [{ kind: 'sshKey', subject: 'core' }, ['60-keys']],
  [{ kind: 'field', subject: 'kernelArguments' }, ['00-base']],
  [{ kind: 'field', subject: 'fips' }, []],
  [{ kind: 'field', subject: 'baseImage' }, ['60-keys']],
])('$subject', (subject, names) => {
  expect(configsWith(subject, CONFIGS)).toEqual(names);
});
