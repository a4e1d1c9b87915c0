import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { ClusterImagePolicy, ImagePolicy, ImagePolicySpec } from '../../api/image-policies.ts';
import { createAuthority } from '../../x509/certificate.ts';
import { parseNodeConfig } from '../parse-node-config.ts';
import { formatProblem } from '../problem.ts';
import { registriesMachineConfig } from './machine-config.ts';

/** What MCO generates for ClusterImagePolicies and ImagePolicies, by the cases of its own tests. */

const base64 = (text: string) => Buffer.from(text).toString('base64');
const aKey = () =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' })
    .publicKey.export({ type: 'spki', format: 'pem' })
    .toString();
const PEM = aKey();
const KEY = base64(PEM);
const REKOR = base64(aKey());

type Input = Parameters<typeof registriesMachineConfig>[1];
type Policy = ImagePolicySpec['policy'];
const byKey: Policy = { rootOfTrust: { policyType: 'PublicKey', publicKey: { keyData: KEY } } };

function clusterPolicy(name: string, scopes: readonly string[], policy: Policy = byKey): ClusterImagePolicy {
  return {
    apiVersion: 'config.openshift.io/v1',
    kind: 'ClusterImagePolicy',
    metadata: { name },
    spec: { scopes: [...scopes], policy },
  };
}

function namespacePolicy(namespace: string, scopes: readonly string[], policy: Policy = byKey): ImagePolicy {
  const { spec } = clusterPolicy('', scopes, policy);
  return {
    apiVersion: 'config.openshift.io/v1',
    kind: 'ImagePolicy',
    metadata: { namespace, name: 'signed' },
    spec,
  };
}

const mirror = (source: string, ...mirrors: string[]) => ({ source, mirrors });
const digests = (...imageDigestMirrors: ReturnType<typeof mirror>[]) => [
  {
    apiVersion: 'config.openshift.io/v1',
    kind: 'ImageDigestMirrorSet',
    metadata: { name: 'a' },
    spec: { imageDigestMirrors },
  },
];
const image = (registrySources: object) => ({
  apiVersion: 'config.openshift.io/v1',
  kind: 'Image',
  metadata: { name: 'cluster' },
  spec: { registrySources },
});

function make(input: Partial<Input>) {
  return registriesMachineConfig('worker', {
    icsp: [],
    idms: [],
    itms: [],
    controllerVersion: '1',
    ...input,
  });
}

function filesOf(input: Partial<Input>): ReadonlyMap<string, string> {
  const made = make(input);
  if (!made.ok || made.machineConfig === undefined)
    throw new Error(made.ok ? 'none' : made.problems.map(formatProblem).join());
  const parsed = parseNodeConfig(made.machineConfig);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return new Map(
    [...parsed.config.files].map(([path, { contents }]) => [path, Buffer.from(contents).toString('utf8')]),
  );
}

const POLICY = '/etc/containers/policy.json';
const PLACES = '/etc/containers/registries.d/sigstore-registries.yaml';
const policyOf = (input: Partial<Input>, file = POLICY) => JSON.parse(filesOf(input).get(file) ?? 'null');
const placesOf = (input: Partial<Input>) => {
  const text = filesOf(input).get(PLACES);
  return text === undefined ? undefined : Object.keys(parse(text).docker);
};
const refusalsOf = (input: Partial<Input>) => {
  const made = make(input);
  return made.ok ? [] : made.problems.map(formatProblem);
};
const warningsOf = (input: Partial<Input>) => {
  const made = make(input);
  return made.ok ? made.warnings.map(formatProblem) : ['refused'];
};
const signedBy = { type: 'sigstoreSigned', keyData: KEY, signedIdentity: { type: 'matchRepoDigestOrExact' } };
const accept = [{ type: 'insecureAcceptAnything' }];

describe('policy.json', () => {
  test('has an entry for each scope, and only scopes for the transport atomic that it takes', () => {
    const scopes = ['test0.com', 'test1.com/a/b/c', 'test2.com/a:v1', '*.example.com'];
    expect(policyOf({ clusterPolicies: [clusterPolicy('a', scopes)] })).toEqual({
      default: accept,
      transports: {
        atomic: { '*.example.com': [signedBy], 'test0.com': [signedBy] },
        docker: Object.fromEntries(scopes.toSorted().map((scope) => [scope, [signedBy]])),
        'docker-daemon': { '': accept },
      },
    });
  });

  test('several policies of one scope are all required, in the order of their names', () => {
    const other = { rootOfTrust: { policyType: 'PublicKey' as const, publicKey: { keyData: REKOR } } };
    const clusterPolicies = [clusterPolicy('b', ['a.com']), clusterPolicy('a', ['a.com'], other)];
    const [first, second] = policyOf({ clusterPolicies }).transports.docker['a.com'];
    expect([first.keyData, second.keyData]).toEqual([REKOR, KEY]);
    expect(filesOf({ clusterPolicies: clusterPolicies.toReversed() })).toEqual(filesOf({ clusterPolicies }));
  });

  test('an allowed registry that a policy is for needs signatures, and others none', () => {
    const policy = policyOf({
      image: image({ allowedRegistries: ['a.com', 'b.com'] }),
      clusterPolicies: [clusterPolicy('a', ['a.com', 'b.com/x'])],
    });
    expect(policy).toMatchObject({
      default: [{ type: 'reject' }],
      transports: { docker: { 'a.com': [signedBy], 'b.com': accept, 'b.com/x': [signedBy] } },
    });
  });

  const certificate = base64(createAuthority('ca', new Date()).caPem);
  test.each<[string, Policy, object]>([
    [
      'a key and Rekor',
      { rootOfTrust: { policyType: 'PublicKey', publicKey: { keyData: KEY, rekorKeyData: REKOR } } },
      { keyData: KEY, rekorPublicKeyData: REKOR },
    ],
    [
      'Fulcio',
      {
        rootOfTrust: {
          policyType: 'FulcioCAWithRekor',
          fulcioCAWithRekor: {
            fulcioCAData: certificate,
            rekorKeyData: REKOR,
            fulcioSubject: { oidcIssuer: 'https://oidc.example.com', signedEmail: 'a@example.com' },
          },
        },
      },
      {
        fulcio: {
          caData: certificate,
          oidcIssuer: 'https://oidc.example.com',
          subjectEmail: 'a@example.com',
        },
        rekorPublicKeyData: REKOR,
      },
    ],
    [
      'a PKI',
      {
        rootOfTrust: {
          policyType: 'PKI',
          pki: {
            caRootsData: certificate,
            caIntermediatesData: certificate,
            pkiCertificateSubject: { email: 'a@example.com', hostname: 'example.com' },
          },
        },
      },
      {
        pki: {
          caRootsData: certificate,
          caIntermediatesData: certificate,
          subjectEmail: 'a@example.com',
          subjectHostname: 'example.com',
        },
      },
    ],
    [
      'the same repository',
      { ...byKey, signedIdentity: { matchPolicy: 'MatchRepository' } },
      { keyData: KEY, signedIdentity: { type: 'matchRepository' } },
    ],
    [
      'another repository',
      {
        ...byKey,
        signedIdentity: { matchPolicy: 'ExactRepository', exactRepository: { repository: 'b.com/x' } },
      },
      { keyData: KEY, signedIdentity: { type: 'exactRepository', dockerRepository: 'b.com/x' } },
    ],
    [
      'another prefix',
      {
        ...byKey,
        signedIdentity: {
          matchPolicy: 'RemapIdentity',
          remapIdentity: { prefix: 'a.com', signedPrefix: 'b.com' },
        },
      },
      { keyData: KEY, signedIdentity: { type: 'remapIdentity', prefix: 'a.com', signedPrefix: 'b.com' } },
    ],
  ])('a signature by %s', (_, policy, expected) => {
    expect(
      policyOf({ clusterPolicies: [clusterPolicy('a', ['a.com'], policy)] }).transports.docker['a.com'],
    ).toEqual([{ type: 'sigstoreSigned', signedIdentity: { type: 'matchRepoDigestOrExact' }, ...expected }]);
  });

  test.each<[string, Partial<Input>, RegExp]>([
    [
      'a scope outside of the allowed registries',
      {
        image: image({ allowedRegistries: ['b.com'] }),
        clusterPolicies: [clusterPolicy('a', ['a.com'])],
      },
      /^ClusterImagePolicy a, spec\.scopes: "a\.com" lies in no allowed registry/,
    ],
    [
      'a scope within a blocked registry',
      {
        image: image({ blockedRegistries: ['a.com'] }),
        clusterPolicies: [clusterPolicy('a', [`a.com/x@sha256:${'0'.repeat(64)}`])],
      },
      /lies within "a\.com", a blocked registry/,
    ],
    [
      'a key that is none',
      {
        clusterPolicies: [
          clusterPolicy('a', ['a.com'], {
            rootOfTrust: { policyType: 'PublicKey', publicKey: { keyData: base64('mine') } },
          }),
        ],
      },
      /^ClusterImagePolicy a, spec\.policy\.rootOfTrust\.publicKey\.keyData: can't be read/,
    ],
    [
      'a root of trust without its settings',
      { clusterPolicies: [clusterPolicy('a', ['a.com'], { rootOfTrust: { policyType: 'PKI' } })] },
      /has no settings for PKI/,
    ],
  ])('refuses %s', (_, input, expected) => {
    expect(refusalsOf(input)).toEqual([expect.stringMatching(expected)]);
  });
});

describe('namespaces', () => {
  test("a namespace's file is policy.json and what its pods need besides", () => {
    const input = {
      image: image({ allowedRegistries: ['a.com', 'b.com'] }),
      clusterPolicies: [clusterPolicy('c', ['a.com/signed'])],
      namespacePolicies: [namespacePolicy('team', ['b.com', 'a.com/x/y/z'])],
    };
    const files = filesOf(input);
    expect([...files.keys()].sort()).toEqual([POLICY, PLACES, '/etc/crio/policies/team.json']);
    const own = policyOf(input, '/etc/crio/policies/team.json');
    expect(own.transports.docker).toEqual({
      'a.com': accept,
      'a.com/signed': [signedBy],
      'a.com/x/y/z': [signedBy],
      'b.com': [...accept, signedBy],
    });
    expect(own.default).toEqual([{ type: 'reject' }]);
    expect(policyOf(input).transports.docker).not.toHaveProperty('a.com/x/y/z');
  });

  test('a policy of a namespace alone leaves policy.json to the distribution', () => {
    const files = filesOf({ namespacePolicies: [namespacePolicy('team', ['a.com'])] });
    expect([...files.keys()].sort()).toEqual([PLACES, '/etc/crio/policies/team.json']);
  });

  test.each<[string, Partial<Input>, string, RegExp]>([
    [
      "within a ClusterImagePolicy's",
      { clusterPolicies: [clusterPolicy('c', ['a.com/x'])] },
      `a.com/x@sha256:${'0'.repeat(64)}`,
      /^ImagePolicy team\/signed, spec\.scopes: .*has no effect, because it lies within "a\.com\/x" of a ClusterImagePolicy/,
    ],
    [
      'within a wildcard',
      { clusterPolicies: [clusterPolicy('c', ['*.example.com'])] },
      'q.example.com/x',
      /of a ClusterImagePolicy/,
    ],
    [
      'in no allowed registry',
      { image: image({ allowedRegistries: ['b.com'] }) },
      'a.com/x',
      /lies in no allowed registry/,
    ],
    [
      'within a blocked registry',
      { image: image({ blockedRegistries: ['a.com'] }) },
      'a.com/x',
      /a blocked registry/,
    ],
  ])('a scope %s is left out, and the rest of the cluster is rendered', (_, input, scope, expected) => {
    const all = { ...input, namespacePolicies: [namespacePolicy('team', [scope])] };
    expect(warningsOf(all)).toEqual([expect.stringMatching(expected)]);
    expect(filesOf(all).get('/etc/crio/policies/team.json')).toBeUndefined();
  });

  test('a key that is none is written for its namespace alone, with a warning', () => {
    const broken = {
      rootOfTrust: { policyType: 'PublicKey' as const, publicKey: { keyData: base64('mine') } },
    };
    const input = { namespacePolicies: [namespacePolicy('team', ['a.com'], broken)] };
    expect(warningsOf(input)).toEqual([expect.stringMatching(/^ImagePolicy team\/signed, .*keyData: can't/)]);
    expect(filesOf(input).has('/etc/crio/policies/team.json')).toBe(true);
  });
});

describe('a field of policy.json that older tools refuse the whole file for is written with a warning', () => {
  const certificate = base64(createAuthority('ca', new Date()).caPem);
  const pki: Policy = {
    rootOfTrust: {
      policyType: 'PKI',
      pki: { caRootsData: certificate, pkiCertificateSubject: { email: 'a@b.c' } },
    },
  };
  const fulcioCAWithRekor = {
    fulcioCAData: certificate,
    rekorKeyData: REKOR,
    fulcioSubject: { oidcIssuer: 'https://oidc.example.com', signedEmail: 'a@b.c' },
  };
  const fulcio: Policy = { rootOfTrust: { policyType: 'FulcioCAWithRekor', fulcioCAWithRekor } };
  const publicKey = { keyData: KEY, rekorKeyData: REKOR };
  const rekor: Policy = { rootOfTrust: { policyType: 'PublicKey', publicKey } };

  test.each<[string, Policy, string, string]>([
    ['a PKI', pki, 'pki', '5.34.1 or later (Podman 5.4.1, Skopeo 1.19, CRI-O 1.34)'],
    ['Fulcio', fulcio, 'fulcio', '5.24 or later (Podman 4.4, Skopeo 1.11, CRI-O 1.27)'],
    ['a key and Rekor', rekor, 'rekorPublicKeyData', '5.24 or later (Podman 4.4, Skopeo 1.11, CRI-O 1.27)'],
  ])('%s', (_, policy, field, versions) => {
    const why = `needs the field ${field} of policy.json: older container tools refuse the whole file, which ends`;
    const expected = `expected nodes whose container tools have containers/image ${versions}`;
    expect(warningsOf({ clusterPolicies: [clusterPolicy('a', ['a.com'], policy)] })).toEqual([
      `ClusterImagePolicy a, spec.policy.rootOfTrust: ${why} all pulls on their nodes; ${expected}`,
    ]);
    expect(warningsOf({ namespacePolicies: [namespacePolicy('team', ['a.com'], policy)] })).toEqual([
      `ImagePolicy team/signed, spec.policy.rootOfTrust: ${why} all pulls of that namespace's pods on their nodes; ${expected}`,
    ]);
  });

  test('a key alone', () => {
    expect(warningsOf({ clusterPolicies: [clusterPolicy('a', ['a.com'])] })).toEqual([]);
  });

  test('none for a policy of a namespace that is left out', () => {
    const input = {
      clusterPolicies: [clusterPolicy('c', ['a.com'])],
      namespacePolicies: [namespacePolicy('team', ['a.com/x'], pki)],
    };
    expect(warningsOf(input)).toEqual([expect.stringMatching(/has no effect, because it lies within/)]);
  });
});

describe('places of signatures', () => {
  const DIGEST = `a.com/a1/a2@sha256:${'0'.repeat(64)}`;
  const scopes = ['a.com/a1/a2', DIGEST, '*.example.com', 'foo.example.com/ns/repo', 'policy.scope'];
  const clusterPolicies = [clusterPolicy('a', scopes)];

  test('none without a policy', () => {
    expect(placesOf({ idms: digests(mirror('a.com', 'b.com')) })).toBeUndefined();
  });

  test.each<[string, ReturnType<typeof mirror>[], readonly string[]]>([
    ['no mirrors', [], []],
    ['mirrors of others', [mirror('x.com/x1/x2', 'x-x1-x2.mirror/x1/x2')], []],
    [
      'mirrors within the scope',
      [
        mirror('a.com/a1/a2', 'a-a1-a2.mirror/a1/a2'),
        mirror('a.com/a1/a2/a3', 'a-a1-a2-a3.mirror/m1/m2/m3'),
        mirror('a.com/a1/a2/a3-1', 'a-a1-a2-a3-1.mirror/m1/m2/m3'),
        mirror('x.com/x1/x2', 'x-x1-x2.mirror/m1/m2'),
      ],
      [
        'a-a1-a2.mirror/a1/a2',
        'a-a1-a2-a3.mirror/m1/m2/m3',
        'a-a1-a2-a3-1.mirror/m1/m2/m3',
        'a.com/a1/a2/a3',
        'a.com/a1/a2/a3-1',
      ],
    ],
    [
      'mirrors that the scope is within',
      [mirror('a.com', 'a.mirror'), mirror('a.com/a1', 'a-a1.mirror/a1')],
      ['a-a1.mirror/a1/a2'],
    ],
    [
      'mirrors of the wildcard',
      [mirror('*.example.com', 'our.mirror/example')],
      ['our.mirror/example', 'our.mirror/example/ns/repo'],
    ],
    [
      'mirrors of wildcards around and within',
      [
        mirror('a.example.com', 'a-example.mirror'),
        mirror('*.x.example.com', 'matched.example.mirror', 'star-x.example.mirror'),
        mirror('*.scope', 'start-scope.mirror'),
        mirror('x.com/x1/x2', 'x-x1-x2.mirror/x1/x2'),
      ],
      [
        'a-example.mirror',
        'a.example.com',
        'matched.example.mirror',
        'star-x.example.mirror',
        'start-scope.mirror',
      ],
    ],
  ])('the scopes, and with %s', (_, mirrors, expected) => {
    const idms = mirrors.length === 0 ? [] : digests(...mirrors);
    expect(placesOf({ clusterPolicies, idms })).toEqual([...scopes, ...expected].sort());
    const namespacePolicies = [namespacePolicy('team', scopes)];
    expect(placesOf({ namespacePolicies, idms })).toEqual([...scopes, ...expected].sort());
  });
});

describe("the cluster's own images", () => {
  const layered = (keys?: readonly string[], pool = 'worker') => ({
    byPool: new Map([[pool, 'registry.example.com:5000/os/worker:latest']]),
    keys,
  });
  const repository = 'registry.example.com:5000/os/worker';
  const signedWith = (scope: string, policy?: Policy) => [clusterPolicy('a', [scope], policy)];

  test.each<[string, Partial<Input>, RegExp]>([
    [
      'another key',
      { clusterPolicies: signedWith('registry.example.com:5000'), layered: layered([aKey()]) },
      /^ClusterImagePolicies for "registry\.example\.com:5000": would refuse every image of pool worker, which registry\.example\.com:5000\/os\/worker has, because another key/,
    ],
    [
      'no signing',
      { clusterPolicies: signedWith('*.example.com'), layered: layered([]) },
      /because signing is disabled/,
    ],
    [
      'Rekor, whatever the key',
      {
        clusterPolicies: signedWith(repository, {
          rootOfTrust: { policyType: 'PublicKey', publicKey: { keyData: KEY, rekorKeyData: REKOR } },
        }),
        layered: layered(),
      },
      /in no log of Rekor/,
    ],
    [
      'another name',
      {
        clusterPolicies: signedWith(repository, {
          ...byKey,
          signedIdentity: { matchPolicy: 'ExactRepository', exactRepository: { repository: 'b.com/x' } },
        }),
        layered: layered([PEM]),
      },
      /name the repository itself/,
    ],
  ])('no policy may ask for %s: the nodes could never take the image without it', (_, input, expected) => {
    expect(refusalsOf(input)).toEqual([expect.stringMatching(expected)]);
  });

  test.each<[string, Partial<Input>]>([
    ["the builder's key", { clusterPolicies: signedWith('*.example.com'), layered: layered([PEM]) }],
    [
      'a key while those in force are unknown',
      { clusterPolicies: signedWith(repository), layered: layered() },
    ],
    ['images of others', { clusterPolicies: signedWith('b.com'), layered: layered([]) }],
    ["another pool's images", { clusterPolicies: signedWith(repository), layered: layered([], 'infra') }],
    [
      'the most specific scope alone',
      {
        clusterPolicies: [
          clusterPolicy('wide', ['*.example.com'], {
            rootOfTrust: { policyType: 'PublicKey', publicKey: { keyData: REKOR } },
          }),
          clusterPolicy('own', [repository]),
        ],
        layered: layered([PEM]),
      },
    ],
  ])('%s may be asked for', (_, input) => {
    expect(refusalsOf(input)).toEqual([]);
  });

  test('their places are left to the daemon: one name in two files ends every pull', () => {
    const input = {
      clusterPolicies: signedWith(repository),
      idms: digests(mirror('registry.example.com:5000/os', 'm.example.com/os')),
      layered: layered([PEM]),
    };
    expect(placesOf(input)).toBeUndefined();
    const wider = { ...input, clusterPolicies: signedWith('registry.example.com:5000') };
    expect(placesOf(wider)).toEqual([
      'm.example.com/os',
      'registry.example.com:5000',
      'registry.example.com:5000/os',
    ]);
  });
});
