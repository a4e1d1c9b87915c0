import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseDigestedPullspec } from '../../../api/references.ts';
import {
  changePackages,
  noPackages,
  osPackages,
  type PackageSet,
} from '../../../machineconfig/os-packages.ts';
import { deadline } from '../../../test/fixtures/patience.ts';
import { OsCommandError, type RunOsCommand } from '../os-command.ts';
import { type Composition, packageTransaction, rpmOstreeDeployPackages } from './deploy-packages.ts';

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

describe('rpmOstreeDeployPackages', () => {
  const IMAGE = parseDigestedPullspec(`r.io/os@sha256:${'a'.repeat(64)}`);
  const signal = deadline(60_000);
  const gone = 'error: Bus owner changed, aborting. This likely means the daemon crashed';

  /** A host on which each transaction ends as the test says, and whose status counts those that were carried out. */
  function scripted(outcomes: readonly ('done' | 'done, then gone' | 'gone' | 'failed')[]) {
    const transactions: string[] = [];
    let installed: readonly string[] = [];
    const run: RunOsCommand = async (command) => {
      if (command[1] === 'status') {
        const deployment = {
          osname: 'shale',
          checksum: 'c',
          serial: 0,
          booted: false,
          pinned: false,
          'requested-packages': installed,
          'requested-base-removals': [],
          'container-image-reference': `ostree-unverified-registry:${IMAGE}`,
          'container-image-reference-digest': IMAGE.slice(IMAGE.indexOf('sha256:')),
        };
        return JSON.stringify({ deployments: [deployment] });
      }
      if (command[0] === 'systemctl') return 'LoadState=loaded\nActiveState=active\n';
      const outcome = outcomes[transactions.length] ?? 'done';
      transactions.push(command.slice(1).join(' '));
      if (outcome.startsWith('done')) installed = ['usbguard'];
      if (outcome === 'done') return '';
      const stderr = outcome === 'failed' ? 'error: no such package' : gone;
      throw new OsCommandError(command, 'failed', { exitCode: 1, stderr });
    };
    const options = { packages: extensions('usbguard'), former: noPackages, mustBeSigned: false, signal };
    return { transactions, deploy: () => rpmOstreeDeployPackages(run, IMAGE, options) };
  }

  it.each([
    ['the image has what is asked for', ['done'], 1],
    ['the daemon goes away after its work', ['done, then gone'], 1],
    ['the daemon goes away before its work', ['gone', 'done'], 2],
  ] as const)('ends once %s', async (_when, outcomes, count) => {
    const { transactions, deploy } = scripted(outcomes);
    await deploy();
    expect(transactions).toHaveLength(count);
    expect(transactions[0]).toContain('usbguard');
  });

  it('throws what else a transaction fails by', async () => {
    const { transactions, deploy } = scripted(['failed']);
    await expect(deploy()).rejects.toThrow('no such package');
    expect(transactions).toHaveLength(1);
  });

  it('gives up where the daemon goes away again and again', async () => {
    const { transactions, deploy } = scripted(Array(100).fill('gone'));
    await expect(deploy()).rejects.toThrow(`no deployment of ${IMAGE} has the requested packages after`);
    expect(transactions.length).toBeLessThan(20);
  });
});
