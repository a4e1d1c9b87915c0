import { expect, test } from 'vitest';
import { KUBELET_CA_KEY } from '../../api/names.ts';
import { registryCAsDigest } from '../../api/registry-cas.ts';
import { type CertificateObjects, wantedCertificates } from './wanted-certificates.ts';

const none: CertificateObjects = { registryCAs: undefined, kubeletCA: undefined, pullSecret: undefined };
const configMap = (data: Record<string, string>) =>
  ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' }, data }) as const;
const secret = (resourceVersion: string) =>
  ({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'x', uid: 'u', resourceVersion } }) as const;

test('a cluster without certificates tells nodes nothing', () => {
  expect(wantedCertificates(none)).toEqual({});
});

test('a node that had registry CAs is told of the empty set; of all else that is gone nothing', () => {
  const told = { registryCAs: 'a', kubeletCA: 'b', pullSecret: 'c' };
  expect(wantedCertificates(none, told)).toEqual({ registryCAs: registryCAsDigest({}) });
});

test('a kubelet CA is named by its content, a pull secret by the version of its object', () => {
  const of = (pem: string, more: Record<string, string> = {}) =>
    wantedCertificates({ ...none, kubeletCA: configMap({ [KUBELET_CA_KEY]: pem, ...more }) }).kubeletCA;
  expect(of('A', { other: 'x' })).toBe(of('A'));
  expect(of('B')).not.toBe(of('A'));
  const version = (resourceVersion: string) =>
    wantedCertificates({ ...none, pullSecret: secret(resourceVersion) }).pullSecret;
  expect(version('7')).toBe(version('7'));
  expect(version('8')).not.toBe(version('7'));
});
