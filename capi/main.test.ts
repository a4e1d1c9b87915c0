import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Command, type CommanderError } from 'commander';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { tokenConnection } from '../cluster/connection.ts';
import { callHook } from '../test/fixtures/capi/hook-client.ts';
import { canUpdateMachineSetRequest } from '../test/fixtures/capi/hook-requests.ts';
import { machineObjects } from '../test/fixtures/capi/machine-objects.ts';
import { patience } from '../test/fixtures/patience.ts';
import { freePort } from '../workshop/apiserver/control-plane/free-port.ts';
import { createAuthority } from '../x509/certificate.ts';
import { DISCOVERY_PATH, pathOf } from './contract/hooks.ts';
import { type CapiExtensionFlags, runCapiExtension, withCapiExtensionFlags } from './main.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'shale-capi-main-'));
});
afterEach(async () => {
  await rm(directory, { recursive: true });
});

function flagsOf(...args: readonly string[]): CapiExtensionFlags {
  const command = withCapiExtensionFlags(new Command('capi-extension'))
    .exitOverride()
    .configureOutput({ writeErr: () => {} });
  command.parse(args, { from: 'user' });
  return command.opts<CapiExtensionFlags>();
}

const authority = createAuthority('capi', new Date());

/** Puts a certificate where the kubelet would. */
async function putCertificate(): Promise<void> {
  const { certPem, keyPem } = authority.issueServer({ dns: [], ipv4: ['127.0.0.1'] });
  await writeFile(path.join(directory, 'tls.key'), keyPem);
  await writeFile(path.join(directory, 'tls.crt'), certPem);
}

/** The extension's process with a management cluster that is away. */
async function start(port: number) {
  const [health, away] = [await freePort(), await freePort()];
  const flags = flagsOf(
    ...['--port', String(port), '--metrics-port', String(health), '--tls-dir', directory],
    ...['--log-level', 'silent'],
  );
  const stop = new AbortController();
  const ended = runCapiExtension(flags, stop.signal, async () =>
    tokenConnection(`http://127.0.0.1:${away}`, 'token', ''),
  );
  ended.catch(() => undefined);
  onTestFinished(() => stop.abort());
  return {
    ended,
    call: (where: string, body: object) =>
      callHook({ port, ca: authority.caPem, path: where, body: JSON.stringify(body) }),
    health: async (where: string) => {
      const answer = await fetch(`http://127.0.0.1:${health}${where}`);
      return { status: answer.status, text: await answer.text() };
    },
    end: async () => {
      stop.abort();
      await ended;
    },
  };
}

const eventually = <T>(check: () => T | Promise<T>) =>
  vi.waitFor(check, { timeout: patience(5_000), interval: 5 });

test('it serves discovery and hooks until the signal, whether the management cluster answers or not', async () => {
  await putCertificate();
  const { call, health, end } = await start(await freePort());
  const { text } = await eventually(() => call(DISCOVERY_PATH, {}));
  expect(JSON.parse(text)).toMatchObject({ status: 'Success' });
  expect(await health('/readyz')).toMatchObject({ status: 200 });
  expect((await health('/metrics')).text).toContain('process_resident_memory_bytes');
  const change = { bootstrap: { files: [{ path: '/etc/motd', content: 'a' }] } };
  const body = canUpdateMachineSetRequest(machineObjects(), machineObjects(change));
  expect(JSON.parse((await call(pathOf('CanUpdateMachineSet'), body)).text)).toMatchObject({
    status: 'Failure',
    message: expect.stringContaining('does not answer'),
  });
  await end();
  await expect(call(DISCOVERY_PATH, {})).rejects.toThrow();
  await expect(health('/healthz')).rejects.toThrow();
});

test('while it waits for its certificate it lives, is not ready, and says what it waits for', async () => {
  const { health } = await start(await freePort());
  await eventually(async () => expect(await health('/healthz')).toMatchObject({ status: 200 }));
  const text = `waiting for tls.crt and tls.key in ${directory}\n`;
  expect(await health('/readyz')).toEqual({ status: 503, text });
});

test('a port that is taken ends it', async () => {
  await putCertificate();
  const server = createServer();
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, resolve));
  onTestFinished(() => void server.close());
  const { ended, health } = await start(port);
  await expect(ended).rejects.toThrow(/EADDRINUSE/);
  await expect(health('/healthz')).rejects.toThrow();
});

test.each([
  [['--port', '65536', '--tls-dir', 'a'], 'from 0 to 65535'],
  [[], "required option '--tls-dir <dir>' not specified"],
])('flags %j are refused', (args, why) => {
  expect(() => flagsOf(...args)).toThrow(
    expect.objectContaining<Partial<CommanderError>>({ message: expect.stringContaining(why) }),
  );
});
