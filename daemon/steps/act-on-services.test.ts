import { expect, test } from 'vitest';
import type { ServiceManager } from '../host/host.ts';
import { ServiceError } from '../host/systemctl.ts';
import { actOnServices, limitMsOf, withActionLimit } from './act-on-services.ts';

const flags = (...texts: string[]) =>
  texts.reduce<ReadonlyMap<string, number>>((before, text) => withActionLimit(text, before), new Map());

test('the narrowest limit holds', () => {
  const limits = {
    anyMs: 300_000,
    ownMs: flags('Restart(crio.service)=600', 'Restart=60', 'DaemonReload=5'),
  };
  expect(limitMsOf(limits, { type: 'Restart', service: 'crio.service' })).toBe(600_000);
  expect(limitMsOf(limits, { type: 'Restart', service: 'sshd.service' })).toBe(60_000);
  expect(limitMsOf(limits, { type: 'DaemonReload' })).toBe(5_000);
  expect(limitMsOf(limits, { type: 'Reload', service: 'crio.service' })).toBe(300_000);
});

test.each([
  'Restart',
  'Reboot=60',
  'Drain=60',
  'Restart(crio.service)=0',
  'Restart(crio.service)=1.5',
  'Restart()=60',
  'Restart(a b)=60',
  'restart=60',
])('%j is no limit', (text) => {
  expect(() => withActionLimit(text, new Map())).toThrow('Expected an action and seconds');
});

test('an action is ended at its own limit, and says which it was', async () => {
  const never = (_unit: string, signal: AbortSignal) =>
    new Promise<void>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  const services = { restart: never, lastLines: async () => 'waits' } as unknown as ServiceManager;
  const acting = actOnServices({
    services,
    actions: [{ type: 'Restart', service: 'slow.service' }],
    limits: { anyMs: 600_000, ownMs: new Map([['Restart(slow.service)', 20]]) },
    before: async () => undefined,
    signal: new AbortController().signal,
  });
  await expect(acting).rejects.toThrow('restart slow.service: took longer than 0.02 s\nwaits');
});

test('actions are done in their order, each after it was announced, and what is no service is left out', async () => {
  const done: string[] = [];
  const services = {
    daemonReload: async () => void done.push('daemon-reload'),
    reload: async (unit: string) => void done.push(`reload ${unit}`),
    restart: async (unit: string) => void done.push(`restart ${unit}`),
  } as unknown as ServiceManager;
  await actOnServices({
    services,
    actions: [
      { type: 'Drain' },
      { type: 'DaemonReload' },
      { type: 'Reload', service: 'a.service' },
      { type: 'Restart', service: 'b.service' },
      { type: 'Reboot' },
    ],
    limits: { anyMs: 60_000, ownMs: new Map() },
    before: async ({ type }) => void done.push(`before ${type}`),
    signal: new AbortController().signal,
  });
  expect(done).toEqual([
    'before Drain',
    'before DaemonReload',
    'daemon-reload',
    'before Reload',
    'reload a.service',
    'before Restart',
    'restart b.service',
    'before Reboot',
  ]);
});

test('no action is begun once the daemon is to end', async () => {
  const ending = new AbortController();
  const done: string[] = [];
  const acting = actOnServices({
    services: { restart: async (unit: string) => void done.push(unit) } as unknown as ServiceManager,
    actions: [
      { type: 'Restart', service: 'a.service' },
      { type: 'Restart', service: 'b.service' },
    ],
    limits: { anyMs: 60_000, ownMs: new Map() },
    before: async () => ending.abort(new Error('ending')),
    signal: ending.signal,
  });
  await expect(acting).rejects.toThrow('ending');
  expect(done).toEqual(['a.service']);
});

test.each([
  [
    'as the service says it',
    new ServiceError('restart', 'a.service', 'exit code 1'),
    'restart a.service: exit code 1',
  ],
  ['as it came', new Error('the bus is gone'), 'the bus is gone'],
])('a failure within the limit is told %s', async (_name, error, message) => {
  const acting = actOnServices({
    services: { restart: () => Promise.reject(error) } as unknown as ServiceManager,
    actions: [{ type: 'Restart', service: 'a.service' }],
    limits: { anyMs: 60_000, ownMs: new Map() },
    before: async () => undefined,
    signal: new AbortController().signal,
  });
  await expect(acting).rejects.toThrow(message);
});

test('a reload of systemd that takes too long names systemd', async () => {
  const services = {
    daemonReload: (signal: AbortSignal) =>
      new Promise<void>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  } as unknown as ServiceManager;
  const acting = actOnServices({
    services,
    actions: [{ type: 'DaemonReload' }],
    limits: { anyMs: 20, ownMs: new Map() },
    before: async () => undefined,
    signal: new AbortController().signal,
  });
  await expect(acting).rejects.toThrow(/daemonreload systemd: took longer than 0\.02 s$/);
});
