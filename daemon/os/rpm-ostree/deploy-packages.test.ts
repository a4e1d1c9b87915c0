import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  changePackages,
  noPackages,
  osPackages,
  type PackageSet,
} from '../../../machineconfig/os-packages.ts';
import { type Composition, packageTransaction } from './deploy-packages.ts';

const extensions = (...names: string[]) => osPackages({ extensions: names, kernelType: 'default' });
const realtime = osPackages({ extensions: [], kernelType: 'realtime' });
const hugePages = osPackages({ extensions: [], kernelType: '64k-pages' });
const KERNEL = 'kernel kernel-core kernel-modules kernel-modules-core kernel-modules-extra';

/** @returns all commands from a booted deployment of image `a` to another, in short. */
function way(from: PackageSet, to: PackageSet, image = 'a', admin: PackageSet = noPackages): string[] {
  const packages = changePackages(admin, { remove: noPackages, add: from });
  const wanted = changePackages(packages, { remove: from, add: to });
  const commands: string[] = [];
  let present: Composition = { image: 'a', packages };
  for (;;) {
    const wish = { image, reference: `registry:${image}`, packages: wanted, former: from };
    const command = packageTransaction(present, wish);
    if (command === undefined) {
      expect(present).toEqual({ image, packages: wanted });
      return commands;
    }
    commands.push(command.slice(1).join(' ').replace(' --lock-finalization', ''));
    expect(command).toContain('--lock-finalization');
    expect(commands.length).toBeLessThan(5);
    present = carriedOut(present, command.slice(1));
  }
}

/** What rpm-ostree does, and what it refuses (rust/src/treefile.rs, rpmostreed-transaction-types.cxx). */
function carriedOut({ image, packages }: Composition, command: readonly string[]): Composition {
  const [verb, ...rest] = command[0] === 'override' ? command.slice(1) : command;
  const names = rest.filter((each) => !each.startsWith('--'));
  const flag = (name: string) =>
    rest.filter((each) => each.startsWith(`--${name}=`)).map((each) => each.slice(name.length + 3));
  const install = [...flag('install'), ...(verb === 'install' ? names : [])];
  const uninstall = [...flag('uninstall'), ...(verb === 'uninstall' ? names : [])];
  expect(install.filter((name) => packages.installed.includes(name))).toEqual([]);
  expect(uninstall.filter((name) => !packages.installed.includes(name))).toEqual([]);
  if (verb === 'remove') expect(names.filter((name) => packages.removed.includes(name))).toEqual([]);
  if (verb === 'reset') expect(names.filter((name) => !packages.removed.includes(name))).toEqual([]);
  if (verb === 'rebase') expect(names).not.toEqual([`registry:${image}`]);
  return {
    image: verb === 'rebase' ? String(names[0]).slice('registry:'.length) : image,
    packages: changePackages(packages, {
      remove: { installed: uninstall, removed: verb === 'reset' ? names : [] },
      add: { installed: install, removed: verb === 'remove' ? names : [] },
    }),
  };
}

describe('packageTransaction', () => {
  it.each<[string, PackageSet, PackageSet, string, string[]]>([
    ['nothing', extensions('usbguard'), extensions('usbguard'), 'a', []],
    ['a first extension', noPackages, extensions('usbguard'), 'a', ['install usbguard']],
    ['none any more', extensions('usbguard'), noPackages, 'a', ['uninstall usbguard']],
    ['another', extensions('usbguard'), extensions('sysstat'), 'a', ['install sysstat --uninstall=usbguard']],
    [
      'another kernel',
      noPackages,
      realtime,
      'a',
      [
        `override remove ${KERNEL} --install=kernel-rt-core --install=kernel-rt-modules --install=kernel-rt-modules-extra`,
      ],
    ],
    [
      'the image’s kernel again, and an extension',
      realtime,
      extensions('usbguard'),
      'a',
      [
        `override reset ${KERNEL} --install=usbguard --uninstall=kernel-rt-core --uninstall=kernel-rt-modules --uninstall=kernel-rt-modules-extra`,
      ],
    ],
    [
      'one kernel for another',
      realtime,
      hugePages,
      'a',
      [
        'install kernel-64k-core kernel-64k-modules kernel-64k-modules-core kernel-64k-modules-extra --uninstall=kernel-rt-core --uninstall=kernel-rt-modules --uninstall=kernel-rt-modules-extra',
      ],
    ],
    [
      'another image and extension',
      extensions('usbguard'),
      extensions('sysstat'),
      'b',
      ['rebase registry:b --install=sysstat --uninstall=usbguard'],
    ],
    [
      'another image with the same kernel',
      realtime,
      realtime,
      'b',
      [
        `override reset ${KERNEL} --uninstall=kernel-rt-core --uninstall=kernel-rt-modules --uninstall=kernel-rt-modules-extra`,
        'rebase registry:b',
        `override remove ${KERNEL} --install=kernel-rt-core --install=kernel-rt-modules --install=kernel-rt-modules-extra`,
      ],
    ],
  ])('%s', (_name, from, to, image, commands) => {
    expect(way(from, to, image)).toEqual(commands);
  });

  it('gets from any config to any other in at most three, whatever the admin has installed and removed', () => {
    const config = fc
      .record({
        extensions: fc.subarray(['usbguard', 'ipsec', 'sysstat', 'kernel-devel']),
        kernelType: fc.constantFrom('default' as const, 'realtime' as const, '64k-pages' as const),
      })
      .map(osPackages);
    const admin = fc.record({
      installed: fc.subarray(['htop', 'vim']),
      removed: fc.subarray(['firefox', 'nano']),
    });
    fc.assert(
      fc.property(config, config, fc.constantFrom('a', 'b'), admin, (from, to, image, own) => {
        expect(way(from, to, image, own).length).toBeLessThanOrEqual(image === 'a' ? 1 : 3);
      }),
    );
  });
});
