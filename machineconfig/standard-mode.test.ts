import { expect, test } from 'vitest';
import { emptyNodeConfig, type NodeConfig } from './node-config.ts';
import { type HostSystem, limitedInStandardMode, refusedInStandardMode } from './standard-mode.ts';

const IMAGE = `r.example.com/os@sha256:${'1'.repeat(64)}`;
const host = (name: HostSystem['osBackend']['name'], more: Partial<HostSystem> = {}): HostSystem => ({
  osBackend: { name },
  architecture: 'amd64',
  baseImage: IMAGE,
  ...more,
});
const refused = (to: Partial<NodeConfig>, on: HostSystem, extensionsImage = '') =>
  refusedInStandardMode({ from: emptyNodeConfig, to: { ...emptyNodeConfig, ...to }, extensionsImage }, on);
const usbguard = { extensions: ['usbguard'] };

test.each<[string, Partial<NodeConfig>, HostSystem, RegExp | undefined]>([
  ['extensions', usbguard, host('ostree'), /^extensions usbguard: ostree keeps .* rpm-ostree$/],
  ['extensions', usbguard, host('rpm-ostree'), undefined],
  [
    'extensions and another kernel',
    { ...usbguard, kernelType: 'realtime' },
    host('bootc', { osBackend: { name: 'bootc', installsPackages: false } }),
    /^extensions usbguard and kernelType realtime: bootc keeps/,
  ],
  [
    'extensions, by rpm-ostree beside bootc,',
    usbguard,
    host('bootc', { osBackend: { name: 'bootc', installsPackages: true } }),
    undefined,
  ],
  ['large pages', { kernelType: '64k-pages' }, host('rpm-ostree'), /arm64 alone, and this host is amd64$/],
  ['large pages', { kernelType: '64k-pages' }, host('rpm-ostree', { architecture: 'arm64' }), undefined],
  [
    'an OS image by tag',
    { osImageURL: 'r.example.com/os:1' },
    host('ostree'),
    /^osImageURL: not an image by d/,
  ],
  ['an OS image by digest', { osImageURL: IMAGE }, host('ostree'), undefined],
  ['kernel arguments', { kernelArguments: ['quiet'] }, host('ostree'), undefined],
  [
    'kernel arguments',
    { kernelArguments: ['quiet', 'nosmt'] },
    host('bootc', { osBackend: { name: 'bootc', setsKernelArguments: false } }),
    /^kernelArguments quiet nosmt: bootc can't set kernel arguments .*; expected on-cluster layering$/,
  ],
  [
    'no kernel arguments',
    {},
    host('bootc', { osBackend: { name: 'bootc', setsKernelArguments: false } }),
    undefined,
  ],
])('%s: %j on %j', (_what, to, on, expected) => {
  const why = refused(to, on).join();
  if (expected === undefined) expect(why).toBe('');
  else expect(why).toMatch(expected);
});

test('a host without a known image can apply files, but nothing that needs another deployment', () => {
  const { baseImage: _, ...unknown } = host('rpm-ostree');
  expect(refused({ files: new Map() }, unknown)).toEqual([]);
  for (const to of [usbguard, { kernelArguments: ['quiet'] }]) {
    expect(refused(to, unknown).join()).toContain('expected osImageURL by digest');
    expect(refused({ ...to, osImageURL: IMAGE }, unknown)).toEqual([]);
  }
});

test.each([
  ['/usr/share/site/motd', true],
  ['/lib/systemd/system/site.service', true],
  ['/usr/local/bin/tool', false],
  ['/etc/motd', false],
  ['/var/lib/site', false],
])('%s is for an image alone: %s', (path, isRefused) => {
  const owner = { user: { id: 0 }, group: { id: 0 } };
  const file = { path, contents: Buffer.from('site'), mode: 0o644, ...owner };
  const link = { path, target: '/etc/site', hard: false, ...owner };
  for (const to of [{ files: new Map([[path, file]]) }, { links: new Map([[path, link]]) }]) {
    const expected = isRefused ? [expect.stringContaining(`${path}: /usr belongs to the image`)] : [];
    expect(refused(to, host('ostree'))).toEqual(expected);
    const limited = limitedInStandardMode({ ...emptyNodeConfig, ...to }, '');
    expect(limited).toEqual(isRefused ? [`${path}: on no host without layering`] : []);
  }
});

test('packages come from an image by digest', () => {
  expect(refused(usbguard, host('rpm-ostree'), 'r.example.com/extensions:1')).toEqual([
    expect.stringMatching(/^baseOSExtensionsContainerImage: not an image by digest/),
  ]);
  expect(refused({}, host('rpm-ostree'), 'r.example.com/extensions:1')).toEqual([]);
});
