import { expect, test } from 'vitest';
import type { BaseContent, BaseEntry } from '../../machineconfig/base-tree.ts';
import { emptyNodeConfig, type NodeConfig } from '../../machineconfig/node-config.ts';
import { absentUnits } from './absent-units.ts';

const directory: BaseEntry = { kind: 'directory', mode: 0o755, uid: 0, gid: 0, isEmpty: false };
const entries: Readonly<Record<string, BaseEntry>> = {
  ...{ '/usr': directory, '/usr/lib': directory, '/usr/lib/systemd': directory, '/etc': directory },
  '/usr/lib/systemd/system': directory,
  '/usr/lib/systemd/system/chronyd.service': { kind: 'file' },
  '/usr/lib/systemd/system/app@.service': { kind: 'file' },
  '/etc/init.d': directory,
  '/etc/init.d/legacy': { kind: 'file' },
};
const base: BaseContent = { at: (path) => entries[path], users: new Map(), groups: new Map() };
const own = (contents?: string): NodeConfig => ({
  ...emptyNodeConfig,
  units: new Map([
    [
      'own.service',
      { name: 'own.service', masked: false, dropins: new Map(), ...(contents && { contents }) },
    ],
  ]),
});

test.each([
  ['the base image has', 'chronyd.service', emptyNodeConfig, false],
  ['the base image has as a template', 'app@one.service', emptyNodeConfig, false],
  ['the base image has as a SysV script', 'legacy.service', emptyNodeConfig, false],
  ['the config has', 'own.service', own('[Service]'), false],
  ['the config only has drop-ins of', 'own.service', own(), true],
  ['is nowhere', 'crond.service', emptyNodeConfig, true],
])('a unit that %s: %s', (_, service, config, isAbsent) => {
  const warnings = absentUnits([{ type: 'Restart', service }, { type: 'Drain' }], [config], base);
  expect(warnings).toEqual(isAbsent ? [expect.stringContaining(`a policy names ${service}, of which`)] : []);
});
