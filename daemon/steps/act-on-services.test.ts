import { expect, test } from 'vitest';
import type { ServiceManager } from '../host/host.ts';
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
