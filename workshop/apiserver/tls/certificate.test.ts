import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { createAuthority } from './certificate.ts';

const now = new Date();

test('a server certificate is signed by its authority, for its names alone', () => {
  const authority = createAuthority('test ca', now);
  const { certPem } = authority.issueServer({ dns: ['localhost'], ipv4: ['127.0.0.1'] });
  const ca = new X509Certificate(authority.caPem);
  const server = new X509Certificate(certPem);
  expect(ca.ca).toBe(true);
  expect(server.ca).toBe(false);
  expect(server.verify(ca.publicKey)).toBe(true);
  expect(server.checkIssued(ca)).toBe(true);
  expect(server.checkIP('127.0.0.1')).toBe('127.0.0.1');
  expect(server.checkHost('localhost')).toBe('localhost');
  expect(server.checkHost('example.org')).toBeUndefined();
  expect(new Date(server.validTo).getTime()).toBeGreaterThan(now.getTime());
});

test('TLS takes it with its own authority and refuses it with another', async () => {
  const authority = createAuthority('test ca', now);
  const { certPem, keyPem } = authority.issueServer({ dns: ['localhost'], ipv4: ['127.0.0.1'] });
  const server = createServer({ cert: certPem, key: keyPem }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const handshake = async (ca: string) => {
    const socket = connect({ port, host: '127.0.0.1', ca });
    await once(socket, 'secureConnect').finally(() => socket.destroy());
    return socket.authorized;
  };
  expect(await handshake(authority.caPem)).toBe(true);
  await expect(handshake(createAuthority('other', now).caPem)).rejects.toThrow();
});
