import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { nodePaths } from '../../../api/names.ts';
import { parseDigestedPullspec } from '../../../api/references.ts';
import { ATTACHMENTS, OPEN, POLICY, policyHost } from '../../../test/fixtures/policy-host.ts';
import { newSigningKey } from '../../../test/fixtures/registry/registry-with-image.ts';
import { imageOf } from '../../../test/fixtures/step-context.ts';
import { RecordError } from '../../records/durable-json.ts';
import { imagesOfPolicy, keepImagePolicy, writtenPolicyFiles } from './keep-image-policy.ts';
import type { VerifiedImage } from './policy-entries.ts';

const images: readonly VerifiedImage[] = [{ image: imageOf('1'), publicKey: newSigningKey().publicKey }];

let root: string;
beforeEach(async () => {
  root = await policyHost();
});

const keep = (wanted: readonly VerifiedImage[], owned: readonly string[] = []) =>
  keepImagePolicy({ root, owned: new Set(owned) }, wanted);
const text = (name: string) => readFile(path.join(root, name), 'utf8');

describe('the policy of a host', () => {
  test('requires signatures while the node needs them, and is then as it was, byte for byte', async () => {
    expect(await keep(images)).toEqual({
      state: { kind: 'applied', repositories: ['registry.example.com/os/worker'] },
      written: [ATTACHMENTS, POLICY],
    });
    expect(await text(POLICY)).toContain('sigstoreSigned');
    const { ino } = await stat(path.join(root, POLICY));
    expect((await keep(images)).written).toEqual([]);
    expect((await stat(path.join(root, POLICY))).ino).toBe(ino);
    expect(await imagesOfPolicy(root)).toEqual(images);

    expect(await keep([])).toEqual({ state: { kind: 'not-required' }, written: [POLICY] });
    expect(await text(POLICY)).toBe(OPEN);
    expect(await readdir(path.join(root, 'etc/containers'))).toEqual(['policy.json']);
    expect(await imagesOfPolicy(root)).toEqual([]);
  });

  test("keeps what an admin has changed since; only Shale's entry goes", async () => {
    await keep(images);
    const changed = JSON.parse(await text(POLICY)) as { transports: { docker: Record<string, unknown> } };
    changed.transports.docker['quay.io'] = [{ type: 'reject' }];
    await writeFile(path.join(root, POLICY), JSON.stringify(changed));
    expect([...(await writtenPolicyFiles(root)).keys()]).toEqual([ATTACHMENTS]);
    expect((await keep(images)).state.kind).toBe('applied');
    await keep([]);
    expect(JSON.parse(await text(POLICY))).toEqual({
      default: [{ type: 'insecureAcceptAnything' }],
      transports: { docker: { 'quay.io': [{ type: 'reject' }] } },
    });
  });

  test('of another deployment gets the entries, and counts as what is to come back', async () => {
    await keep(images);
    const other = '{"default":[{"type":"insecureAcceptAnything"}],"transports":{"docker-daemon":{}}}';
    await writeFile(path.join(root, POLICY), other);
    await rm(path.join(root, ATTACHMENTS));
    expect((await keep(await imagesOfPolicy(root))).written).toEqual([ATTACHMENTS, POLICY]);
    await keep([]);
    expect(await text(POLICY)).toBe(other);
  });

  test('is the MachineConfig’s where one contains it: what is missing is reported', async () => {
    expect((await keep(images, [POLICY])).state).toEqual({
      kind: 'incomplete',
      reason: 'OwnedByMachineConfig',
      why: `a MachineConfig contains ${POLICY}, which lacks 1 entry of type sigstoreSigned for registry.example.com/os/worker; add it, or leave the file to Shale`,
    });
    expect(await text(POLICY)).toBe(OPEN);
    await keep(images);
    expect((await keep(images, [POLICY])).state.kind).toBe('applied');
  });

  test('is the MachineConfig’s where one lets an image in whoever signed it: that is reported', async () => {
    const docker = { 'registry.example.com/os/worker': [{ type: 'insecureAcceptAnything' }] };
    const open = JSON.stringify({ default: [{ type: 'reject' }], transports: { docker } });
    await writeFile(path.join(root, POLICY), open);
    const { state } = await keep(images, [POLICY]);
    const [{ image }] = images as [(typeof images)[number]];
    expect(state).toMatchObject({
      reason: 'OwnedByMachineConfig',
      why: expect.stringContaining(`lacks 1 entry of type sigstoreSigned for ${image}; add it`),
    });
    expect(await text(POLICY)).toBe(open);
  });

  test.each([
    ['is missing', async () => rm(path.join(root, POLICY)), 'InvalidPolicy'],
    ['is invalid', async () => writeFile(path.join(root, POLICY), '{'), 'InvalidPolicy'],
    [
      'is a link',
      async () => {
        await rm(path.join(root, POLICY));
        await symlink('/usr/share/policy.json', path.join(root, POLICY));
      },
      'InvalidPolicy',
    ],
    [
      'is in a directory that is a link',
      async () => {
        await rm(path.join(root, 'etc/containers'), { recursive: true });
        await symlink(await mkdtemp(path.join(root, 'elsewhere-')), path.join(root, 'etc/containers'));
      },
      'InvalidPolicy',
    ],
  ])('that %s is reported, and staging is not stopped', async (_name, damage, reason) => {
    await damage();
    expect((await keep(images)).state).toMatchObject({ kind: 'incomplete', reason });
    expect((await keep([])).state).toEqual({ kind: 'not-required' });
  });

  test('that has an entry of its own by which images come unsigned is reported', async () => {
    const own = { default: [{ type: 'reject' }], transports: { docker: {} as Record<string, unknown> } };
    own.transports.docker['registry.example.com/os/worker'] = [{ type: 'insecureAcceptAnything' }];
    await writeFile(path.join(root, POLICY), JSON.stringify(own));
    expect((await keep(images)).state).toEqual({
      kind: 'incomplete',
      reason: 'KeptAsItIs',
      why: `an entry of ${POLICY} takes ${imageOf('1')} unsigned: remove it, or let it require the signature`,
    });
  });

  test('is not written where the signatures could not be found', async () => {
    await mkdir(path.join(root, 'etc/containers/registries.d'));
    const own = 'docker: { registry.example.com/os/worker: { lookaside: "https://r.example.com" } }';
    await writeFile(path.join(root, 'etc/containers/registries.d/own.yaml'), own);
    expect((await keep(images)).state).toMatchObject({
      reason: 'KeptAsItIs',
      why: "/etc/containers/registries.d/own.yaml has an entry for registry.example.com/os/worker that doesn't set use-sigstore-attachments: set it to true",
    });
    expect(await text(POLICY)).toBe(OPEN);
  });

  test('has the repositories of mirrors, from which the images are pulled', async () => {
    const conf =
      '[[registry]]\nlocation = "registry.example.com"\n[[registry.mirror]]\nlocation = "m.io/copy"\n';
    await writeFile(path.join(root, 'etc/containers/registries.conf'), conf);
    await keep(images);
    expect(await text(ATTACHMENTS)).toContain('m.io/copy/os/worker:');
    expect(await text(POLICY)).not.toContain('m.io');
  });
});

describe('the files as Shale wrote them', () => {
  test.each<[string, () => Promise<unknown>, readonly string[]]>([
    ['are both', async () => undefined, [POLICY, ATTACHMENTS]],
    [
      'lack a policy that an admin has changed',
      async () => writeFile(path.join(root, POLICY), OPEN),
      [ATTACHMENTS],
    ],
    ['lack a policy that is gone', async () => rm(path.join(root, POLICY)), [ATTACHMENTS]],
    ['are none once the entries are out again', async () => keep([]), []],
  ])('%s', async (_name, change, files) => {
    await keep(images);
    await change();
    expect([...(await writtenPolicyFiles(root)).keys()]).toEqual(files);
  });

  test('are none before there are entries', async () => {
    expect(await writtenPolicyFiles(root)).toEqual(new Map());
  });
});

describe('the record', () => {
  const record = () => path.join(root, nodePaths.state, 'image-policy.json');

  test.each(['{', '{"version":2}'])('%s is refused, and no file is changed', async (content) => {
    await mkdir(path.dirname(record()), { recursive: true });
    await writeFile(record(), content);
    for (const wanted of [images, []]) await expect(keep(wanted)).rejects.toThrow(RecordError);
    await expect(imagesOfPolicy(root)).rejects.toThrow(RecordError);
    await expect(writtenPolicyFiles(root)).rejects.toThrow(RecordError);
    expect(await text(POLICY)).toBe(OPEN);
  });

  const keysOnRecord = async () =>
    Object.values((JSON.parse(await readFile(record(), 'utf8')) as { entries: object }).entries).flat();
  const keyData = ({ publicKey }: VerifiedImage) => Buffer.from(publicKey).toString('base64');

  test('has the keys of the present entries alone, once they are written', async () => {
    const [first] = images as [VerifiedImage];
    const rotated = { ...first, publicKey: newSigningKey().publicKey };
    await keep(images);
    expect(await keysOnRecord()).toEqual([keyData(first)]);
    await keep([rotated]);
    expect(await keysOnRecord()).toEqual([keyData(rotated)]);
  });

  test('has those of before as well while files change: an interrupted change is undone whole', async () => {
    const [first] = images as [VerifiedImage];
    const other = { image: imageOf('2'), publicKey: newSigningKey().publicKey };
    await keep(images);
    await rm(path.join(root, ATTACHMENTS));
    // Where signatures are can't be written, so the policy isn't either.
    await mkdir(path.join(root, ATTACHMENTS, 'in-the-way'), { recursive: true });
    expect((await keep([other])).state).toMatchObject({ kind: 'incomplete', reason: 'NotWritten' });
    expect(await keysOnRecord()).toEqual([keyData(first), keyData(other)]);
    expect(await text(POLICY)).toContain(keyData(first));
    expect([...(await writtenPolicyFiles(root)).keys()]).toContain(POLICY);
    await rm(path.join(root, ATTACHMENTS), { recursive: true });
    await keep([]);
    expect(await text(POLICY)).toBe(OPEN);
  });

  test('has the policy of before where all was written but the record of it', async () => {
    const [first] = images as [VerifiedImage];
    await keep(images);
    const former = JSON.parse(await readFile(record(), 'utf8')) as { readonly written: string };
    await keep([{ ...first, publicKey: newSigningKey().publicKey }]);
    const now = JSON.parse(await readFile(record(), 'utf8')) as { readonly written: string };
    await writeFile(record(), JSON.stringify({ ...now, written: former.written, coming: now.written }));
    expect([...(await writtenPolicyFiles(root)).keys()]).toEqual([POLICY, ATTACHMENTS]);
    await keep([]);
    expect(await text(POLICY)).toBe(OPEN);
  });

  test('that can not be written is reported, and the policy stays as it was', async () => {
    await mkdir(path.join(root, path.dirname(nodePaths.state)), { recursive: true });
    await symlink('/proc/nowhere', path.join(root, nodePaths.state));
    const { state, written } = await keep(images);
    expect(state).toMatchObject({ kind: 'incomplete', reason: 'NotWritten' });
    expect(state.kind === 'incomplete' && state.why).toMatch(/ENOENT|EEXIST/);
    expect(written).toEqual([]);
    expect(await text(POLICY)).toBe(OPEN);
  });
});

test('a file of the MachineConfig with where signatures are is never written', async () => {
  expect((await keep(images, [ATTACHMENTS])).written).toEqual([POLICY]);
  await expect(text(ATTACHMENTS)).rejects.toThrow('ENOENT');
});

test('a file beside ours that is not valid is reported by its name; one of another kind is not read', async () => {
  const directory = path.join(root, 'etc/containers/registries.d');
  await mkdir(directory);
  await writeFile(path.join(directory, 'README'), '{');
  expect((await keep(images)).state.kind).toBe('applied');
  await writeFile(path.join(directory, 'odd.yaml'), '{');
  expect((await keep(images)).state).toMatchObject({
    reason: 'KeptAsItIs',
    why: expect.stringContaining('/etc/containers/registries.d/odd.yaml is not valid'),
  });
});

test('the file with where signatures are goes once an admin has them looked for', async () => {
  await keep(images);
  const own = 'docker: { registry.example.com: { use-sigstore-attachments: true } }';
  await writeFile(path.join(root, 'etc/containers/registries.d/own.yaml'), own);
  expect(await keep(images)).toEqual({
    state: { kind: 'applied', repositories: ['registry.example.com/os/worker'] },
    written: [],
  });
  await expect(text(ATTACHMENTS)).rejects.toThrow('ENOENT');
  expect(await text(POLICY)).toContain('sigstoreSigned');
});

test('a policy that is missing is none to be kept: what was left of Shale’s goes with it', async () => {
  await keep(images);
  await rm(path.join(root, POLICY));
  expect(await keep([])).toEqual({ state: { kind: 'not-required' }, written: [] });
  await expect(text(ATTACHMENTS)).rejects.toThrow('ENOENT');
  expect(await imagesOfPolicy(root)).toEqual([]);
});

test('the repositories are each named once, in their order', async () => {
  const { publicKey } = newSigningKey();
  const at = (repository: string, digit: string) => ({
    image: parseDigestedPullspec(`registry.example.com/${repository}@sha256:${digit.repeat(64)}`),
    publicKey,
  });
  const { state } = await keep([at('b', '1'), at('a', '2'), at('b', '3')]);
  expect(state).toEqual({
    kind: 'applied',
    repositories: ['registry.example.com/a', 'registry.example.com/b'],
  });
});

test('a policy of the MachineConfig that lacks several entries is told which', async () => {
  const { publicKey } = newSigningKey();
  const other = { image: parseDigestedPullspec(`r.example.com/b@sha256:${'2'.repeat(64)}`), publicKey };
  expect((await keep([...images, other], [POLICY])).state).toMatchObject({
    why: expect.stringContaining('lacks 2 entries of type sigstoreSigned for'),
  });
  expect((await keep([], [POLICY])).state).toEqual({ kind: 'not-required' });
});
