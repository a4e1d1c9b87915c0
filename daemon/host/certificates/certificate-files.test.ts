import { expect, test } from 'vitest';
import { KUBELET_CA_KEY, PULL_SECRET_KEY } from '../../../api/names.ts';
import { dataDigest, kubeletCADigest, pullSecretVersion } from '../../../api/node-certificates.ts';
import { createAuthority } from '../../../x509/certificate.ts';
import { serviceActions } from '../../steps/act-on-services.ts';
import {
  CertificatesRefused,
  kubeletCAFiles,
  pullSecretFiles,
  registryCAFiles,
} from './certificate-files.ts';

const AT = '/etc/kubernetes/kubelet-ca.crt';
const metadata = { name: 'node-pull-secret', uid: 'u', resourceVersion: '7' };
const secret = (text: string) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata,
  data: { [PULL_SECRET_KEY]: Buffer.from(text).toString('base64') },
});

test('other data than the operator named is refused', () => {
  expect(() => registryCAFiles({ 'a.io': 'A' }, dataDigest({ 'a.io': 'B' }))).toThrow(CertificatesRefused);
  expect(() => pullSecretFiles(secret('{"auths":{}}'), 'version:other', AT)).toThrow(CertificatesRefused);
  expect(() => kubeletCAFiles({ [KUBELET_CA_KEY]: WHOLE }, kubeletCADigest({}), AT)).toThrow(
    'the operator named',
  );
});

test.each(['../../etc', 'a/b', '..'])('registry %j is refused', (key) => {
  expect(() => registryCAFiles({ [key]: 'A' }, dataDigest({ [key]: 'A' }))).toThrow(CertificatesRefused);
});

const WHOLE = createAuthority('test', new Date()).caPem;
const BROKEN = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';

test.each(['', 'no certificate', BROKEN, `${WHOLE}${BROKEN}`, `${BROKEN}${WHOLE}`])(
  '%j is no CA that a kubelet could read',
  (pem) => {
    const data = { [KUBELET_CA_KEY]: pem };
    expect(() => kubeletCAFiles(data, kubeletCADigest(data), AT)).toThrow(CertificatesRefused);
  },
);

test('a bundle of CAs is taken whole', () => {
  const data = { [KUBELET_CA_KEY]: `${WHOLE}${WHOLE}` };
  const file = { contents: Buffer.from(`${WHOLE}${WHOLE}`), mode: 0o644 };
  expect(kubeletCAFiles(data, kubeletCADigest(data), AT)).toEqual(new Map([[AT, file]]));
});

test('the bundle of a registry is where both runtimes look, for everybody to read', () => {
  const registries = { 'r.io..5000': 'PEM' };
  const file = { contents: Buffer.from('PEM'), mode: 0o644 };
  expect(registryCAFiles(registries, dataDigest(registries))).toEqual(
    new Map([
      ['/etc/containers/certs.d/r.io:5000/shale-ca.crt', file],
      ['/etc/docker/certs.d/r.io:5000/shale-ca.crt', file],
    ]),
  );
});

test('a pull secret is for root alone', () => {
  const files = pullSecretFiles(secret('{"auths":{}}'), pullSecretVersion(metadata), AT);
  expect(files.get(AT)?.mode).toBe(0o600);
});

test.each([
  '',
  '[]',
  'null',
  '{}',
  '{"auths":"tops3cret"}',
  'tops3cret',
  '{"auths":[]}',
  '{"auths":null,"tops3cret":1}',
  '{"auths":{"r.example.org":{"auth":"tops3cret"}}}',
  '{"auths":{"r.example.org":{"auth":"dTpwPz4-"},"s.example.org":{"username":"tops3cret"}}}',
  '{"auths":{"r.example.org":"tops3cret"}}',
])('a pull secret that reads %j is refused, and not quoted', (text) => {
  const act = () => pullSecretFiles(secret(text), pullSecretVersion(metadata), AT);
  expect(act).toThrow(CertificatesRefused);
  expect(act).not.toThrow('tops3cret');
});

test('a pull secret that would take every registry from a kubelet names the one that does', () => {
  const text = '{"auths":{"s.example.org":{"auth":"dTpw"},"r.example.org":{"auth":"dTpwPz4-"}}}';
  expect(() => pullSecretFiles(secret(text), pullSecretVersion(metadata), AT)).toThrow(
    /Secret node-pull-secret has an entry for r\.example\.org that a kubelet can't read, .* not the one for URLs$/,
  );
});

test('services are told as policies say; nothing drains or reboots', () => {
  const files = [
    {
      path: '/etc/containers/certs.d',
      actions: [
        { type: 'Drain' as const },
        { type: 'Reload' as const, reload: { serviceName: 'crio.service' } },
        { type: 'DaemonReload' as const },
      ],
    },
  ];
  const paths = ['/etc/containers/certs.d/a/shale-ca.crt', '/etc/containers/certs.d/b/shale-ca.crt', AT];
  expect(serviceActions(paths, { files })).toEqual([
    { type: 'DaemonReload' },
    { type: 'Reload', service: 'crio.service' },
  ]);
  expect(serviceActions([AT], {})).toEqual([]);
});
