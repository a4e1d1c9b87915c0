import { expect, test } from 'vitest';
import { KUBELET_CA_KEY } from '../../api/names.ts';
import { registryCAsDigest } from '../../api/node-certificates.ts';
import { type CertificateObjects, desiredCertificates } from './certificates-controller.ts';

const none: CertificateObjects = { registryCAs: undefined, kubeletCA: undefined, pullSecret: undefined };
const configMap = (data: Record<string, string>) =>
  ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' }, data }) as const;
const secret = (resourceVersion: string) =>
  ({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'x', uid: 'u', resourceVersion } }) as const;

test('a cluster without certificates tells nodes nothing', () => {
  expect(desiredCertificates(none)).toEqual({});
});

test('a node that had registry CAs is current of the empty set; of all else that is gone nothing', () => {
  const current = { registryCAs: 'a', kubeletCA: 'b', pullSecret: 'c' };
  expect(desiredCertificates(none, current)).toEqual({ registryCAs: registryCAsDigest({}) });
});

test('a kubelet CA is named by its content, a pull secret by the version of its object', () => {
  const of = (pem: string, more: Record<string, string> = {}) =>
    desiredCertificates({ ...none, kubeletCA: configMap({ [KUBELET_CA_KEY]: pem, ...more }) }).kubeletCA;
  expect(of('A', { other: 'x' })).toBe(of('A'));
  expect(of('B')).not.toBe(of('A'));
  const version = (resourceVersion: string) =>
    desiredCertificates({ ...none, pullSecret: secret(resourceVersion) }).pullSecret;
  expect(version('7')).toBe(version('7'));
  expect(version('8')).not.toBe(version('7'));
});
