import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { present } from '../../api/present.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { deployment, imageOf } from '../../test/fixtures/step-context.ts';
import type { OsBackend } from './backend.ts';
import { chooseBackend, DetectedBackend, detectBackend, type FoundTools } from './detect-backend.ts';
import { OsCommandError, osCommandRunner, type RunOsCommand } from './os-command.ts';
import type { BackendName } from './os-tool.ts';

const plain: FoundTools = {
  isBootedByOstree: true,
  isEtcTransient: false,
  hasRpmOstree: false,
  hasOstree: true,
};
const bootc = { isOfImage: true };
const changed = { isOfImage: false, obstacle: 'changed by rpm-ostree' };

describe('chooseBackend', () => {
  it.each<[string, FoundTools, string]>([
    ['plain ostree', plain, 'ostree'],
    ['bootc alone', { ...plain, bootc }, 'bootc'],
    ['bootc and rpm-ostree on an image', { ...plain, bootc, hasRpmOstree: true }, 'bootc'],
    ['rpm-ostree alone', { ...plain, hasRpmOstree: true }, 'rpm-ostree'],
    [
      'both, and no image booted yet',
      { ...plain, bootc: { isOfImage: false }, hasRpmOstree: true },
      'rpm-ostree',
    ],
    ['bootc, and no image booted yet', { ...plain, bootc: { isOfImage: false } }, 'bootc'],
    ['both, and packages layered', { ...plain, bootc: changed, hasRpmOstree: true }, 'rpm-ostree'],
  ])('%s', (_name, found, expected) => {
    expect(chooseBackend(found)).toEqual({ kind: 'found', name: expected });
  });

  it.each<[string, FoundTools, string]>([
    ['an ordinary host', { ...plain, isBootedByOstree: false }, 'not booted by ostree'],
    [
      'a host of bootc without ostree',
      { ...plain, isBootedByOstree: false, bootc: { isOfImage: false, obstacle: 'composefs' } },
      'bootc: composefs',
    ],
    [
      'a host that loses /etc at each boot',
      { ...plain, isEtcTransient: true, bootc, hasRpmOstree: true },
      '/etc is transient',
    ],
    ['packages layered by an rpm-ostree that is gone', { ...plain, bootc: changed }, 'changed by rpm-ostree'],
    [
      'a host that ostree booted and does not have',
      { ...plain, hasOstree: false },
      'ostree is not installed',
    ],
  ])('touches nothing on %s', (_name, found, why) => {
    expect(chooseBackend(found)).toEqual({ kind: 'none', why: expect.stringContaining(why) });
  });

  it('takes rpm-ostree for packages, wherever it is', () => {
    const forPackages = { forPackages: true };
    expect(chooseBackend({ ...plain, bootc, hasRpmOstree: true }, forPackages)).toMatchObject({
      name: 'rpm-ostree',
    });
    expect(chooseBackend({ ...plain, bootc }, forPackages)).toMatchObject({ name: 'bootc' });
    expect(
      chooseBackend({ ...plain, bootc, hasRpmOstree: true }, { ...forPackages, requested: 'bootc' }),
    ).toMatchObject({ name: 'bootc' });
  });

  it('does as the admin says, or nothing', () => {
    const both = { ...plain, bootc, hasRpmOstree: true };
    expect(chooseBackend(both, { requested: 'rpm-ostree' })).toEqual({ kind: 'found', name: 'rpm-ostree' });
    expect(chooseBackend(both, { requested: 'ostree' })).toEqual({ kind: 'found', name: 'ostree' });
    expect(chooseBackend(plain, { requested: 'bootc' })).toEqual({
      kind: 'none',
      why: 'bootc is not installed',
    });
    expect(chooseBackend({ ...plain, bootc: changed }, { requested: 'bootc' })).toEqual({
      kind: 'none',
      why: 'bootc: changed by rpm-ostree',
    });
  });
});

describe('detectBackend', () => {
  const signal = deadline(10_000);
  const booted = {
    image: { image: { image: imageOf('1'), transport: 'registry' }, imageDigest: `sha256:${'1'.repeat(64)}` },
    incompatible: false,
    pinned: false,
    ostree: { checksum: 'a'.repeat(64), deploySerial: 0, stateroot: 'default' },
  };
  const status = (type: string | null) =>
    JSON.stringify({
      apiVersion: 'org.containers.bootc/v1',
      kind: 'BootcHost',
      spec: {},
      status: { type, ...(type === null ? {} : { booted }) },
    });

  async function hostWith(...files: readonly string[]): Promise<string> {
    const root = await mkdtemp(path.join(tmpdir(), 'host-'));
    onTestFinished(() => rm(root, { recursive: true }));
    for (const file of files) {
      await mkdir(path.dirname(path.join(root, file)), { recursive: true });
      await writeFile(path.join(root, file), '');
    }
    return root;
  }
  const noCommand = () => Promise.reject(new Error('no command is needed'));

  it.each([
    [['run/ostree-booted', 'usr/bin/ostree'], 'ostree'],
    [['run/ostree-booted', 'usr/bin/ostree', 'usr/bin/rpm-ostree'], 'rpm-ostree'],
  ])('finds by %j that the host has %s', async (files, expected) => {
    const root = await hostWith(...files);
    expect(await detectBackend({ root, run: noCommand }, signal)).toBe(expected);
  });

  it.each([
    ['bootcHost', 'bootc'],
    [null, 'rpm-ostree'],
  ])('asks bootc what the host has booted: %s', async (type, expected) => {
    const root = await hostWith('run/ostree-booted', 'usr/bin/ostree', 'usr/bin/rpm-ostree', 'usr/bin/bootc');
    const run = async () => status(type);
    expect(await detectBackend({ root, run }, signal)).toBe(expected);
  });

  /** @returns what bootc 1.16.9 printed of a host that it had just installed. */
  async function recorded(bootloader: string): Promise<string> {
    const file = `../../test/os-tools/recorded/bootc-1.16.9-composefs-${bootloader}.json`;
    const steps = JSON.parse(await readFile(path.join(import.meta.dirname, file), 'utf8'));
    return JSON.stringify(steps[0].status);
  }
  const VERITY = 'a'.repeat(128);
  /** @param etc where /etc lies: the deployment's own, or another. */
  async function composefsHost(etc: 'own' | 'other'): Promise<string> {
    // ostree is there, too, and wasn't what has booted the host.
    const root = await hostWith(
      'usr/bin/ostree',
      'usr/bin/bootc',
      `sysroot/state/deploy/${VERITY}/etc/hostname`,
    );
    if (etc === 'own') await symlink(`sysroot/state/deploy/${VERITY}/etc`, path.join(root, 'etc'));
    else await mkdir(path.join(root, 'etc'));
    return root;
  }

  it('finds a host that bootc keeps in composefs, with systemd-boot and BLS entries', async () => {
    const root = await composefsHost('own');
    const run = async () => recorded('systemd-boot');
    expect(await detectBackend({ root, run }, signal)).toBe('bootc-composefs');
    expect(await detectBackend({ root, run, requested: 'bootc' }, signal)).toBe('bootc-composefs');
    expect(await detectBackend({ root, run, forPackages: true }, signal)).toBe('bootc-composefs');
    await expect(detectBackend({ root, run, requested: 'ostree' }, signal)).rejects.toThrow(
      'bootc keeps its deployments in composefs, which ostree does not know; expected bootc',
    );
  });

  it.each([
    ['GRUB', () => recorded('grub'), 'own', /BLS entries with GRUB: .*expected systemd-boot$/],
    [
      'a unified kernel image',
      () => readFile(path.join(import.meta.dirname, 'bootc/transcripts/1.16-composefs-uki.json'), 'utf8'),
      'own',
      /a unified kernel image.*expected BLS entries with systemd-boot$/,
    ],
    [
      'an /etc that no boot keeps',
      () => recorded('systemd-boot'),
      'other',
      /\/etc is not the booted deployment's own/,
    ],
  ] as const)('touches no host that bootc keeps in composefs, with %s', async (_what, text, etc, why) => {
    const root = await composefsHost(etc);
    for (const requested of [undefined, 'ostree', 'bootc'] as const) {
      const detecting = detectBackend({ root, run: text, ...present({ requested }) }, signal);
      await expect(detecting).rejects.toThrow(why);
      await expect(detecting).rejects.toThrow(/^bootc: /);
    }
  });

  it('finds it again after a loss of power has left entries of what was staged that bootc can’t read', async () => {
    const root = await composefsHost('own');
    const partition = await hostWith(
      'loader/entries.staged/bootc_debian-0.conf',
      'loader/entries/bootc_debian-1.conf',
    );
    const staged = path.join(partition, 'loader/entries.staged');
    const run: RunOsCommand = async (command, options) => {
      if (command[0] === 'bootctl') return `${partition}\n`;
      if (command[0] !== 'bootc') return osCommandRunner()(command, options);
      if (!existsSync(staged)) return recorded('systemd-boot');
      throw new OsCommandError(command, 'exit code 1', {
        exitCode: 1,
        stderr: "error: Status: Parsing bls config: Missing 'version' value\n",
      });
    };
    const note = path.join(root, 'run/composefs/staged-deployment');
    await mkdir(path.dirname(note), { recursive: true });
    await writeFile(note, '{}');
    await expect(detectBackend({ root, run }, signal)).rejects.toThrow("Missing 'version' value");
    expect(existsSync(staged)).toBe(true);
    await rm(note);
    expect(await detectBackend({ root, run }, signal)).toBe('bootc-composefs');
    expect(existsSync(staged)).toBe(false);
    expect(existsSync(path.join(partition, 'loader/entries'))).toBe(true);
  });

  it.each(['', 'bootctl: not installed'])(
    'reports what bootc reports without systemd-boot: %j',
    async (printed) => {
      const run: RunOsCommand = async (command) => {
        if (command[0] === 'bootctl' && printed === '') return printed;
        throw new OsCommandError(command, 'exit code 1', { exitCode: 1, stderr: 'error: Status: no\n' });
      };
      await expect(detectBackend({ root: await composefsHost('own'), run }, signal)).rejects.toThrow(
        'bootc status',
      );
    },
  );

  it('touches no host that bootc keeps in composefs, with a /var that no boot keeps', async () => {
    const root = await composefsHost('own');
    const file = path.join(root, 'usr/lib/composefs/setup-root-conf.toml');
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, '[var]\ntransient = true\n');
    const run = () => recorded('systemd-boot');
    await expect(detectBackend({ root, run }, signal)).rejects.toThrow(
      'bootc: /usr/lib/composefs/setup-root-conf.toml makes /var transient',
    );
  });

  it.each([
    ['was not booted by ostree', ['usr/bin/ostree']],
    ['has no tool', ['run/ostree-booted']],
  ])('touches no host that %s', async (_name, files) => {
    const root = await hostWith(...files);
    await expect(detectBackend({ root, run: noCommand }, signal)).rejects.toMatchObject({
      name: 'UnsupportedHostError',
    });
  });
});

describe('DetectedBackend', () => {
  const signal = deadline(10_000);
  const image = imageOf('1');
  const asked: string[] = [];
  const backend = (name: BackendName, installsPackages: boolean): OsBackend =>
    ({
      tool: async () => ({ name, installsPackages }),
      fetch: async () => deployment(`/${name}`, { labels: { name } }),
      stage: async () => deployment(`/${name}`, { image }),
      status: async () => ({ booted: deployment(`/${name}`) }),
      unstage: async () => void asked.push('unstage'),
      finalizeStaged: async () => deployment(`/${name}/final`),
      prepareSoftReboot: async () => void asked.push('prepareSoftReboot'),
      rollback: async () => void asked.push('rollback'),
      rollbackScript: async () => 'script',
      bootScript: async () => 'what is booted',
      cleanup: async () => void asked.push('cleanup'),
    }) satisfies OsBackend;

  function detected(other: OsBackend = backend('rpm-ostree', true)) {
    const looks: boolean[] = [];
    const detect = async ({ packages }: { readonly packages: boolean }) => {
      looks.push(packages);
      return packages ? other : backend('bootc', false);
    };
    return { backend: new DetectedBackend(detect), looks };
  }
  const extraKernelArguments = { remove: [], add: [] };
  const extraPackages = {
    remove: { installed: [], removed: [] },
    add: { installed: ['htop'], removed: [] },
  };

  it('looks once, and has what was found do everything', async () => {
    const { backend: found, looks } = detected();
    expect((await found.status(signal)).booted.root).toBe('/bootc');
    expect((await found.fetch(image, { extraKernelArguments, signal })).labels).toEqual({ name: 'bootc' });
    expect((await found.stage(image, { extraKernelArguments, signal })).root).toBe('/bootc');
    await found.unstage(signal);
    expect((await found.finalizeStaged(new Map(), signal)).root).toBe('/bootc/final');
    await found.prepareSoftReboot(signal);
    await found.rollback(signal);
    expect(await found.rollbackScript([], signal)).toBe('script');
    expect(await found.bootScript(signal)).toBe('what is booted');
    await found.cleanup(signal);
    expect(asked).toEqual(['unstage', 'prepareSoftReboot', 'rollback', 'cleanup']);
    expect(looks).toEqual([false]);
  });

  it('goes over to the tool that installs packages, and stays there', async () => {
    const { backend: found, looks } = detected();
    expect((await found.stage(image, { extraKernelArguments, extraPackages, signal })).root).toBe(
      '/rpm-ostree',
    );
    expect((await found.status(signal)).booted.root).toBe('/rpm-ostree');
    expect(looks).toEqual([true]);
  });

  it('says that packages can be installed where another tool does it', async () => {
    expect(await detected().backend.tool(signal)).toEqual({ name: 'bootc', installsPackages: true });
    const none = detected(backend('bootc', false));
    expect(await none.backend.tool(signal)).toEqual({ name: 'bootc', installsPackages: false });
    expect(none.looks).toEqual([false, true]);
  });

  it('asks no other tool where the first installs packages', async () => {
    const looks: boolean[] = [];
    const found = new DetectedBackend(async ({ packages }) => {
      looks.push(packages);
      return backend('rpm-ostree', true);
    });
    expect(await found.tool(signal)).toEqual({ name: 'rpm-ostree', installsPackages: true });
    expect(looks).toEqual([false]);
  });

  it('looks again where it found nothing', async () => {
    let looks = 0;
    const found = new DetectedBackend(async () => {
      looks += 1;
      if (looks === 1) throw new Error('not yet');
      return backend('ostree', false);
    });
    await expect(found.status(signal)).rejects.toThrow('not yet');
    expect((await found.status(signal)).booted.root).toBe('/ostree');
  });
});
