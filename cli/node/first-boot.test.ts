import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parseDigestedPullspec } from '../../api/references.ts';
import { evaluatePolicy } from '../../daemon/os/image-policy/signature-policy.ts';
import { parseReference } from '../../image/reference.ts';
import { type FirstBoot, firstBootParts } from './first-boot.ts';
import { firstBootScript } from './first-boot-script.ts';

const image = parseDigestedPullspec(`r.io/os/worker@sha256:${'1'.repeat(64)}`);
const PEM = '-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----\n';
const OTHER = PEM.replace('MFkw', 'MFkx');
const boot = (more: Partial<FirstBoot> = {}): FirstBoot => ({
  pool: 'worker',
  image,
  publicKeys: [PEM],
  hasStartupTaint: true,
  ...more,
});
const fileOf = (given: FirstBoot, name: string) =>
  firstBootParts(given).files.find((file) => file.path.endsWith(name))?.contents ?? '';

describe('the policy while the image is pulled', () => {
  test.each<[string, readonly string[]]>([
    ['one key', [PEM]],
    ['the keys of a rotation', [PEM, OTHER]],
  ])('requires a signature by a key of the cluster: %s', (_name, publicKeys) => {
    const policy = fileOf(boot({ publicKeys }), 'policy.json');
    const keys = publicKeys.map((pem) => ({ kind: 'text', pem }));
    expect(evaluatePolicy(policy, parseReference(image))).toEqual({
      kind: 'allow',
      signatures: [{ keys: expect.arrayContaining(keys) }],
    });
    expect(fileOf(boot({ publicKeys }), '.yaml')).toContain(
      'r.io/os/worker:\n    use-sigstore-attachments: true',
    );
  });

  test('takes no other image', () => {
    const policy = fileOf(boot(), 'policy.json');
    for (const other of ['r.io/os/infra', 'r.io/os', 'evil.io/os/worker']) {
      expect(evaluatePolicy(policy, parseReference(`${other}@sha256:${'1'.repeat(64)}`)).kind).toBe('reject');
    }
  });

  test('is none where signing is disabled', () => {
    expect(firstBootParts(boot({ publicKeys: [] })).files.map((file) => file.path)).toEqual([
      '/etc/shale/first-boot/switch.sh',
    ]);
  });
});

describe('the units', () => {
  test('run once, and never on a machine that runs an image of Shale’s or has joined', () => {
    const contents = firstBootParts(boot()).unit?.contents ?? '';
    expect(contents.match(/^ConditionPathExists=.*$/gm)).toEqual([
      'ConditionPathExists=!/var/lib/shale-first-boot',
      'ConditionPathExists=!/usr/share/shale/machine-config.json',
      'ConditionPathExists=!/var/lib/kubelet/pki/kubelet-client-current.pem',
    ]);
    expect(contents).toMatch(
      /^Before=kubelet\.service cloud-config\.service cloud-final\.service zincati\.service$/m,
    );
    expect(contents).not.toContain('RequiresMountsFor');
  });

  test('wait for the file system of the credentials', () => {
    const contents = firstBootParts(boot({ authFile: '/mnt/auth.json' })).unit?.contents;
    expect(contents).toContain('\nRequiresMountsFor=/mnt/auth.json\n');
  });

  const taint = 'KUBELET_EXTRA_ARGS=--register-with-taints=shale.dev/not-configured:NoSchedule';
  const { image: _, ...stock } = boot();
  test.each<[string, FirstBoot, string | undefined]>([
    [
      'image and taint',
      boot(),
      `[Unit]\nWants=shale-first-boot.service\nAfter=shale-first-boot.service\n\n[Service]\nEnvironment="${taint}"\n`,
    ],
    [
      'image',
      boot({ hasStartupTaint: false }),
      '[Unit]\nWants=shale-first-boot.service\nAfter=shale-first-boot.service\n',
    ],
    ['taint', stock, `[Service]\nEnvironment="${taint}"\n`],
    ['neither', { ...stock, hasStartupTaint: false }, undefined],
  ])('have the kubelet wait and register with the taint: %s', (_name, given, expected) => {
    expect(firstBootParts(given).dropin?.contents).toBe(expected);
  });
});

/** Runs the script with stand-ins for the programs of a host. @returns the exit code and what was run, in order. */
async function run(
  script: string,
  programs: Readonly<Record<string, string>>,
  argument = '',
): Promise<{
  readonly code: number;
  readonly ran: readonly string[];
  readonly hasStamp: boolean;
  /** Whether cloud-init's record that it has written its files is still there. */
  readonly hasWritten: boolean;
}> {
  const root = await mkdtemp(path.join(tmpdir(), 'shale-first-boot-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  const bin = path.join(root, 'bin');
  await Promise.all([mkdir(bin), mkdir(path.join(root, 'run'))]);
  const written = path.join(root, 'lib/cloud/instance/sem/config_write_files');
  await mkdir(path.dirname(written), { recursive: true });
  await writeFile(written, '');
  const log = path.join(root, 'log');
  await writeFile(log, '');
  const stubs = { mount: '', umount: '', systemctl: '', sleep: '', sync: '', ...programs };
  for (const [name, body] of Object.entries(stubs)) {
    await writeFile(path.join(bin, name), `#!/bin/sh\necho "${name} $*" >> ${log}\n${body}\n`);
    await chmod(path.join(bin, name), 0o755);
  }
  const text = script.replaceAll('/var/lib', path.join(root, 'lib')).replaceAll('/run/', `${root}/run/`);
  const file = path.join(root, 'switch.sh');
  await writeFile(file, text);
  const args = argument === '' ? [file] : [file, argument];
  const code = await new Promise<number>((resolve) => {
    execFile('/bin/sh', args, { env: { PATH: `${bin}:/usr/bin:/bin` } }, (error) =>
      resolve(error === null ? 0 : Number(error.code)),
    );
  });
  const ran = (await readFile(log, 'utf8')).trim().split('\n');
  const stamp = await readFile(path.join(root, 'lib/shale-first-boot')).catch(() => undefined);
  return {
    code,
    ran: ran.filter((line) => !['', 'sync'].includes(line.trim())),
    hasStamp: stamp !== undefined,
    hasWritten: await readFile(written).then(
      () => true,
      () => false,
    ),
  };
}

describe('the script', () => {
  const signed = firstBootScript({ image, mustBeSigned: true });
  const bootcHost = `[ "$1" = switch ] || echo '{"status": {"type": "bootcHost"}}'`;
  const mount = 'mount --bind /etc/shale/first-boot/policy.json /etc/containers/policy.json';
  const umount = 'umount -l /etc/containers/policy.json';
  const bootcSwitch = `bootc switch --quiet --transport=registry --enforce-container-sigpolicy ${image}`;

  test('switches by bootc under the strict policy, detaches it and reboots', async () => {
    const { code, ran, hasStamp, hasWritten } = await run(signed, { bootc: bootcHost, 'rpm-ostree': '' });
    expect(ran).toEqual([
      mount,
      'bootc status --json',
      bootcSwitch,
      umount,
      'systemctl reboot',
      'sleep infinity',
    ]);
    // What cloud-init has written below /run, such as kubeadm's config, is gone with the reboot: it writes it again.
    expect({ code, hasStamp, hasWritten }).toEqual({ code: 0, hasStamp: true, hasWritten: false });
  });

  test('switches by rpm-ostree on a host that is no image yet', async () => {
    const { ran } = await run(signed, { bootc: `echo '{"status":{"type":null}}'`, 'rpm-ostree': '' });
    // Fedora CoreOS has a driver of its updates (Zincati).
    expect(ran).toContain(`rpm-ostree rebase --bypass-driver ostree-image-signed:docker://${image}`);
    expect(ran).toContain('systemctl reboot');
  });

  test('gives up without a reboot, so that the kubelet starts, and is not tried again', async () => {
    const { code, ran, hasStamp, hasWritten } = await run(signed, {
      bootc: `${bootcHost}\n[ "$1" != switch ]`,
    });
    expect(ran.filter((line) => line === bootcSwitch)).toHaveLength(12);
    expect(ran.at(-1)).toBe(umount);
    expect(ran).not.toContain('systemctl reboot');
    expect({ code, hasStamp, hasWritten }).toEqual({ code: 1, hasStamp: true, hasWritten: true });
  });

  test('pulls nothing when the policy can’t be put in place', async () => {
    const { code, ran } = await run(signed, { bootc: bootcHost, mount: 'exit 1' });
    expect({ code, ran }).toEqual({ code: 1, ran: [mount] });
  });

  test('waits for nothing on a host that has neither tool, so that the kubelet starts at once', async () => {
    const { code, ran, hasStamp } = await run(signed, {});
    expect({ code, ran, hasStamp }).toEqual({ code: 1, ran: [], hasStamp: true });
  });

  test('needs the credentials that it was given', async () => {
    const script = firstBootScript({ image, mustBeSigned: true, authFile: '/nowhere/auth.json' });
    expect(await run(script, { bootc: bootcHost })).toMatchObject({ code: 1, ran: [] });
  });

  test('requires no signature where signing is disabled', async () => {
    const script = firstBootScript({ image, mustBeSigned: false });
    const { ran } = await run(script, { bootc: bootcHost });
    expect(ran).toContain(`bootc switch --quiet --transport=registry ${image}`);
    expect(ran).not.toContain(mount);
  });

  test('releases nothing that it did not mount', async () => {
    expect(await run(signed, {}, 'release')).toMatchObject({ code: 0, ran: [], hasStamp: false });
  });
});
