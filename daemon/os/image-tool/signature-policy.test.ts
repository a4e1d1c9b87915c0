import { describe, expect, it } from 'vitest';
import { policyDemandsSignatures } from './signature-policy.ts';

describe('policyDemandsSignatures', () => {
  it.each([
    ['anything', '{"default":[{"type":"insecureAcceptAnything"}]}', false],
    ['nothing', '{"default":[{"type":"reject"}]}', true],
    ['what is signed', '{"default":[{"type":"sigstoreSigned","keyPath":"/etc/pki/key.pub"}]}', true],
    // What is said of single registries is the tools' to obey; the default decides for all others.
    [
      'anything but from one registry',
      '{"default":[{"type":"insecureAcceptAnything"}],"transports":{"docker":{"quay.io":[{"type":"reject"}]}}}',
      false,
    ],
  ])('a host that lets %s in', (_name, text, expected) => {
    expect(policyDemandsSignatures(text)).toBe(expected);
  });

  it.each(['', '[]', '{"default":"reject"}'])('refuses %j', (text) => {
    expect(() => policyDemandsSignatures(text)).toThrow('/etc/containers/policy.json');
  });
});
