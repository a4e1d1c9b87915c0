import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { createAuthority, type Identity } from './certificate.ts';

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

test('a client certificate identifies a client and no server', async () => {
  const authority = createAuthority('test ca', now, 60_000);
  const server = authority.issueServer({ dns: ['localhost'], ipv4: [] });
  const client = authority.issueClient('builder');
  const certificate = new X509Certificate(client.certPem);
  expect(certificate.subject).toBe('CN=builder');
  expect(certificate.subjectAltName).toBeUndefined();
  const options = { ca: authority.caPem, requestCert: true, rejectUnauthorized: true };
  const strict = createServer({ ...options, cert: server.certPem, key: server.keyPem }).listen(
    0,
    '127.0.0.1',
  );
  await once(strict, 'listening');
  onTestFinished(() => {
    strict.close();
  });
  const accepts = (identity: Identity | undefined) =>
    new Promise<boolean>((resolve) => {
      const { port } = strict.address() as AddressInfo;
      const own = identity === undefined ? {} : { cert: identity.certPem, key: identity.keyPem };
      const socket = connect({
        port,
        host: '127.0.0.1',
        servername: 'localhost',
        ca: authority.caPem,
        ...own,
      });
      strict.once('tlsClientError', () => resolve(false));
      strict.once('secureConnection', () => resolve(true));
      socket.on('error', () => undefined);
      socket.once('close', () => undefined);
      onTestFinished(() => {
        socket.destroy();
      });
    });
  expect(await accepts(client)).toBe(true);
  expect(await accepts(undefined)).toBe(false);
  expect(await accepts(createAuthority('test ca', now).issueClient('builder'))).toBe(false);
  expect(await accepts(server)).toBe(false);
});

test('certificates are valid for their lifetime, and an hour before and after it', () => {
  const start = new Date('2026-03-01T12:00:00Z');
  const authority = createAuthority('test ca', start, 600_000);
  for (const pem of [authority.caPem, authority.issueClient('c').certPem]) {
    const { validFromDate, validToDate } = new X509Certificate(pem);
    expect(validFromDate.toISOString()).toBe('2026-03-01T11:00:00.000Z');
    expect(validToDate.toISOString()).toBe('2026-03-01T13:10:00.000Z');
  }
});

test.each(['2049-12-31T22:59:59Z', '2050-01-01T12:00:00Z'])(
  'dates around 2050 are read as written: %s',
  (at) => {
    const { validFromDate } = new X509Certificate(createAuthority('test ca', new Date(at)).caPem);
    expect(validFromDate.getTime()).toBe(new Date(at).getTime() - 3_600_000);
  },
);
