/** Shale's readers of these files, and the files that it writes, against the library that nodes read them with. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ImagePolicySpec } from '../../api/image-policies.ts';
import type { ImageConfig, ImageDigestMirrorSet, ImageTagMirrorSet } from '../../api/image-sources.ts';
import { pullPlaces, type ReferenceKind } from '../../oci/pull-places.ts';
import { readRegistriesConf } from '../../oci/registries-conf.ts';
import { patience } from '../../test/fixtures/patience.ts';
import { parseNodeConfig } from '../parse-node-config.ts';
import { registriesMachineConfig } from './machine-config.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'shale-skopeo-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

/** Ports of loopback on which nothing listens: each attempt fails at once. */
const registry = (port: number) => `127.0.0.1:${port}`;
const DIGEST = `sha256:${'a'.repeat(64)}`;

async function skopeo(conf: string, image: string, ...flags: readonly string[]): Promise<string> {
  const file = path.join(directory, 'registries.conf');
  await writeFile(file, conf);
  const { stderr, timedOut } = await execa(
    'skopeo',
    [...flags, '--registries-conf', file, 'inspect', '--raw', `docker://${image}`],
    { reject: false, timeout: patience(60_000) },
  );
  // What a killed one has tried says nothing about what it would try.
  expect(timedOut, `skopeo inspect ${image} took too long`).toBe(false);
  return stderr;
}

async function isRead(conf: string): Promise<boolean> {
  const stderr = await skopeo(conf, `${registry(1)}/x@${DIGEST}`);
  if (/loading registries configuration/.test(stderr)) return false;
  expect(stderr).toMatch(/connection refused|is blocked/);
  return true;
}

async function isPolicyRead(policy: string): Promise<boolean> {
  const file = path.join(directory, 'policy.json');
  await writeFile(file, policy);
  const to = `dir:${path.join(directory, 'image')}`;
  const { stderr } = await execa(
    'skopeo',
    ['--policy', file, 'copy', `docker://${registry(1)}/x@${DIGEST}`, to],
    { reject: false, timeout: patience(30_000) },
  );
  if (/trust policy/.test(stderr)) return false;
  expect(stderr).toMatch(/connection refused|is rejected by policy/);
  return true;
}

/** A signature that is missing is looked for where the file says. */
async function isPlacesRead(places: string): Promise<boolean> {
  const at = await mkdtemp(path.join(directory, 'registries.d-'));
  await writeFile(path.join(at, 'sigstore-registries.yaml'), places);
  const to = `dir:${path.join(directory, 'image')}`;
  const { stderr } = await execa(
    'skopeo',
    ['--registries.d', at, 'copy', `docker://${registry(1)}/x@${DIGEST}`, to],
    { reject: false, timeout: patience(30_000) },
  );
  if (/registries\.d|Error parsing/i.test(stderr.replace(/^.*connection refused.*$/m, ''))) return false;
  expect(stderr).toMatch(/connection refused/);
  return true;
}

describe('a registries.conf is read as skopeo reads it', { timeout: patience(60_000) }, () => {
  const one = '[[registry]]\nlocation = "q.io"\n';
  const mirror = `${one}[[registry.mirror]]\n`;
  test.each([
    [''],
    ['# nothing'],
    [one],
    ['x = ['],
    ['registry = 5'],
    ['[registry]\nlocation = "q.io"'],
    ['registry = [1]'],
    ['[[registry]]'],
    ['[[registry]]\nprefix = "q.io"'],
    ['[[registry]]\nprefix = "*.q.io"'],
    ['[[registry]]\nprefix = "*.q.io:5000"'],
    ['[[registry]]\nprefix = "*.q.io/x"\nlocation = "q.io"'],
    ['[[registry]]\nlocation = "*.q.io:5000"'],
    ['[[registry]]\nlocation = "https://q.io"'],
    ['[[registry]]\nlocation = "q.io/"\nblocked = "true"'],
    ['[[registry]]\nLocation = "q.io"\nBLOCKED = true'],
    ['[[registry]]\nlocation = 5'],
    [`${one}unknown = 1`],
    [`${one}pull-from-mirror = "all"`],
    [`${one}blocked = true\n${one}`],
    [`${one}${one}`],
    [mirror],
    [`${mirror}location = "m.io"`],
    [`${mirror}location = "m.io"\npull-from-mirror = "tag-only"`],
    [`${mirror}location = "m.io"\npull-from-mirror = "never"`],
    [`${one}mirror-by-digest-only = true\n[[registry.mirror]]\nlocation = "m.io"\npull-from-mirror = "all"`],
    ['unqualified-search-registries = ["q.io:5000", "localhost"]'],
    ['unqualified-search-registries = ["q.io/x"]'],
    ['unqualified-search-registries = "q.io"'],
    ['unqualified-search-registries = [1]'],
    ['short-name-mode = "permissive"'],
    ['short-name-mode = "sometimes"'],
    ['credential-helpers = "secretservice"'],
    // Not the first version of the format alone: an older skopeo reads it, the library of today does not.
    [`${one}[registries.search]\nregistries = ["q.io"]`],
  ])('%j', async (conf) => {
    expect(readRegistriesConf(conf).ok).toBe(await isRead(conf));
  });
});

const anyScope = fc.constantFrom(
  registry(1),
  `${registry(1)}/x`,
  `${registry(1)}/x/y`,
  `${registry(2)}/m`,
  registry(3),
  '127.0.0.1',
);

test('images come from where skopeo looks for them, in its order', {
  timeout: patience(300_000),
}, async () => {
  const anyLocation = fc.constantFrom(`${registry(2)}/m`, registry(3), `${registry(1)}/x`);
  const anyMirror = fc.record({
    location: anyLocation,
    pull: fc.constantFrom('all', 'digest-only', 'tag-only'),
    insecure: fc.boolean(),
  });
  const rarely = fc.nat(4).map((chance) => chance === 0);
  const anyConf = fc.uniqueArray(
    fc.record({
      scope: anyScope,
      moved: fc.option(anyLocation, { freq: 4 }),
      blocked: rarely,
      insecure: rarely,
      mirrors: fc.array(anyMirror, { maxLength: 3 }),
    }),
    { maxLength: 4, selector: ({ scope }) => scope },
  );
  type Entries = typeof anyConf extends fc.Arbitrary<infer T> ? T : never;
  const format = (entries: Entries) =>
    entries
      .flatMap(({ scope, moved, blocked, insecure, mirrors }) => [
        `[[registry]]\nprefix = "${scope}"\nlocation = "${moved ?? scope}"`,
        `blocked = ${blocked}\ninsecure = ${insecure}`,
        ...mirrors.map(
          (mirror) =>
            `[[registry.mirror]]\nlocation = "${mirror.location}"\ninsecure = ${mirror.insecure}\npull-from-mirror = "${mirror.pull}"`,
        ),
      ])
      .join('\n');
  const entry = { scope: registry(1), moved: null, blocked: false, insecure: false, mirrors: [] };
  // One that is blocked, one that is insecure, and a move that leaves no name: chance may draw none of them.
  const certain: [Entries, string, ReferenceKind][] = [
    [[{ ...entry, blocked: true }], `${registry(1)}/w`, 'digest'],
    [[{ ...entry, insecure: true }], `${registry(1)}/w`, 'digest'],
    [[{ ...entry, scope: '127.0.0.1', moved: `${registry(2)}/m` }], `${registry(1)}/w`, 'digest'],
  ];
  let [blocked, insecure, none] = [0, 0, 0];
  await fc.assert(
    fc.asyncProperty(
      anyConf,
      fc.constantFrom(`${registry(1)}/x/y/z`, `${registry(1)}/x`, `${registry(1)}/w`, `${registry(3)}/w`),
      fc.constantFrom<ReferenceKind>('digest', 'tag'),
      async (entries, repository, kind) => {
        const conf = format(entries);
        const suffix = kind === 'digest' ? `@${DIGEST}` : ':1';
        const [, ...attempts] = (await skopeo(conf, `${repository}${suffix}`, '--debug')).split(
          'Trying to access \\"',
        );
        const tried = attempts.map((log) => ({
          name: log.slice(0, log.indexOf('\\"') - suffix.length),
          blocked: /failed: registry \S+ is blocked/.test(log),
          insecure: log.includes('GET http://'),
        }));
        const read = readRegistriesConf(conf);
        const places = read.ok ? pullPlaces(read.conf.registries, repository, kind) : [];
        const expected = 'noName' in places ? [] : places;
        expect(tried).toEqual(
          expected.map((place) => ({
            name: place.name,
            blocked: place.blockedBy !== undefined,
            insecure: place.insecure && place.blockedBy === undefined,
          })),
        );
        blocked += tried.filter((place) => place.blocked).length;
        insecure += tried.filter((place) => place.insecure).length;
        none += tried.length === 0 ? 1 : 0;
      },
    ),
    { numRuns: 60, examples: certain },
  );
  // Otherwise the comparison says little.
  expect(Math.min(blocked, insecure, none)).toBeGreaterThan(0);
});

const meta = (kind: string) => ({
  apiVersion: 'config.openshift.io/v1',
  kind,
  metadata: { name: 'cluster' },
});
const anyRegistry = fc.constantFrom(
  'q.io',
  'q.io/x',
  'q.io/x/y/z/w',
  'q.io:5000',
  'a.q.io/x_y',
  '*.q.io',
  '*.b.q.io',
  '*.q.io:5000',
  '*.q.io/x',
  'localhost',
  'host/x',
  'q_q.io',
  'https://q.io',
  'q.io/x..y',
);
const anyMirrors = fc.array(anyRegistry, { maxLength: 3 });
const anyRule = fc.record({
  source: anyRegistry,
  mirrors: anyMirrors,
  mirrorSourcePolicy: fc.constantFrom('NeverContactSource' as const, 'AllowContactingSource' as const),
});
const PEM = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  .publicKey.export({ type: 'spki', format: 'pem' })
  .toString();
const keyData = Buffer.from(PEM).toString('base64');
const anySigned = fc.record({
  scopes: fc.array(
    fc.constantFrom(
      'q.io',
      'q.io/x/y/z/w',
      'q.io/x:v1',
      `q.io/x@${DIGEST}`,
      '*.q.io',
      'q.io:5000',
      'localhost',
    ),
    { minLength: 1, maxLength: 3 },
  ),
  signedIdentity: fc.constantFrom<NonNullable<ImagePolicySpec['policy']['signedIdentity']>>(
    { matchPolicy: 'MatchRepoDigestOrExact' },
    { matchPolicy: 'MatchRepository' },
    { matchPolicy: 'ExactRepository', exactRepository: { repository: 'q.io/x' } },
    { matchPolicy: 'RemapIdentity', remapIdentity: { prefix: 'q.io', signedPrefix: 'localhost:1/y' } },
  ),
});
type Signed = typeof anySigned extends fc.Arbitrary<infer T> ? T : never;
const specOf = ({ scopes, signedIdentity }: Signed): ImagePolicySpec => ({
  scopes,
  policy: { rootOfTrust: { policyType: 'PublicKey', publicKey: { keyData } }, signedIdentity },
});
const anyObjects = fc.record({
  signed: fc.array(anySigned, { maxLength: 2 }),
  signedInNamespace: fc.array(anySigned, { maxLength: 2 }),
  insecureRegistries: fc.array(anyRegistry, { maxLength: 2 }),
  blockedRegistries: fc.array(anyRegistry, { maxLength: 2 }),
  allowedRegistries: fc.array(anyRegistry, { maxLength: 1 }),
  containerRuntimeSearchRegistries: fc.array(anyRegistry, { maxLength: 1 }),
  digests: fc.array(anyRule, { maxLength: 2 }),
  tags: fc.array(anyRule, { maxLength: 2 }),
});
type Objects = typeof anyObjects extends fc.Arbitrary<infer T> ? T : never;

function machineConfigOf({ digests, tags, signed, signedInNamespace, ...registrySources }: Objects) {
  const idms: ImageDigestMirrorSet = {
    ...meta('ImageDigestMirrorSet'),
    spec: { imageDigestMirrors: digests },
  };
  const itms: ImageTagMirrorSet = { ...meta('ImageTagMirrorSet'), spec: { imageTagMirrors: tags } };
  const image: ImageConfig = { ...meta('Image'), spec: { registrySources } };
  const clusterPolicies = signed.map((each) => ({ ...meta('ClusterImagePolicy'), spec: specOf(each) }));
  const namespacePolicies = signedInNamespace.map((each) => ({
    ...meta('ImagePolicy'),
    metadata: { name: 'a', namespace: 'team' },
    spec: specOf(each),
  }));
  const objects = { icsp: [], idms: [idms], itms: [itms], image, clusterPolicies, namespacePolicies };
  const made = registriesMachineConfig('worker', { ...objects, controllerVersion: '1' });
  return made.ok && made.machineConfig !== undefined ? [made.machineConfig] : [];
}

test('every file that Shale writes can be read', { timeout: patience(180_000) }, async () => {
  const texts = new Map<string, string>();
  for (const machineConfig of fc.sample(anyObjects, 4000).flatMap(machineConfigOf)) {
    const parsed = parseNodeConfig(machineConfig);
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
    for (const [at, { contents }] of parsed.config.files) texts.set(Buffer.from(contents).toString(), at);
  }
  const some = ['policies', 'policy.json', 'registries.d', 'registries.conf'].flatMap((part) =>
    [...texts].filter(([, at]) => at.includes(`/${part}`)).slice(0, 15),
  );
  for (const [text, at] of some) {
    const isOfPlaces = at.startsWith('/etc/containers/registries.d/');
    const read = isOfPlaces ? isPlacesRead(text) : at.endsWith('.json') ? isPolicyRead(text) : isRead(text);
    expect(await read, text).toBe(true);
  }
  expect(some).toHaveLength(60);
  // The check itself can fail.
  expect(await isPolicyRead('{"default": []}')).toBe(false);
  expect(await isPlacesRead('docker: 5')).toBe(false);
  expect(await isRead('[[registry]]\nprefix = "*.q.io:5000"\n')).toBe(false);
});
